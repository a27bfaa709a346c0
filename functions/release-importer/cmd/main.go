// Command cmd serves the function release-importer.
package main

import (
	releaseimporter "github.com/slipway-dev/slipway/functions/release-importer"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(releaseimporter.New()) }
