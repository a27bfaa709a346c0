package decide

import (
	"time"

	"github.com/slipway-dev/slipway/shared/plan"
)

// Decide is what shall be written for a Workload, or what else must be known.
func Decide(_ time.Time, in Input, known plan.Answers) plan.Decision {
	v := look(in, known)
	if len(v.needs) > 0 {
		return plan.Decision{Needs: v.needs, Reasons: v.reasons}
	}
	return plan.Decision{Plan: v.plan, Reasons: v.reasons}
}

// look makes one decision from beginning to end.
func look(in Input, known plan.Answers) *view {
	v := newView(in, known)
	if v.deleting() {
		v.dismantle()
		return v
	}
	v.resolve()
	switch {
	case len(v.needs) > 0 || !v.templated:
	case v.stopped:
		v.quarantine()
	case v.problem == nil:
		v.applyAll()
	}
	return v
}
