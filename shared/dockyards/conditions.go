package dockyards

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
)

// Status is a copy of an object's status that may be changed; never nil. What a
// function does not own goes back as it was read, to the byte.
func Status(obj *unstructured.Unstructured) map[string]any {
	status, _ := obj.Object["status"].(map[string]any)
	if status == nil {
		return map[string]any{}
	}
	return runtime.DeepCopyJSON(status)
}

// Conditions are those of a status, typed, for reading. An entry that is none is
// left out.
func Conditions(status map[string]any) []metav1.Condition {
	entries, _ := status["conditions"].([]any)
	conds := make([]metav1.Condition, 0, len(entries))
	for _, entry := range entries {
		if c, ok := typed(entry); ok {
			conds = append(conds, c)
		}
	}
	return conds
}

// SetCondition sets one condition in a status, by the rules of
// v1alpha3.SetCondition: several controllers write into the list, so its place
// stays, and the entries of others are kept as they were read, to the byte.
func SetCondition(status map[string]any, c metav1.Condition, now metav1.Time) {
	entries, _ := status["conditions"].([]any)
	old := v1alpha3.FindCondition(Conditions(status), c.Type)
	var before []metav1.Condition
	if old != nil {
		before = []metav1.Condition{*old}
	}
	set := v1alpha3.SetCondition(before, c, now)[0]
	out, placed := make([]any, 0, len(entries)+1), false
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		switch {
		case fields == nil || fields["type"] != c.Type:
			out = append(out, entry)
		case !placed:
			placed = true
			out = append(out, raw(set))
		}
	}
	if !placed {
		out = append(out, raw(set))
	}
	status["conditions"] = out
}

// RemoveCondition takes the conditions of a type out of a status.
func RemoveCondition(status map[string]any, conditionType string) {
	entries, _ := status["conditions"].([]any)
	out := make([]any, 0, len(entries))
	for _, entry := range entries {
		if fields, _ := entry.(map[string]any); fields == nil || fields["type"] != conditionType {
			out = append(out, entry)
		}
	}
	if len(out) < len(entries) {
		status["conditions"] = out
	}
}

func typed(entry any) (metav1.Condition, bool) {
	var c metav1.Condition
	fields, ok := entry.(map[string]any)
	if !ok {
		return c, false
	}
	text, err := json.Marshal(fields)
	if err != nil || json.Unmarshal(text, &c) != nil {
		return c, false
	}
	return c, c.Type != ""
}

// raw is a condition as it stands in a manifest. The zero observedGeneration is
// absent, and an empty message is there.
func raw(c metav1.Condition) map[string]any {
	fields := map[string]any{
		"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message,
		"lastTransitionTime": c.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z"),
	}
	if c.ObservedGeneration != 0 {
		fields["observedGeneration"] = c.ObservedGeneration
	}
	return fields
}
