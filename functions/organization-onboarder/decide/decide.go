// Package decide is what organization-onboarder thinks, without a client or a
// clock: whether an Organization is to be made ready, and its status then.
package decide

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Input is all that a decision is made from.
type Input struct {
	Organization *unstructured.Unstructured
}

// Decide wants nothing written but the status, which is Conclude's.
func Decide(time.Time, Input, plan.Answers) plan.Decision { return plan.Decision{} }

// Conclude makes the Organization ready, unless it is so already, asks to be left
// out, or goes.
func Conclude(now time.Time, in Input, _ plan.Answers, _ plan.Outcomes) plan.Conclusion {
	org := in.Organization
	skip, _, _ := unstructured.NestedBool(org.Object, "spec", "skipAutoAssign")
	status := dockyards.Status(org)
	switch {
	case dockyards.Going(org):
		return plan.Conclusion{Class: plan.Done, Reason: v1alpha3.ReasonDeleting, Message: "the Organization is being deleted"}
	case skip:
		return plan.Conclusion{Class: plan.Done, Reason: "SkipAutoAssign", Message: "the Organization asks to be left out"}
	case v1alpha3.IsConditionTrue(dockyards.Conditions(status), v1alpha3.ConditionReady):
		return plan.Conclusion{Class: plan.Done, Reason: v1alpha3.ReasonReady, Message: "the Organization is ready"}
	}
	dockyards.SetCondition(status, metav1.Condition{
		Type: v1alpha3.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha3.ReasonReady, ObservedGeneration: org.GetGeneration(),
	}, metav1.NewTime(now))
	return plan.Conclusion{Class: plan.Done, Reason: v1alpha3.ReasonReady, Message: "the Organization is made ready", Status: status}
}
