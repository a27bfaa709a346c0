package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/render"
)

// Reasons of Kubernetes Events.
const (
	eventReinstalled = "HelmReleaseReinstalled"
	eventOrphans     = "ObjectsLeftAlone"
)

// Conclude is what a Workload is told.
func Conclude(now time.Time, in Input, known plan.Answers, outcomes plan.Outcomes) plan.Conclusion {
	v := look(in, known)
	if v.deleting() && !v.held() {
		return plan.Conclusion{Class: plan.Done, Reason: ReasonDeleting}
	}
	children := v.children(outcomes)
	own, busy := v.template(outcomes), v.busy(children)
	class := plan.Done
	switch {
	case v.problem != nil && !v.problem.waiting, own != nil && own.status == metav1.ConditionFalse && v.problem == nil:
		class = plan.Terminal
	case v.problem != nil, busy != nil:
		class = plan.Waiting
	}
	c := plan.Conclusion{Class: class, Events: v.events(own, outcomes)}
	ready := v.ready(own, busy, failing(children))
	if ready != nil {
		c.Reason, c.Message = ready.reason, ready.message
	}
	if _, busied := conditionOf(v.workload, v1alpha3.ConditionReconciling); own != nil || busy != nil || ready != nil || busied {
		c.Status = v.status(now, own, busy, ready)
	}
	return c
}

// template is the condition WorkloadTemplateReconciled; nil leaves it as it is.
func (v *view) template(outcomes plan.Outcomes) *verdict {
	switch {
	case v.deleting() || !v.templated:
		return nil
	case v.problem != nil:
		return no(v.problem.reason, v.problem.message)
	case len(outcomes.Faults()) > 0:
		return no(v1alpha3.ReasonReconcileFailed, clip.Line(outcomes.Faults()[0].Fault.Error(), 1024))
	case v.invalid != "":
		return no(ReasonInventoryInvalid, "annotation "+AnnotationInventory+": "+v.invalid+"; nothing is pruned before it is removed")
	}
	return &verdict{metav1.ConditionTrue, v1alpha3.ReasonReady, v.lostText()}
}

// lostText names the objects that carry the Workload's marks and are left alone.
func (v *view) lostText() string {
	if len(v.lost) == 0 {
		return ""
	}
	names := make([]string, 0, len(v.lost))
	for _, found := range v.lost {
		names = append(names, name(found.Resource, found.Object))
	}
	more := ""
	if len(names) > 5 {
		more = fmt.Sprintf(" and %d more", len(names)-5)
		names = names[:5]
	}
	return clip.Line("left alone, since no inventory names them: "+strings.Join(names, ", "), messageMax-len(more)) + more
}

// busy is the condition Reconciling; nil removes it.
func (v *view) busy(children []Found) *verdict {
	is := func(reason, format string, args ...any) *verdict {
		return &verdict{metav1.ConditionTrue, reason, clip.Line(fmt.Sprintf(format, args...), 2*messageMax)}
	}
	if v.deleting() {
		if len(v.leaving) == 0 {
			return is(ReasonDeleting, "the Workload is being deleted")
		}
		return is(ReasonDeleting, "%s", held(v.leaving[0]))
	}
	if len(v.leaving) > 0 {
		return is(ReasonPruning, "%s", held(v.leaving[0]))
	}
	if len(v.going) > 0 {
		return is(ReasonPruning, "%s, and is made again then", held(v.going[0]))
	}
	return reconciling(children)
}

// held says what an object on its way out waits for.
func held(found Found) string {
	text := name(found.Resource, found.Object) + " is being deleted"
	if finalizers := found.Object.GetFinalizers(); len(finalizers) > 0 {
		text += ": " + strings.Join(finalizers, ", ") + " has to be done first"
	}
	return text
}

// ready is the summary; nil leaves it as it is.
func (v *view) ready(own, busy, failed *verdict) *verdict {
	if own == nil && !v.deleting() {
		if have, found := conditionOf(v.workload, v1alpha3.ConditionWorkloadTemplateReconciled); found {
			own = &verdict{metav1.ConditionStatus(have.status), have.reason, have.message}
		}
	}
	switch {
	case busy != nil:
		return no(busy.reason, busy.message)
	case own != nil && own.status != metav1.ConditionTrue:
		return no(own.reason, own.message)
	case failed != nil && own != nil:
		return failed
	case own != nil:
		return &verdict{metav1.ConditionTrue, v1alpha3.ReasonReady, own.message}
	}
	return nil
}

// status is the whole status with the function's own conditions in it.
func (v *view) status(now time.Time, own, busy, ready *verdict) map[string]any {
	status, _, _ := unstructured.NestedMap(v.workload.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	typed, err := plan.Typed[v1alpha3.Workload](&unstructured.Unstructured{Object: map[string]any{"status": status}})
	if err != nil {
		typed = &v1alpha3.Workload{}
	}
	before := typed.Status.Conditions
	after := before
	set := func(conditionType string, is *verdict) {
		if is != nil {
			after = v1alpha3.SetCondition(after, metav1.Condition{
				Type: conditionType, Status: is.status, Reason: is.reason, Message: is.message,
				ObservedGeneration: v.workload.GetGeneration(),
			}, metav1.NewTime(now))
		}
	}
	set(v1alpha3.ConditionWorkloadTemplateReconciled, own)
	if set(v1alpha3.ConditionReconciling, busy); busy == nil {
		after = v1alpha3.RemoveCondition(after, v1alpha3.ConditionReconciling)
	}
	set(v1alpha3.ConditionReady, ready)
	list := make([]any, 0, len(after))
	for i := range after {
		if i < len(before) && before[i] == after[i] {
			// As it was read, byte for byte: it may be somebody else's.
			have, _, _ := unstructured.NestedSlice(status, "conditions")
			list = append(list, have[i])
			continue
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&after[i])
		if err == nil {
			list = append(list, fields)
		}
	}
	if len(list) > 0 || len(before) > 0 {
		status["conditions"] = list
	}
	return status
}

func (v *view) events(own *verdict, outcomes plan.Outcomes) []plan.Event {
	var events []plan.Event
	for _, outcome := range outcomes {
		entry := outcome.Entry
		if outcome.Result != plan.Configured || entry.Object == nil || entry.Resource.String() != render.HelmReleases.String() || !slices.Contains(v.reinstalled, entry.Object.GetName()) {
			continue
		}
		events = append(events, plan.Event{
			Warning: true, Reason: eventReinstalled,
			Message: "HelmRelease/" + entry.Object.GetName() + ": Flux removes the release and installs it anew, since its name or namespace has changed",
		})
	}
	have, _ := conditionOf(v.workload, v1alpha3.ConditionWorkloadTemplateReconciled)
	if text := v.lostText(); text != "" && have.message != text && own != nil && own.status == metav1.ConditionTrue {
		events = append(events, plan.Event{Warning: true, Reason: eventOrphans, Message: text + "; annotation " + AnnotationPruneOrphans + ": \"true\" on the Workload removes them"})
	}
	return events
}
