package decide

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
)

// masked is an asset with every kind of list and map.
var masked = catalog.Asset{
	Name: "a", ListKeys: map[string][]string{"spec.conditions": {"type", "status"}}, Atomic: []string{"spec.selector"},
}

const wanted = `{apiVersion: v1, kind: X, metadata: {name: a, labels: {app: x, platform.kubevirt.io/managed-by: m}, annotations: {"a/b": "1"}},
	spec: {one: 1, deep: {only: 2}, args: [a, b], conditions: [{type: Ready, status: "False", duration: 5m}, {type: Ready, status: Unknown, duration: 5m}],
	selector: {matchLabels: {x: "1", z: "2"}}}}`

const lives = `{apiVersion: v1, kind: X, metadata: {name: a}, spec: {one: 9, args: [a, z, user], deep: {only: 7},
	conditions: [{type: Ready, status: Unknown, duration: 1h}, {type: Ready, status: "False", duration: 2h}], selector: {matchLabels: {x: theirs}}}}`

func TestMaskedFieldsAreLeftOut(t *testing.T) {
	cases := map[string]struct {
		reason, pointers string
		// path and want are what is looked at afterwards; nil is left out.
		path     []string
		want     any
		released string
	}{
		"Field":        {"the baseline sets it no more", "/spec/one", []string{"spec", "one"}, nil, ".spec.one"},
		"Escaped":      {"keys with a slash can be named", "/metadata/annotations/a~1b", []string{"metadata", "annotations"}, nil, ".metadata.annotations"},
		"LastOfAMap":   {"an empty map would be made where it is absent", "/spec/deep/only", []string{"spec", "deep"}, nil, ".spec.deep"},
		"KeyedByIndex": {"an index counts in the live list", "/spec/conditions/0/duration", []string{"spec", "conditions"}, []any{map[string]any{"type": "Ready", "status": "False", "duration": "5m"}, map[string]any{"type": "Ready", "status": "Unknown"}}, `.spec.conditions[status="Unknown",type="Ready"].duration`},
		"KeyedByKey":   {"an element is named by its keys", "/spec/conditions/type=Ready;status=False", []string{"spec", "conditions"}, []any{map[string]any{"type": "Ready", "status": "Unknown", "duration": "5m"}}, `.spec.conditions[status="False",type="Ready"]`},
		"AtomicList":   {"live's element is copied: the list is one value", "/spec/args/1", []string{"spec", "args"}, []any{"a", "z"}, ""},
		"BesideAtomic": {"an element beside the baseline's is kept", "/spec/args/2", []string{"spec", "args"}, []any{"a", "b", "user"}, ""},
		"AtomicMap":    {"live's value is copied", "/spec/selector/matchLabels/x", []string{"spec", "selector", "matchLabels"}, map[string]any{"x": "theirs", "z": "2"}, ""},
		"AtomicAbsent": {"live has none", "/spec/selector/matchLabels/z", []string{"spec", "selector", "matchLabels"}, map[string]any{"x": "1"}, ""},
		"AtomicWhole":  {"the whole can be given up", "/spec/selector", []string{"spec", "selector"}, nil, ".spec.selector"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			desired := object(t, wanted)
			m := Mask(desired, object(t, lives), tc.pointers+", ,", masked)
			if len(m.Problems) > 0 || len(m.Pointers) != 1 {
				t.Fatalf("problems %v, in force %v", m.Problems, m.Pointers)
			}
			value := any(m.Object.Object)
			for _, field := range tc.path {
				value = value.(map[string]any)[field]
			}
			if diff := cmp.Diff(tc.want, value); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			released := ""
			for _, path := range m.released {
				released += path.String()
			}
			if released != tc.released {
				t.Errorf("given up is %q, want %q", released, tc.released)
			}
			if diff := cmp.Diff(object(t, wanted).Object, desired.Object); diff != "" {
				t.Errorf("the rendered object was changed:\n%s", diff)
			}
		})
	}
}

func TestABadPointerLeavesTheOthersInForce(t *testing.T) {
	bad := []string{
		"spec/one", "/", "/metadata", "/metadata/name", "/metadata/labels", "/metadata/labels/platform.kubevirt.io~1managed-by", "/apiVersion", "/kind", "/status/x",
		"/spec/nothing", "/spec/one/deeper", "/spec/args/x", "/spec/args/9", "/spec/args/-1", "/spec/conditions/9", "/spec/conditions/type=Ready", "/spec/conditions/0/type",
		"/spec/a~2", "/spec/conditions/color=red;status=x", "/metadata/managedFields/0",
	}
	m := Mask(object(t, wanted), object(t, lives), strings.Join(bad, ",")+",/spec/one", masked)
	if diff := cmp.Diff([]string{"/spec/one"}, m.Pointers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(m.Problems) != len(bad) {
		t.Errorf("%d problems of %d: %s", len(m.Problems), len(bad), strings.Join(m.Problems, "\n"))
	}
}

// FuzzPointer: whatever the annotation says, nothing panics, the object stays the
// same one, and its label is not touched.
func FuzzPointer(f *testing.F) {
	for _, seed := range []string{"/spec/one", "/spec/args/0,/spec/deep", "/metadata/labels/platform.kubevirt.io~1managed-by", "/~01/~10", "/spec/conditions/type=Ready;status=Unknown/duration", "//", "/spec/selector/matchLabels/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := Mask(object(t, wanted), object(t, lives), text, masked)
		if m.Object.GetName() != "a" || m.Object.GetKind() != "X" || m.Object.GetLabels()["platform.kubevirt.io/managed-by"] != "m" {
			t.Fatalf("%q leaves %v", text, m.Object.Object)
		}
		_ = m.Object.DeepCopy()
		if tokens, err := Tokens(text); err == nil && Pointer(tokens) != text {
			t.Fatalf("%q becomes %q", text, Pointer(tokens))
		}
	})
}
