package clustercheck

import (
	"github.com/slipway-dev/slipway/functions/cluster-check/decide"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Declare is the function with its three steps.
func Declare(settings Settings) reconcile.Function[decide.Input] {
	return reconcile.Function[decide.Input]{
		Spec:     Spec(settings),
		Gather:   gatherer{settings: settings.Settings}.gather,
		Decide:   decide.Decide,
		Conclude: decide.Conclude,
	}
}
