// Command cmd serves the function cluster-check.
package main

import (
	clustercheck "github.com/slipway-dev/slipway/functions/cluster-check"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(clustercheck.New()) }
