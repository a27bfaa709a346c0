// Command cmd serves the function workload-renderer.
package main

import (
	workloadrenderer "github.com/slipway-dev/slipway/functions/workload-renderer"
	"github.com/slipway-dev/slipway/shared/render/worker"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() {
	worker.Hook()
	serve.Main(workloadrenderer.New())
}
