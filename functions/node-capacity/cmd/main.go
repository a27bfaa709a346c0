// Command cmd serves the function node-capacity.
package main

import (
	nodecapacity "github.com/slipway-dev/slipway/functions/node-capacity"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(nodecapacity.New()) }
