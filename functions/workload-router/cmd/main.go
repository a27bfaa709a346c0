// Command cmd serves the function workload-router.
package main

import (
	workloadrouter "github.com/slipway-dev/slipway/functions/workload-router"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(workloadrouter.New()) }
