package kustomizationmirror

import (
	"github.com/slipway-dev/slipway/shared/inventory"
	"github.com/slipway-dev/slipway/shared/inventory/mirror"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Name is the function's name.
const Name = "kustomization-mirror"

// Declare is the function with its three steps.
func Declare() reconcile.Function[inventory.Input] {
	return mirror.Declare(Name, inventory.Kustomization)
}
