package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var now = time.Date(2026, time.March, 1, 11, 0, 0, 999, time.UTC)

func organization(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte("{apiVersion: dockyards.io/v1alpha3, kind: Organization, " + text[1:]))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(asJSON); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestConclude(t *testing.T) {
	const (
		bindings = `{type: RoleBindingsReady, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-03-01T10:00:00Z", observedGeneration: 1}`
		made     = `{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-03-01T11:00:00Z", observedGeneration: 3}`
	)
	cases := map[string]struct {
		reason string
		org    string
		// want is the status; empty: no write expected.
		want string
	}{
		"NewIsMadeReady": {
			"nothing else is examined", `{metadata: {name: a, generation: 3}, spec: {}}`, `{conditions: [` + made + `]}`,
		},
		"OthersStay": {
			"conditions and fields of others are kept",
			`{metadata: {name: a, generation: 3}, spec: {}, status: {resourceQuotas: {cpu: "1"}, conditions: [` + bindings + `]}}`,
			`{resourceQuotas: {cpu: "1"}, conditions: [` + bindings + `, ` + made + `]}`,
		},
		"FalseIsMadeTrue": {
			"Ready=False is not True",
			`{metadata: {name: a, generation: 3}, spec: {}, status: {conditions: [{type: Ready, status: "False", reason: X, message: no, lastTransitionTime: "2026-03-01T10:00:00Z"}, ` + bindings + `]}}`,
			`{conditions: [` + made + `, ` + bindings + `]}`,
		},
		"ReadyIsLeftAsItIs": {
			"an old observedGeneration and a foreign reason are none of ours",
			`{metadata: {name: a, generation: 3}, spec: {}, status: {conditions: [{type: Ready, status: "True", reason: Other, message: hm, lastTransitionTime: "2026-03-01T10:00:00Z", observedGeneration: 1}]}}`, "",
		},
		"SkippedIsLeftAlone": {"it asks to be left out", `{metadata: {name: a}, spec: {skipAutoAssign: true}}`, ""},
		"NotSkipped":         {"false is as if absent", `{metadata: {name: a, generation: 3}, spec: {skipAutoAssign: false}}`, `{conditions: [` + made + `]}`},
		"GoingIsLeftAlone": {
			"it is being deleted", `{metadata: {name: a, deletionTimestamp: "2026-03-01T10:00:00Z", finalizers: [dockyards.io/backend-controller]}, spec: {}}`, "",
		},
		"NoSpec":       {"an object stored before spec was required", `{metadata: {name: a, generation: 3}}`, `{conditions: [` + made + `]}`},
		"OddCondition": {"what is no condition does no harm", `{metadata: {name: a, generation: 3}, status: {conditions: [text]}}`, `{conditions: [text, ` + made + `]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			org := organization(t, tc.org)
			before := org.DeepCopy()
			if decision := Decide(now, Input{Organization: org}, nil); len(decision.Plan.Stages) > 0 || len(decision.Needs) > 0 {
				t.Errorf("the decision is %v", decision)
			}
			got := Conclude(now, Input{Organization: org}, nil, nil)
			var want map[string]any
			if tc.want != "" {
				want = organization(t, `{status: `+tc.want+`}`).Object["status"].(map[string]any)
			}
			if diff := cmp.Diff(want, got.Status); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !cmp.Equal(before, org) {
				t.Error("the input has been changed")
			}
			if got.Status == nil {
				return
			}
			org.Object["status"] = got.Status
			if again := Conclude(now.Add(time.Hour), Input{Organization: org}, nil, nil); again.Status != nil {
				t.Errorf("at the fixpoint it writes %v", again.Status)
			}
		})
	}
}
