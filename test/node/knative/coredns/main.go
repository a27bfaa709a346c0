// Command coredns is CoreDNS with the plugins that a cluster's own names need,
// and no way to ask anybody else.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	// The directives below.
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// The order is the order in which a question passes the plugins.
	dnsserver.Directives = []string{"health", "ready", "errors", "log", "cache", "kubernetes"}
	coremain.Run()
}
