package baselineapplier

import (
	"time"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Declare is the function with its three steps.
func Declare(settings Settings) reconcile.Function[decide.Input] {
	l := newLeft()
	g := gatherer{settings: settings.Settings, catalog: catalog.BuiltIn(), left: l}
	return reconcile.Function[decide.Input]{
		Spec:       specOf(settings, l),
		Gather:     g.whole,
		GatherPart: g.part,
		Decide:     decide.Decide,
		Conclude: func(now time.Time, in decide.Input, known plan.Answers, outcomes plan.Outcomes) plan.Conclusion {
			if !decide.Counts(in.HCO, in.Settings) {
				return decide.Conclude(now, in, known, outcomes)
			}
			view := decide.Look(now, in, known)
			c := decide.Tell(in, view, outcomes)
			l.note(in, view, outcomes, c.Class)
			return c
		},
	}
}
