package decide

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Input is all that one decision is made from.
type Input struct {
	Settings Settings
	// Config is the reconciled object.
	Config *unstructured.Unstructured
	// Definitions are the management cluster's own.
	Definitions Definitions
	// Sight is what its cluster shows.
	Sight Sight
	// Yardstick is what the cluster shows that it is compared with; nil if it is
	// that one itself.
	Yardstick *Sight
}

// Decide says why nothing is written but the status.
func Decide(_ time.Time, in Input, _ plan.Answers) plan.Decision {
	d := plan.Decision{}
	if !Counts(in.Config, in.Settings) {
		d.Reasons = append(d.Reasons, "the KubevirtConfig is in a namespace that is not looked at")
		return d
	}
	for _, c := range conditions(in) {
		d.Reasons = append(d.Reasons, c.conditionType+" "+c.status()+": "+c.Reason+": "+c.Message)
	}
	return d
}

// condition is a verdict that becomes a condition.
type condition struct {
	conditionType string
	Verdict
	// kept tells that the condition stays as it is.
	kept bool
}

func (c condition) status() string {
	switch {
	case c.Blind:
		return v1alpha1.ConditionUnknown
	case c.Result == OK:
		return v1alpha1.ConditionTrue
	}
	return v1alpha1.ConditionFalse
}

// conditions are those of a KubevirtConfig, in their order.
func conditions(in Input) []condition {
	return []condition{
		{conditionType: v1alpha1.ConditionConnected, Verdict: in.Sight.Connected()},
		{conditionType: v1alpha1.ConditionKubeVirtReady, Verdict: in.Sight.KubeVirt()},
		versionsMatch(in),
	}
}

// versionsMatch speaks of the cluster's versions first, and of the management
// cluster's definitions if there is nothing to say of them. What a yardstick
// that does not answer cannot tell stays as it was: its own status will say
// that it is none, and that changes who is the yardstick.
func versionsMatch(in Input) condition {
	c := condition{conditionType: v1alpha1.ConditionVersionsMatch, Verdict: in.Sight.Versions(in.Yardstick)}
	switch {
	case c.Result == OK:
		if schemas := in.Definitions.Schemas(); schemas.Result == Warning && !schemas.Blind {
			c.Verdict = schemas
		}
	case c.Reason == v1alpha1.ReasonWaiting:
		c.kept = judged(in.Config)
	}
	return c
}

// judged tells whether the versions of a KubevirtConfig have been compared.
func judged(config *unstructured.Unstructured) bool {
	have := find(config, v1alpha1.ConditionVersionsMatch)
	return have != nil && have.Status != v1alpha1.ConditionUnknown
}

// Conclude is what the KubevirtConfig is told.
func Conclude(now time.Time, in Input, _ plan.Answers, _ plan.Outcomes) plan.Conclusion {
	if !Counts(in.Config, in.Settings) {
		return plan.Conclusion{Class: plan.Done, Reason: "NotConcerned", Message: "the KubevirtConfig is in a namespace that is not looked at"}
	}
	all := conditions(in)
	c := plan.Conclusion{
		Class: class(in, all), Reason: v1alpha1.PhaseReady,
		Status: status(now, in, all), LogFields: map[string]string{},
	}
	if wrong := firstWrong(all); wrong != nil {
		c.Reason, c.Message = wrong.Reason, clip.Line(wrong.Message, messageMax)
		c.LogFields["error_type"] = wrong.Reason
	}
	before, after := text(in.Config.Object, "status", "phase"), text(c.Status, "phase")
	c.LogFields["phase"] = after
	if before != after {
		c.Events = []plan.Event{{Warning: after == v1alpha1.PhaseFailed, Reason: after, Message: firstOf(c.Message, "the cluster answers and KubeVirt is available")}}
	}
	for _, is := range all {
		if have := find(in.Config, is.conditionType); !is.kept && (have == nil || have.Status != is.status() || have.Reason != is.Reason) {
			c.Log = append(c.Log, is.conditionType+" is "+is.status()+", "+is.Reason+": "+clip.Line(is.Message, messageMax))
		}
	}
	return c
}

