// Command cmd serves the function nodepool-provisioner.
package main

import (
	nodepoolprovisioner "github.com/slipway-dev/slipway/functions/nodepool-provisioner"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(nodepoolprovisioner.New()) }
