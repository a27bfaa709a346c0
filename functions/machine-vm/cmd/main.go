// Command cmd serves the function machine-vm.
package main

import (
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(machinevm.New()) }
