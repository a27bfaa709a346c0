// Command cmd serves the function workload-renderer.
package main

import (
	workloadrenderer "github.com/slipway-dev/slipway/functions/workload-renderer"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(workloadrenderer.New()) }
