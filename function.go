// Package slipway is the whole set of functions as one Knative function, the
// small-cluster mode: `kn func deploy` at the root of the repository. Each
// function can also be deployed by itself, from functions/<name>.
package slipway

import (
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// New makes the function for Knative's middleware.
func New() any { return machinevm.New() }

// Specs are the declarations of all functions.
func Specs() []reconcile.Spec {
	return []reconcile.Spec{machinevm.DefaultSpec()}
}
