package workloadrouter

import (
	"github.com/slipway-dev/slipway/functions/workload-router/decide"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Declare is the function with its three steps.
func Declare(settings Settings) reconcile.Function[decide.Input] {
	return reconcile.Function[decide.Input]{
		Spec:     Spec(settings),
		Gather:   gatherer{settings: settings}.gather,
		Decide:   decide.Decide,
		Conclude: decide.Conclude,
	}
}
