package decide

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
)

// aspect is one of the pool's conditions that Ready sums up.
type aspect struct {
	conditionType string
	verdict       *verdict
}

// aspects are those of the pool, in the order in which Ready looks at them.
func (v *view) aspects() []aspect {
	template := aspect{v1alpha3.ConditionKubevirtMachineTemplateReconciled, v.template}
	if v.controlPlane() {
		return []aspect{template, {v1alpha3.ConditionTalosControlPlaneReconciled, v.machines}}
	}
	return []aspect{
		template, {v1alpha3.ConditionTalosConfigTemplateReconciled, v.config}, {v1alpha3.ConditionMachineDeploymentReconciled, v.machines},
	}
}

// foreignAspects are the conditions of the other type of pool.
func (v *view) foreignAspects() []string {
	if v.controlPlane() {
		return []string{v1alpha3.ConditionTalosConfigTemplateReconciled, v1alpha3.ConditionMachineDeploymentReconciled}
	}
	return []string{v1alpha3.ConditionTalosControlPlaneReconciled}
}

// condition is a verdict as a condition. What was last rolled out is never cut off: by
// it a rollout is known to be announced.
func (v *view) condition(a aspect) metav1.Condition {
	c := metav1.Condition{
		Type: a.conditionType, Status: metav1.ConditionTrue, Reason: v1alpha3.ReasonReconciled, ObservedGeneration: v.generation(),
	}
	c.Message = strings.Join(a.verdict.notes, "; ")
	if a.verdict.bad() {
		first := a.verdict.problems[0]
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, first.reason, first.message
	}
	if last, ok := lastRollout(v.live); ok && a.verdict == v.machines {
		c.Message = ending(c.Message, last.text)
	}
	c.Message = clip.Line(c.Message, messageMax)
	return c
}

// ending is a message that ends in a given way, whatever has to be cut for it.
func ending(message, end string) string {
	if message == "" {
		return end
	}
	return clip.Line(message, max(messageMax-len(end)-2, 0)) + "; " + end
}

// ready sums up conditions.
func (v *view) ready(conditions []metav1.Condition) metav1.Condition {
	ready := metav1.Condition{
		Type: v1alpha3.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha3.ReasonReconciled, ObservedGeneration: v.generation(),
	}
	for _, c := range conditions {
		if c.Status != metav1.ConditionTrue {
			ready.Status, ready.Reason, ready.Message = c.Status, c.Reason, c.Message
			return ready
		}
	}
	return ready
}

// status is the pool's whole status, with the own conditions in it.
func (v *view) status(conditions []metav1.Condition) map[string]any {
	status := dockyards.Status(v.in.Pool)
	for _, conditionType := range v.foreignAspects() {
		dockyards.RemoveCondition(status, conditionType)
	}
	for _, c := range conditions {
		dockyards.SetCondition(status, c, metav1.NewTime(v.now))
	}
	return status
}

// stored is the pool's condition of a type as it was read; nil if there is none.
func (v *view) stored(conditionType string) *metav1.Condition {
	return v1alpha3.FindCondition(dockyards.Conditions(dockyards.Status(v.in.Pool)), conditionType)
}

// saidAt is when the condition of what keeps the machines last said something new.
func (v *view) saidAt() time.Time {
	aspects := v.aspects()
	if c := v.stored(aspects[len(aspects)-1].conditionType); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}
