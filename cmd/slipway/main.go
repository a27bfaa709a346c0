// Command slipway serves the whole set of functions in one process: the small-cluster
// mode (deploy/root), as an image of its own.
package main

import (
	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(slipway.New()) }
