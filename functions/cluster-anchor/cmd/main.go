// Command cmd serves the function cluster-anchor.
package main

import (
	clusteranchor "github.com/slipway-dev/slipway/functions/cluster-anchor"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(clusteranchor.New()) }
