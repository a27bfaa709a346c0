package clusteranchor

import (
	"github.com/slipway-dev/slipway/functions/cluster-anchor/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Declare is the function with its three steps.
func Declare(settings dockyards.Settings) reconcile.Function[decide.Input] {
	return reconcile.Function[decide.Input]{
		Spec:     Spec(settings),
		Gather:   gatherer{settings: settings}.gather,
		Decide:   decide.Decide,
		Conclude: decide.Conclude,
	}
}
