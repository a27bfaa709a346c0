package dockyards

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func entry(conditionType, is, at string, more ...any) map[string]any {
	e := map[string]any{"type": conditionType, "status": is, "reason": "R", "message": "", "lastTransitionTime": at}
	for i := 0; i+1 < len(more); i += 2 {
		e[more[i].(string)] = more[i+1]
	}
	return e
}

func TestConditionsOfOthersAreKeptToTheByte(t *testing.T) {
	now := metav1.Date(2026, time.March, 1, 11, 0, 0, 0, time.UTC)
	const before, after = "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z"
	// What a server of a later revision may store.
	foreign := entry("Other", "True", "2026-03-01T10:00:00+00:00", "novelty", map[string]any{"a": int64(1)})
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "R", ObservedGeneration: 2}
	cases := map[string]struct {
		reason string
		have   []any
		want   []any
	}{
		"NoneYet":     {"the list begins", nil, []any{entry("Ready", "True", after, "observedGeneration", int64(2))}},
		"NewAtTheEnd": {"others keep their places", []any{foreign}, []any{foreign, entry("Ready", "True", after, "observedGeneration", int64(2))}},
		"SameInPlace": {
			"nothing has changed",
			[]any{entry("Ready", "True", before, "observedGeneration", int64(2)), foreign},
			[]any{entry("Ready", "True", before, "observedGeneration", int64(2)), foreign},
		},
		"NewGenerationKeepsTheTime": {
			"the same is said of a newer spec",
			[]any{entry("Ready", "True", before, "observedGeneration", int64(1))},
			[]any{entry("Ready", "True", before, "observedGeneration", int64(2))},
		},
		"ChangedMovesTheTime": {
			"the status is another",
			[]any{entry("Ready", "False", before), foreign},
			[]any{entry("Ready", "True", after, "observedGeneration", int64(2)), foreign},
		},
		"SecondEntryGoes": {
			"one remains, in the first one's place",
			[]any{entry("Ready", "False", before), foreign, entry("Ready", "True", before)},
			[]any{entry("Ready", "True", after, "observedGeneration", int64(2)), foreign},
		},
		"NoCondition": {"what is no condition is not ours to take out", []any{"text"}, []any{"text", entry("Ready", "True", after, "observedGeneration", int64(2))}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"version": "v1", "conditions": tc.have}}}
			if tc.have == nil {
				delete(obj.Object["status"].(map[string]any), "conditions")
			}
			status := Status(obj)
			SetCondition(status, ready, now)
			if diff := cmp.Diff(map[string]any{"version": "v1", "conditions": tc.want}, status); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			SetCondition(status, ready, metav1.NewTime(now.Add(time.Hour)))
			if diff := cmp.Diff(tc.want, status["conditions"]); diff != "" {
				t.Errorf("setting it once more changes it:\n%s", diff)
			}
			if before, _ := obj.Object["status"].(map[string]any)["conditions"].([]any); !cmp.Equal(before, tc.have) {
				t.Error("the object that was read has been changed")
			}
			RemoveCondition(status, "Ready")
			for _, c := range Conditions(status) {
				if c.Type == "Ready" {
					t.Error("the condition is still there after its removal")
				}
			}
		})
	}
}

func TestAnObjectWithoutStatusHasAnEmptyOne(t *testing.T) {
	status := Status(&unstructured.Unstructured{Object: map[string]any{}})
	if status == nil || len(Conditions(status)) != 0 {
		t.Errorf("Status = %v", status)
	}
	RemoveCondition(status, "Ready")
	if len(status) != 0 {
		t.Errorf("removing nothing has made %v", status)
	}
}
