// Command cmd serves the function baseline-applier.
package main

import (
	baselineapplier "github.com/slipway-dev/slipway/functions/baseline-applier"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(baselineapplier.New()) }
