// Command cmd serves the function organization-onboarder.
package main

import (
	organizationonboarder "github.com/slipway-dev/slipway/functions/organization-onboarder"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(organizationonboarder.New()) }
