package decide

import (
	"time"

	"github.com/slipway-dev/slipway/shared/plan"
)

// Decide is what shall be written for a Cluster.
func Decide(_ time.Time, in Input, _ plan.Answers) plan.Decision {
	v := look(in)
	d := plan.Decision{Reasons: v.reasons}
	d.Plan.Add("objects", v.writes...)
	d.Plan.Add("reference", v.references...)
	// What cannot be seen is no proof that something is not wanted.
	if !in.Faults.any() {
		d.Plan.Add("removal", v.removals...)
	}
	return d
}
