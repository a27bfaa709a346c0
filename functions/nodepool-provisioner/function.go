package nodepoolprovisioner

import (
	"github.com/slipway-dev/slipway/functions/nodepool-provisioner/decide"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Declare is the function with its three steps.
func Declare(settings Settings) reconcile.Function[decide.Input] {
	g := gatherer{settings: settings.Settings}
	return reconcile.Function[decide.Input]{
		Spec:     Spec(settings),
		Gather:   g.gather,
		Decide:   decide.Decide,
		Conclude: decide.Conclude,
	}
}
