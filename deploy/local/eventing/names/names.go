// Package names gives the cluster's service names a meaning on one machine.
//
// All URLs in statuses and events are those of a real cluster. There is no
// cluster DNS here, so connections to such a name end at the one listener of
// this process, which tells by the Host header what was meant.
package names

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/slipway-dev/slipway/deploy/local/eventing/environment"
)

// Domain is the cluster's DNS domain.
const Domain = "svc.cluster.local"

// Role is what a host name stands for.
type Role int

// Roles of host names.
const (
	// Foreign is any host that is not a service of the cluster.
	Foreign Role = iota
	// Ingress is the broker's ingress.
	Ingress
	// Filter is the broker's filter.
	Filter
	// Channel is the channel behind a broker.
	Channel
	// APIServer is the Kubernetes API.
	APIServer
	// Service is any other service of the cluster.
	Service
)

// Host is a host name that was understood.
type Host struct {
	Role            Role
	Name, Namespace string
}

const channelSuffix = "-kn-channel"

// Parse understands a host name, with or without a port.
func Parse(host string) Host {
	if bare, _, err := net.SplitHostPort(host); err == nil {
		host = bare
	}
	labels := strings.Split(strings.TrimSuffix(strings.TrimSuffix(host, "."), ".cluster.local"), ".")
	if len(labels) != 3 || labels[2] != "svc" {
		return Host{}
	}
	h := Host{Role: Service, Name: labels[0], Namespace: labels[1]}
	switch {
	case h.Namespace == environment.SystemNamespace && h.Name == "broker-ingress":
		h.Role = Ingress
	case h.Namespace == environment.SystemNamespace && h.Name == "broker-filter":
		h.Role = Filter
	case h.Namespace == "default" && h.Name == "kubernetes":
		h.Role = APIServer
	case strings.HasSuffix(h.Name, channelSuffix):
		h.Role = Channel
		h.Name = strings.TrimSuffix(h.Name, channelSuffix)
	}
	return h
}

// OfChannel is the host of a channel.
func OfChannel(namespace, name string) string {
	return name + channelSuffix + "." + namespace + "." + Domain
}

// OfService is the host of a service.
func OfService(namespace, name string) string {
	return name + "." + namespace + "." + Domain
}

// Dialer connects to an address.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Redirect connects to the cluster's services at self, to the Kubernetes API's
// service at apiServer, and to everything else by next.
func Redirect(self, apiServer string, next Dialer) Dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		switch Parse(address).Role {
		case Foreign:
			return next(ctx, network, address)
		case APIServer:
			return next(ctx, network, apiServer)
		default:
			return next(ctx, network, self)
		}
	}
}

// Override redirects every client of this process that is made later on, since
// Knative's clients are copies of the default transport.
func Override(self, apiServer string) error {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return fmt.Errorf("cannot redirect service names: the default transport is a %T", http.DefaultTransport)
	}
	transport.DialContext = Redirect(self, apiServer, transport.DialContext)
	proxy := transport.Proxy
	transport.Proxy = func(request *http.Request) (*url.URL, error) {
		// A proxy of the machine knows nothing of these names.
		if proxy == nil || Parse(request.URL.Host).Role != Foreign {
			return nil, nil
		}
		return proxy(request)
	}
	return nil
}

// FunctionPath is where a function is reached by processes that cannot resolve
// its name: functions themselves.
const FunctionPath = "/functions/"

// Loopback rewrites a URL of the cluster into one that any process on this
// machine can reach at self. Other texts are returned as they are.
func Loopback(text, self string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" {
		return text
	}
	host := Parse(u.Host)
	switch host.Role {
	case Ingress:
	case Service:
		u.Path = FunctionPath + host.Namespace + "/" + host.Name + u.Path
	case Foreign, Filter, Channel, APIServer:
		return text
	}
	u.Host = self
	return u.String()
}
