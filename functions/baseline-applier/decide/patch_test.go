package decide

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

const scheduler = `{apiVersion: operator.openshift.io/v1, kind: KubeDescheduler, metadata: {name: cluster, namespace: ns},
	spec: {mode: Automatic, profiles: [A], evictionLimits: {total: 5, node: 2}}}`

func TestAPatchChangesValues(t *testing.T) {
	cases := map[string]struct {
		reason, patch, want string
		operations          int
	}{
		"Replace": {"the usual wish", `[{"op":"replace","path":"/spec/mode","value":"Predictive"}]`, `{"evictionLimits":{"node":2,"total":5},"mode":"Predictive","profiles":["A"]}`, 1},
		"Append":  {"lists grow at their end", `[{"op":"add","path":"/spec/profiles/-","value":"B"}]`, `{"evictionLimits":{"node":2,"total":5},"mode":"Automatic","profiles":["A","B"]}`, 1},
		"Test":    {"what is tested holds", `[{"op":"test","path":"/spec/mode","value":"Automatic"},{"op":"remove","path":"/spec/mode"}]`, `{"evictionLimits":{"node":2,"total":5},"profiles":["A"]}`, 2},
		"Big":     {"integers above 2^53 keep their value", `[{"op":"add","path":"/spec/big","value":9007199254740993}]`, `{"big":9007199254740993,"evictionLimits":{"node":2,"total":5},"mode":"Automatic","profiles":["A"]}`, 1},
		"Merge":   {"people write merge patches", `{"spec":{"mode":null,"profiles":["C"]}}`, `{"evictionLimits":{"node":2,"total":5},"profiles":["C"]}`, 1},
		"Kindred": {"a prefix counts by whole parts", `[{"op":"add","path":"/kindred","value":1}]`, `{"evictionLimits":{"node":2,"total":5},"mode":"Automatic","profiles":["A"]}`, 1},
		"Empty":   {"nothing is asked for", `[]`, `{"evictionLimits":{"node":2,"total":5},"mode":"Automatic","profiles":["A"]}`, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := object(t, scheduler)
			got, n, err := Patched(before, tc.patch, true)
			if err != nil || n != tc.operations {
				t.Fatalf("%s: %d operations, %v", tc.reason, n, err)
			}
			text, _ := json.Marshal(got.Object["spec"])
			if diff := cmp.Diff(tc.want, string(text)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(object(t, scheduler).Object, before.Object); diff != "" {
				t.Errorf("the rendered object was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLabelsAndAnnotationsCanBeAddedWhereThereAreNone(t *testing.T) {
	got, _, err := Patched(object(t, scheduler), `[{"op":"add","path":"/metadata/labels/a","value":"b"},{"op":"add","path":"/metadata/annotations/platform.kubevirt.io~1patch","value":"x"}]`, true)
	if err != nil {
		t.Fatal(err)
	}
	if got.GetLabels()["a"] != "b" || got.GetAnnotations() != nil {
		t.Errorf("labels %v, annotations %v: the steering annotations are never the baseline's", got.GetLabels(), got.GetAnnotations())
	}
}

func TestWhatAPatchMayNeverDo(t *testing.T) {
	machine := `{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {name: a}, spec: {}}`
	cases := map[string]struct {
		reason, object, patch, want string
		nodeKinds                   bool
	}{
		"Name":          {"it would be another object", scheduler, `[{"op":"replace","path":"/metadata/name","value":"x"}]`, "forbidden", true},
		"Namespace":     {"it would lie elsewhere", scheduler, `[{"op":"add","path":"/metadata/namespace","value":"x"}]`, "forbidden", true},
		"Kind":          {"it would be another kind", scheduler, `[{"op":"replace","path":"/kind","value":"Secret"}]`, "forbidden", true},
		"Version":       {"of another group", scheduler, `[{"op":"replace","path":"/apiVersion","value":"v1"}]`, "forbidden", true},
		"Document":      {"everything at once", scheduler, `[{"op":"replace","path":"","value":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}}]`, "forbidden", true},
		"Metadata":      {"all of the metadata at once", scheduler, `[{"op":"replace","path":"/metadata","value":{"name":"x"}}]`, "forbidden", true},
		"MoveFrom":      {"by taking it away", scheduler, `[{"op":"move","from":"/metadata/name","path":"/spec/a"}]`, "forbidden", true},
		"CopyOver":      {"by putting something in its place", scheduler, `[{"op":"copy","from":"/spec/mode","path":"/kind"}]`, "forbidden", true},
		"Owners":        {"the garbage collector would take it", scheduler, `[{"op":"add","path":"/metadata/ownerReferences","value":[]}]`, "forbidden", true},
		"Finalizers":    {"it could never go", scheduler, `[{"op":"add","path":"/metadata/finalizers","value":["a/b"]}]`, "forbidden", true},
		"Status":        {"it is its controller's", scheduler, `[{"op":"add","path":"/status","value":{}}]`, "forbidden", true},
		"Escaped":       {"~1 and ~0 are decoded before", scheduler, `[{"op":"add","path":"/metadata/managedFields/0","value":{}}]`, "forbidden", true},
		"MergeName":     {"in a merge patch too", scheduler, `{"metadata":{"name":"x"}}`, "forbidden", true},
		"MergeMetadata": {"and all of it", scheduler, `{"metadata":null}`, "forbidden", true},
		"MergeKind":     {"and the kind", scheduler, `{"kind":"Secret"}`, "forbidden", true},
		"Secret":        {"the kind is sensitive", `{apiVersion: v1, kind: Secret, metadata: {name: a}}`, `[]`, "sensitive", true},
		"Role":          {"the kind is sensitive", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}`, `[]`, "sensitive", true},
		"NodeKind":      {"node kinds are switched off", machine, `[]`, "sensitive", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := Patched(object(t, tc.object), tc.patch, tc.nodeKinds)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want a refusal with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
	if _, _, err := Patched(object(t, machine), `[{"op":"add","path":"/spec/a","value":1}]`, true); err != nil {
		t.Errorf("whoever can annotate a MachineConfig can edit it: %v", err)
	}
}

func TestAPatchThatDoesNotFitIsNoRefusal(t *testing.T) {
	for name, patch := range map[string]string{
		"NoJSON": `[{`, "Null": `null`, "Text": `"a"`, "Verb": `[{"op":"paint","path":"/spec/a"}]`, "Relative": `[{"op":"add","path":"spec/kind","value":1}]`,
		"Escape": `[{"op":"add","path":"/spec/a~2","value":1}]`, "Negative": `[{"op":"add","path":"/spec/profiles/-1","value":"B"}]`,
		"RemoveNothing": `[{"op":"remove","path":"/spec/nothing"}]`, "ReplaceNothing": `[{"op":"replace","path":"/spec/nothing","value":1}]`,
		"TestNothing": `[{"op":"test","path":"/spec/nothing","value":null}]`, "TestFails": `[{"op":"test","path":"/spec/mode","value":"x"}]`,
		"Atomic":    `[{"op":"replace","path":"/spec/mode","value":"x"},{"op":"remove","path":"/spec/nothing"}]`,
		"LabelType": `[{"op":"add","path":"/metadata/labels/a","value":1}]`, "NoPath": `[{"op":"add","value":1}]`,
		"TooMany": "[" + strings.Repeat(`{"op":"test","path":"/spec/mode","value":"Automatic"},`, 100) + `{"op":"test","path":"/spec/mode","value":"Automatic"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := Patched(object(t, scheduler), patch, true); err == nil || errors.Is(err, ErrRefused) {
				t.Errorf("want an error that is no refusal, got %v", err)
			}
		})
	}
}

func TestACopyCannotGrowWithoutBound(t *testing.T) {
	patch := `[{"op":"add","path":"/spec/a","value":"` + strings.Repeat("x", 1000) + `"}`
	for i := range 30 {
		patch += fmt.Sprintf(`,{"op":"copy","from":"/spec","path":"/spec/b%d"}`, i)
	}
	if _, _, err := Patched(object(t, scheduler), patch+"]", true); err == nil || !strings.Contains(err.Error(), "allowed") {
		t.Errorf("got %v", err)
	}
}

// FuzzPatch: whatever the annotation says, the result is the same object of the same
// kind, or an error, and the rendered object stays as it was.
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		`[{"op":"replace","path":"/spec/mode","value":"Predictive"}]`, `[{"op":"replace","path":"","value":{}}]`, `{"metadata":{"labels":{"a":"b"}}}`,
		`[{"op":"move","from":"/metadata","path":"/spec/a"}]`, `[{"op":"copy","from":"/spec","path":"/metadata/labels"}]`, `[{"op":"add","path":"/metadata/annotations","value":null}]`,
		`[{"op":"add","path":"/spec/profiles/0","value":"B"},{"op":"test","path":"/spec/profiles/1","value":"A"}]`, `{"kind":"Secret"}`, `[{"OP":"add","Path":"/kind"}]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, patch string) {
		before := object(t, scheduler)
		after, _, err := Patched(before, patch, true)
		if diff := cmp.Diff(object(t, scheduler).Object, before.Object); diff != "" {
			t.Fatalf("the rendered object was changed:\n%s", diff)
		}
		if err != nil {
			return
		}
		if after.GroupVersionKind() != before.GroupVersionKind() || after.GetName() != before.GetName() || after.GetNamespace() != before.GetNamespace() {
			t.Fatalf("%q makes another object: %v", patch, after.Object)
		}
		for field := range after.Object["metadata"].(map[string]any) {
			if field != "name" && field != "namespace" && field != "labels" && field != "annotations" {
				t.Fatalf("%q sets metadata.%s", patch, field)
			}
		}
		if _, found := after.Object["status"]; found {
			t.Fatalf("%q sets the status", patch)
		}
		label(after)
		if after.GetLabels()["platform.kubevirt.io/managed-by"] != "virt-platform-autopilot" {
			t.Fatalf("%q takes the label away", patch)
		}
		_ = after.DeepCopy()
	})
}
