package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/clip"
)

func TestAProjectionHoldsTheFixedFieldsAndNothingElse(t *testing.T) {
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": "c", "namespace": "org", "uid": "u", "resourceVersion": "5", "generation": int64(3), "finalizers": []any{"a/b"},
			"labels":      map[string]any{"a": "b"},
			"annotations": map[string]any{"x": "\uFEFFy", "slipway.dev/mode": "plan", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
		},
		"spec":   map[string]any{"version": "v1", "authenticationConfig": map[string]any{"jwt": []any{}}, "duration": nil},
		"status": map[string]any{"conditions": []any{}, "apiEndpoint": map[string]any{"host": "", "port": int64(0)}},
	}}
	want := `{"apiVersion":"dockyards.io/v1alpha3","kind":"Cluster","metadata":{"annotations":{"x":"\ufeffy"},"labels":{"a":"b"},"name":"c","namespace":"org","uid":"u"},"spec":{"version":"v1"}}`
	if diff := cmp.Diff(want, ProjectCluster(cluster)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	workload := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "w", "namespace": "org"},
		"spec": map[string]any{
			"input": map[string]any{"n": int64(9007199254740993)}, "workloadTemplateInput": map[string]any{"old": true},
			"workloadTemplateRef": map[string]any{"apiGroup": "", "kind": "K", "name": "t"},
		},
		"status": map[string]any{"urls": []any{"x"}},
	}}
	want = `{"apiVersion":"dockyards.io/v1alpha3","kind":"Workload","metadata":{"name":"w","namespace":"org"},"spec":{"input":{"n":9007199254740993},"workloadTemplateRef":{"kind":"K","name":"t"}}}`
	if diff := cmp.Diff(want, ProjectWorkload(workload)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAHashTellsEveryRequestApart(t *testing.T) {
	base := Request{Mode: ModeRender, Source: "a", Cluster: "b", Workload: "c", Limits: DefaultLimits()}
	seen := map[string]bool{base.Hash(): true}
	for _, change := range []func(*Request){
		func(r *Request) { r.Source = "x" }, func(r *Request) { r.Cluster = "x" }, func(r *Request) { r.Workload = "x" },
		func(r *Request) { r.Mode = ModeTemplate }, func(r *Request) { r.Limits.CPU++ },
	} {
		other := base
		change(&other)
		if seen[other.Hash()] {
			t.Errorf("%v has the hash of another", other)
		}
		seen[other.Hash()] = true
	}
}

func TestADishonestAnswerIsNotBelieved(t *testing.T) {
	r := Request{Limits: DefaultLimits()}
	many := make([]Raw, 65)
	for i := range many {
		many[i] = Raw{Field: fmt.Sprint(i), JSON: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`}
	}
	object := func(rest string) []Raw {
		return []Raw{{Field: "x", JSON: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}` + rest + `}`}}
	}
	for want, outputs := range map[string][]Raw{
		"the template gives 65 objects":          many,
		"output \"x\" has":                       {{Field: "x", JSON: `"` + strings.Repeat("x", 1<<20) + `"`}},
		"is no JSON":                             {{Field: "x", JSON: `{`}},
		"is more than one JSON value":            {{Field: "x", JSON: `{} {}`}},
		"is no object":                           {{Field: "x", JSON: `[]`}},
		"has no apiVersion":                      {{Field: "x", JSON: `{"kind":"x"}`}},
		"has at data.a[0] the number 1e999":      object(`,"data":{"a":[1e999]}`),
		"the number 18446744073709551616, which": object(`,"data":{"a":18446744073709551616}`),
		"is the same object as output \"x\"":     append(object(""), object("")...),
	} {
		result := r.Decode(Answer{Outputs: outputs})
		if result.Failure == nil || !strings.Contains(result.Failure.Message, want) {
			t.Errorf("want %q, got %v", want, result.Failure)
		}
	}
}

func TestOnlyTheBytesOfASecretAreCompared(t *testing.T) {
	result := Request{Limits: DefaultLimits()}.Decode(Answer{Outputs: []Raw{{Field: "s", JSON: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"YQ=="},"stringData":{"a":"b","c":"d"}}`}}})
	objects, failure := DefaultRules().Check(Scope{Namespace: "org", Workload: "w", UID: "u", Cluster: "c"}, result.Outputs)
	if failure != nil {
		t.Fatal(failure)
	}
	want := map[string]any{"a": "Yg==", "c": "ZA=="}
	if diff := cmp.Diff(want, objects[0].Intent.Object["data"]); diff != "" || objects[0].Intent.Object["stringData"] != nil {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClipKeepsWholeCharactersOnOneLine(t *testing.T) {
	if got := clip.Line("ä\nb\x00ö"+strings.Repeat("ü", 100), 20); len(got) > 20 || strings.Contains(got, "\n") || !strings.HasSuffix(got, "...") {
		t.Errorf("%q", got)
	}
}
