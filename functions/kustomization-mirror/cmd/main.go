// Command cmd serves the function kustomization-mirror.
package main

import (
	kustomizationmirror "github.com/slipway-dev/slipway/functions/kustomization-mirror"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(kustomizationmirror.New()) }
