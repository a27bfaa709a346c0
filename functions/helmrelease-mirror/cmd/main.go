// Command cmd serves the function helmrelease-mirror.
package main

import (
	helmreleasemirror "github.com/slipway-dev/slipway/functions/helmrelease-mirror"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(helmreleasemirror.New()) }
