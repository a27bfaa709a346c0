package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: obj}
}

func TestCompare(t *testing.T) {
	const intent = `
apiVersion: v1
kind: Service
metadata: {name: s, namespace: n, labels: {app: web}}
spec: {selector: {app: web}, size: 1Gi, tags: [a, b]}`
	const owned = `{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:selector":{"f:app":{}},"f:size":{},"f:tags":{}}}`
	live := func(spec string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: n, uid: u, labels: {app: web, other: x}}\nspec: " + spec
	}
	const same = `{selector: {app: web, tier: x}, size: 1Gi, tags: [a, b], extra: 1}`
	cases := map[string]struct {
		reason string
		live   string
		owned  string
		want   verdict
	}{
		"Equal":        {"fields and labels of others do not matter", live(same), owned, equal},
		"NotOwned":     {"equal values that the function does not own yet are taken over by one apply", live(same), `{"f:spec":{"f:size":{}}}`, unsure},
		"OwnsMore":     {"a field that left the intent must be given up", live(same), `{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:gone":{},"f:selector":{"f:app":{}},"f:size":{},"f:tags":{}}}`, unsure},
		"Changed":      {"a changed leaf is a difference", live(`{selector: {app: db}, size: 1Gi, tags: [a, b]}`), owned, different},
		"SameQuantity": {"1Gi and 1024Mi may be one quantity or two strings: the server knows", live(`{selector: {app: web}, size: 1024Mi, tags: [a, b]}`), owned, unsure},
		"ListDiffers":  {"a list may hold defaults of the server, or entries of others", live(`{selector: {app: web}, size: 1Gi, tags: [a]}`), owned, unsure},
		"ListHasKeys":  {"a list that is owned entry by entry is the server's to judge", live(same), `{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:selector":{"f:app":{}},"f:size":{},"f:tags":{"v:\"a\"":{},"v:\"b\"":{}}}}`, unsure},
		"FieldMissing": {"a missing field is a difference", live(`{selector: {app: web}, tags: [a, b]}`), owned, different},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := parse(t, tc.live)
			obj.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: "m", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(tc.owned)},
				{Manager: "other", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:extra":{}}}`)},
			})
			got, err := compare(parse(t, intent), obj, "m")
			if err != nil || got != tc.want {
				t.Errorf("%s: want %v, got %v (%v)", tc.reason, tc.want, got, err)
			}
		})
	}
}

func TestWhatACreationMadeOwnedIsLeftAloneAsLongAsNothingChanges(t *testing.T) {
	obj := parse(t, "apiVersion: v1\nkind: X\nmetadata: {name: x}\nspec: {a: 1}")
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{".":{},"f:a":{}}}`)},
	})
	if got, err := compare(parse(t, "spec: {a: 1}"), obj, "m"); err != nil || got != equal {
		t.Errorf("a created object must not be written again: %v, %v", got, err)
	}
	if !ownsByUpdate(obj, "m") {
		t.Error("the first change must fold what the creation made owned")
	}
}

func TestMergePatchIsEmptyWhenNothingDiffers(t *testing.T) {
	base := parse(t, "spec: {replicas: 1, list: [{name: a}]}\nstatus: {x: null}")
	patch, err := mergePatch(base, base.DeepCopy())
	if err != nil || len(patch) != 0 {
		t.Errorf("want no patch, got %v, %v", patch, err)
	}
}

func TestWhatHoldsNothingIsTheServersToJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, intent, live string
		want                 verdict
	}{
		"EmptyMap":  {"the server drops an empty map of strings, and keeps an empty struct", `{data: {}}`, `{}`, unsure},
		"EmptyList": {"the same for lists", `{spec: {list: []}}`, `{spec: {}}`, unsure},
		"Nested":    {"nothing within nothing", `{spec: {a: {b: [], c: null}}}`, `{spec: {}}`, unsure},
		"OneLeaf":   {"a leaf that is missing is a difference", `{spec: {a: {b: [], c: 1}}}`, `{spec: {}}`, different},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := compare(parse(t, tc.intent), parse(t, tc.live), "m")
			if err != nil || got != tc.want {
				t.Errorf("%s: want %v, got %v (%v)", tc.reason, tc.want, got, err)
			}
		})
	}
}
