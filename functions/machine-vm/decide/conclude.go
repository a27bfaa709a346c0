package decide

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Conclude is what the Machine is told, now that the plan was carried out.
func Conclude(now time.Time, in Input, known plan.Answers, outcomes plan.Outcomes) plan.Conclusion {
	v := look(in, known)
	if !v.concerned() {
		return plan.Conclusion{Class: plan.Done, Reason: "NotConcerned", Message: "the Machine is another provider's, or nothing is left to clean up"}
	}
	written := v.heed(outcomes)
	if released(outcomes) {
		return plan.Conclusion{Class: plan.Done, Reason: v1alpha1.ReasonDeleting, Message: "everything made for the Machine is gone"}
	}
	old := v.machine.Status
	status := v.status(now, written)
	ready := v1alpha1.FindCondition(status.Conditions, v1alpha1.ConditionReady)
	c := plan.Conclusion{
		Class: v.class(*ready), Reason: ready.Reason, Message: ready.Message,
		Status: v.settle(now, status),
		Events: events(old, status),
	}
	c.LogFields = map[string]string{"phase": status.Phase}
	if v.vmName != "" {
		c.LogFields["vm"] = v.vmName
	}
	if v.in.Target.Config != "" {
		c.LogFields["kubevirtConfig"] = v.in.Target.Config
	}
	if reason := v.errorType(); reason != "" {
		c.LogFields["error_type"] = reason
	}
	if f := v.in.Target.Unreachable; f != nil {
		c.LogFields["fault"] = f.Message
	}
	c.Observations = v.observations(now, old, status)
	if v.in.Target.Automatic && assigned(outcomes, v.in.Target.Config) {
		c.Log = append(c.Log, "Automatically assigned KubevirtConfig to machine")
	}
	return c
}

// assigned tells whether the Machine's cluster was noted on it just now.
func assigned(outcomes plan.Outcomes, config string) bool {
	for _, o := range outcomes {
		e := o.Entry
		if e.Resource.String() == kinds.Machines.String() && o.Result == plan.Configured && e.Base != nil && e.Object != nil &&
			e.Object.GetAnnotations()[v1alpha1.AnnotationKubevirtConfig] == config &&
			e.Base.GetAnnotations()[v1alpha1.AnnotationKubevirtConfig] != config {
			return true
		}
	}
	return false
}

// released tells whether the finalizers have been taken off.
func released(outcomes plan.Outcomes) bool {
	for _, o := range outcomes {
		if o.Entry.Resource.String() == kinds.Machines.String() && o.Fault == nil && o.Result == plan.Configured &&
			o.Entry.Object != nil && o.Entry.Object.GetDeletionTimestamp() != nil && !holds(o.Entry.Object) {
			return true
		}
	}
	return false
}

func holds(machine *unstructured.Unstructured) bool {
	for _, name := range machine.GetFinalizers() {
		if isFinalizer(name) {
			return true
		}
	}
	return false
}

// heed takes in what the servers answered: refusals are problems, and what was
// written takes the place of what was read. It returns the virtual machine's
// resourceVersion if it was written.
func (v *view) heed(outcomes plan.Outcomes) string {
	written := ""
	for _, o := range outcomes {
		if o.Fault != nil {
			v.heedFault(*o.Fault)
			continue
		}
		if o.Result == plan.Capped {
			v.putOff++
		}
		if o.Object == nil || o.Entry.Verb == plan.Delete || o.Result == plan.Skipped {
			continue
		}
		switch o.Entry.Resource.String() {
		case kinds.VirtualMachines.String():
			v.vm = o.Object
			if o.Result != plan.Unchanged {
				written = o.Object.GetResourceVersion()
			}
		case kind.PersistentVolumeClaims.String():
			v.in.Claims = replaced(v.in.Claims, o.Object)
		}
	}
	return written
}

func (v *view) heedFault(f fault.Fault) {
	if f.Class == fault.Unavailable {
		if v.in.Target.Unreachable == nil {
			v.in.Target.Unreachable = &f
		}
		return
	}
	v.refused(f)
}

// replaced is a list with one object put in the place of an older state of it.
func replaced(objects []unstructured.Unstructured, obj *unstructured.Unstructured) []unstructured.Unstructured {
	list := make([]unstructured.Unstructured, 0, len(objects)+1)
	for _, have := range objects {
		if have.GetName() != obj.GetName() {
			list = append(list, have)
		}
	}
	return append(list, *obj)
}

// class is what the reconcile came to.
func (v *view) class(ready v1alpha1.MachineCondition) plan.Class {
	p := first(v.problems)
	switch {
	case v.in.Target.Undecided:
		return plan.Retry
	case p != nil && !p.Waiting:
		return plan.Terminal
	case p != nil, v.in.Target.Unreachable != nil, v.deleting():
		return plan.Waiting
	case ready.Status == v1alpha1.ConditionTrue, ready.Reason == v1alpha1.ReasonStopped:
		return plan.Done
	}
	return plan.Waiting
}

// events are the Kubernetes Events of a change: a new error, or else a new
// phase.
func events(old, status v1alpha1.MachineStatus) []plan.Event {
	before, after := failure(old), failure(status)
	switch {
	case after != "" && after != before:
		return []plan.Event{{Warning: true, Reason: after, Message: clip.Line(status.Message, messageMax)}}
	case status.Phase != old.Phase:
		return []plan.Event{{Reason: status.Phase, Message: clip.Line(status.Message, messageMax)}}
	}
	return nil
}

func failure(status v1alpha1.MachineStatus) string {
	if status.FailureReason == nil {
		return ""
	}
	return *status.FailureReason
}