// class: what a person has to change is terminal; what comes by itself is
// waited for. Versions that differ are a warning only.
func class(in Input, all []condition) plan.Class {
	switch {
	case in.Sight.Connection.Refused != "":
		return plan.Terminal
	case in.Sight.Unreachable != nil:
		return plan.Waiting
	case len(in.Sight.faults()) > 0:
		return plan.Terminal
	case all[1].Result != OK:
		return plan.Waiting
	}
	return plan.Done
}

// firstWrong is the condition that the status speaks of; nil if all is well.
func firstWrong(all []condition) *condition {
	for i := range all {
		if all[i].Result != OK && !all[i].kept {
			return &all[i]
		}
	}
	return nil
}

// status is the whole status. Fields of other writers stay, and what an older
// definition does not know is left out: it would never be stored, and would be
// sent again and again.
func status(now time.Time, in Input, all []condition) map[string]any {
	old, _, _ := unstructured.NestedMap(in.Config.Object, "status")
	out := old
	if out == nil {
		out = map[string]any{}
	}
	set := func(field string, value any) {
		definition := in.Definitions.Of(kinds.KubevirtConfigs)
		if definition == nil || hasProperty(definition, kinds.KubevirtConfigs.Versions[0], "status."+field) {
			out[field] = value
		}
	}
	phase, connected := v1alpha1.PhaseFailed, v1alpha1.StatusDisconnected
	if all[0].Result == OK {
		connected = v1alpha1.StatusConnected
		if all[1].Result == OK {
			phase = v1alpha1.PhaseReady
		}
	}
	set("name", in.Config.GetName())
	set("phase", phase)
	set("status", connected)
	delete(out, "message")
	if wrong := firstWrong(all); wrong != nil {
		set("message", clip.Line(wrong.Message, messageMax))
	} else if c := find(in.Config, v1alpha1.ConditionVersionsMatch); all[2].kept && c.Status == v1alpha1.ConditionFalse {
		set("message", c.Message)
	}
	set("conditions", merged(now, in, all))
	return out
}

// merged are the conditions of the object with ours set; those of others stay.
func merged(now time.Time, in Input, all []condition) []any {
	list := listOf(in.Config)
	for _, c := range all {
		if c.kept {
			continue
		}
		list = v1alpha1.SetCondition(list, v1alpha1.MachineCondition{
			Type: c.conditionType, Status: c.status(), Reason: c.Reason, Message: clip.Line(c.Message, messageMax),
			ObservedGeneration: in.Config.GetGeneration(),
		}, metav1.NewTime(now))
	}
	others := foreign(in.Config, all)
	out := make([]any, 0, len(list))
	for i := range list {
		if !ours(list[i].Type, all) {
			out, others = append(out, others[0]), others[1:]
			continue
		}
		// A struct of strings, numbers and times always converts.
		if fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list[i]); err == nil {
			out = append(out, fields)
		}
	}
	return out
}

func ours(conditionType string, all []condition) bool {
	return slices.ContainsFunc(all, func(c condition) bool { return c.conditionType == conditionType })
}

// foreign are the conditions of others, as they are stored.
func foreign(config *unstructured.Unstructured, all []condition) []any {
	raw, _, _ := unstructured.NestedSlice(config.Object, "status", "conditions")
	return slices.DeleteFunc(raw, func(item any) bool {
		fields, ok := item.(map[string]any)
		return !ok || ours(text(fields, "type"), all)
	})
}

// listOf are the conditions as stored, one for each entry that is an object.
func listOf(config *unstructured.Unstructured) []v1alpha1.MachineCondition {
	raw, _, _ := unstructured.NestedSlice(config.Object, "status", "conditions")
	list := make([]v1alpha1.MachineCondition, 0, len(raw))
	for _, item := range raw {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		c := v1alpha1.MachineCondition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c); err != nil {
			c = v1alpha1.MachineCondition{Type: text(fields, "type")} // of a schema that allows what ours does not
		}
		list = append(list, c)
	}
	return list
}

func find(config *unstructured.Unstructured, conditionType string) *v1alpha1.MachineCondition {
	return v1alpha1.FindCondition(listOf(config), conditionType)
}
