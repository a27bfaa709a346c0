package decide

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Conclude is what a Worktree is told.
func Conclude(now time.Time, in Input, _ plan.Answers, outcomes plan.Outcomes) plan.Conclusion {
	if dockyards.Going(in.Worktree) {
		return plan.Conclusion{Class: plan.Done, Reason: v1alpha3.ReasonDeleting}
	}
	v := look(in)
	c := plan.Conclusion{Class: plan.Done, Reason: ReasonReconciled}
	status := metav1.ConditionTrue
	switch {
	case v.reason == ReasonWaiting:
		c.Class = plan.Waiting
	case v.reason != "":
		c.Class = plan.Terminal
	case len(outcomes.Faults()) > 0:
		c.Class, v.reason, v.message = plan.Terminal, v1alpha3.ReasonReconcileFailed, clip.Line(outcomes.Faults()[0].Fault.Error(), 1024)
	}
	if v.reason != "" {
		c.Reason, c.Message, status = v.reason, v.message, metav1.ConditionFalse
	}
	c.Status = withCondition(in.Worktree, metav1.Condition{
		Type: Condition, Status: status, Reason: c.Reason, Message: c.Message, ObservedGeneration: in.Worktree.GetGeneration(),
	}, now)
	return c
}

// withCondition is the whole status with one condition set. Those of others stay.
func withCondition(obj *unstructured.Unstructured, c metav1.Condition, now time.Time) map[string]any {
	status, _, _ := unstructured.NestedMap(obj.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	var before []metav1.Condition
	if typed, err := plan.Typed[v1alpha3.Worktree](obj); err == nil {
		before = typed.Status.Conditions
	}
	have, _, _ := unstructured.NestedSlice(status, "conditions")
	list := make([]any, 0, len(have)+1)
	for i, after := range v1alpha3.SetCondition(before, c, metav1.NewTime(now)) {
		if i < len(have) && i < len(before) && before[i] == after {
			list = append(list, have[i]) // as it was read: it may be somebody else's
			continue
		}
		if fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&after); err == nil {
			list = append(list, fields)
		}
	}
	status["conditions"] = list
	return status
}
