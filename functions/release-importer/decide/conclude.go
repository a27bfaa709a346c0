package decide

import (
	"time"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// messageMax bounds the message of an Event.
const messageMax = 256

// Conclude tells people what happened and what is wrong. A Release has no
// conditions, so all of it are Kubernetes Events.
func Conclude(_ time.Time, in Input, known plan.Answers, outcomes plan.Outcomes) plan.Conclusion {
	v := look(in)
	v.doomed(known)
	for _, failed := range outcomes.Faults() {
		v.found(&problem{reason: reasonError, message: clip.Line(failed.Fault.Error(), messageMax)})
	}
	c := v.summary()
	for _, o := range outcomes {
		if e, ok := v.told(o); ok {
			c.Events = append(c.Events, e)
		}
	}
	for _, p := range v.problems {
		c.Events = append(c.Events, plan.Event{Warning: true, Reason: p.reason, Message: clip.Line(p.message, messageMax)})
	}
	return c
}

// summary is what the reconcile came to.
func (v *view) summary() plan.Conclusion {
	for _, p := range v.problems {
		if !p.waiting {
			return plan.Conclusion{Class: plan.Terminal, Reason: p.reason, Message: p.message}
		}
	}
	switch {
	case len(v.problems) > 0:
		return plan.Conclusion{Class: plan.Waiting, Reason: v.problems[0].reason, Message: v.problems[0].message}
	case v.idle:
		return plan.Conclusion{Class: plan.Done, Reason: "NotConcerned", Message: "the Release asks for no image"}
	case !v.succeeded():
		return plan.Conclusion{Class: plan.Waiting, Reason: reasonWaiting, Message: "the image " + v.name + " is being imported"}
	}
	return plan.Conclusion{Class: plan.Done, Reason: v1alpha3.ReasonReconciled, Message: "the image " + v.name + " is offered"}
}

// told is the Event of a write that a person may look for.
func (v *view) told(o plan.Outcome) (plan.Event, bool) {
	e := o.Entry
	switch {
	case o.Result == plan.Created && e.Resource.String() == dockyards.DataVolumes.String():
		return plan.Event{Reason: reasonImportStarted, Message: "DataVolume " + e.Object.GetName() + " imports the image of " + v.version}, true
	case o.Result == plan.Deleted:
		return plan.Event{Reason: reasonImageRemoved, Message: "DataVolume " + e.Base.GetName() + " is superseded and no longer in use"}, true
	case e.Resource.String() != dockyards.DataSources.String():
		return plan.Event{}, false
	case o.Result == plan.Created, o.Result == plan.Configured && ImageOf(e.Base) != ImageOf(e.Object):
		return plan.Event{Reason: reasonImageReady, Message: "DataSource " + e.Object.GetName() + " leads to " + ImageOf(e.Object)}, true
	}
	return plan.Event{}, false
}
