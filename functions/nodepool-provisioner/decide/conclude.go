package decide

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Conclude is what the NodePool is told, now that the plan was carried out.
func Conclude(now time.Time, in Input, known plan.Answers, outcomes plan.Outcomes) plan.Conclusion {
	v := look(now, in, known)
	v.heed(outcomes)
	if v.silent {
		return v.concludeSilently(outcomes)
	}
	var conditions []metav1.Condition
	for _, a := range v.aspects() {
		conditions = append(conditions, v.condition(a))
	}
	ready := v.ready(conditions)
	c := plan.Conclusion{
		Class: v.class(), Reason: ready.Reason, Message: ready.Message,
		Events: v.events(conditions),
	}
	c.Status = v.status(append(conditions, ready))
	if v.clusterName != "" {
		c.LogFields = map[string]string{"cluster": v.clusterName}
	}
	return c
}

// concludeSilently is the end of a reconcile that says nothing to the pool.
func (v *view) concludeSilently(outcomes plan.Outcomes) plan.Conclusion {
	c := plan.Conclusion{Class: plan.Done, Reason: v1alpha3.ReasonDeleting, Message: strings.Join(v.reasons, "; ")}
	if v.in.Machines != nil {
		c.Class = plan.Waiting
	}
	if len(outcomes.Faults()) > 0 || len(v.in.Refused) > 0 {
		c.Class = plan.Retry
	}
	return c
}

// heed takes in what the servers answered: what failed comes before everything else
// that there is to say, and what was written takes the place of what was read.
func (v *view) heed(outcomes plan.Outcomes) {
	for _, o := range outcomes {
		d := v.verdictOn(o.Entry)
		switch {
		case o.Fault != nil:
			d.problems = append([]problem{failed(*o.Fault)}, d.problems...)
		case o.Result == plan.Skipped && o.Entry.Verb == plan.Create && len(outcomes.Faults()) > 0:
			d.add(waiting(v1alpha3.ReasonWaitingForMachineTemplate, "what the machines are made from could not be written"))
		case o.Object != nil && o.Entry.Resource.String() == v.roller().res.String() && o.Result != plan.Skipped && o.Entry.Verb != plan.Delete:
			v.live = o.Object
		}
	}
}

// verdictOn is what is said about the part that an entry is for.
func (v *view) verdictOn(entry plan.Entry) *verdict {
	switch entry.Resource.String() {
	case dockyards.KubevirtMachineTemplates.String():
		return v.template
	case dockyards.TalosConfigTemplates.String():
		return v.config
	}
	return v.machines
}

// class is what the reconcile came to: one problem that may solve itself is worth
// another try, one that a person must solve is told before one that only waits.
func (v *view) class() plan.Class {
	class := plan.Done
	for _, a := range v.aspects() {
		for _, p := range a.verdict.problems {
			switch {
			case p.retry:
				return plan.Retry
			case p.terminal:
				class = plan.Terminal
			case class == plan.Done:
				class = plan.Waiting
			}
		}
	}
	return class
}

// conflicts are the reasons that a person should notice when they come up.
var conflicts = []string{v1alpha3.ReasonNameConflict, v1alpha3.ReasonControlPlaneConflict}

// events are the Kubernetes Events of this reconcile: a rollout that no condition has
// told of yet, and conflicts that are new.
func (v *view) events(conditions []metav1.Condition) []plan.Event {
	var events []plan.Event
	if last, ok := lastRollout(v.live); ok {
		machines := conditions[len(conditions)-1]
		old := v.stored(machines.Type)
		// The first holds where the condition has spoken of something else since.
		told := old != nil && (old.LastTransitionTime.After(last.at) || strings.Contains(old.Message, last.text))
		if !told {
			events = append(events, plan.Event{
				Reason:  v1alpha3.ReasonRolloutStarted,
				Message: clip.Line("machines are replaced, since these changed: "+strings.Join(last.changes, ", "), messageMax),
			})
		}
	}
	for _, c := range conditions {
		old := v.stored(c.Type)
		if slices.Contains(conflicts, c.Reason) && (old == nil || old.Reason != c.Reason) {
			events = append(events, plan.Event{Warning: true, Reason: c.Reason, Message: c.Message})
		}
	}
	return events
}
