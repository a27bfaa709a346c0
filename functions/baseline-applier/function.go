package baselineapplier

import (
	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Declare is the function with its three steps.
func Declare(settings Settings) reconcile.Function[decide.Input] {
	g := gatherer{settings: settings.Settings, catalog: catalog.BuiltIn()}
	return reconcile.Function[decide.Input]{
		Spec:       Spec(settings),
		Gather:     g.whole,
		GatherPart: g.part,
		Decide:     decide.Decide,
		Conclude:   decide.Conclude,
	}
}
