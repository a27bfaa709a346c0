package decide

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
)

// steered is what an asset comes to by its user's annotations.
func steered(t *testing.T, a catalog.Asset, desired *unstructured.Unstructured, patch, ignore string) (Finding, string) {
	t.Helper()
	live := object(t, lives)
	live.SetAnnotations(map[string]string{AnnotationPatch: patch, AnnotationIgnore: ignore})
	l := &looker{in: Input{Settings: DefaultSettings()}}
	f := Finding{Asset: a, Desired: desired, Live: live}
	return f, l.steer(&f)
}

// FuzzSteer: whatever both annotations say together, what is applied is the same object
// of the same kind with the baseline's label, what cannot be used is told, and the same
// wishes come to the same bytes.
func FuzzSteer(f *testing.F) {
	for _, seed := range [][2]string{
		{`[{"op":"replace","path":"/spec/one","value":2}]`, "/spec/one"},
		{`[{"op":"remove","path":"/metadata/labels"}]`, "/metadata/labels/app"},
		{`{"metadata":{"labels":null,"annotations":{"platform.kubevirt.io/mode":"unmanaged"}}}`, "/metadata/annotations"},
		{`[{"op":"add","path":"/spec/conditions/0","value":{"type":"Ready","status":"False"}}]`, "/spec/conditions/type=Ready;status=False"},
		{`[{"op":"replace","path":"/spec/conditions","value":[1,null,"x"]}]`, "/spec/conditions/0/duration"},
		{`[{"op":"replace","path":"/spec","value":[]}]`, "/spec/one"},
		{`[{"op":"replace","path":"/kind","value":"Secret"}]`, "/kind"},
		{`[{"op":"replace","path":"/spec/selector","value":null}]`, "/spec/selector/matchLabels/x"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, patch, ignore string) {
		got, held := steered(t, masked, object(t, wanted), patch, ignore)
		again, _ := steered(t, masked, object(t, wanted), patch, ignore)
		if diff := cmp.Diff(got.Desired.Object, again.Desired.Object); diff != "" || !slices.Equal(got.Record.Problems, again.Record.Problems) {
			t.Fatalf("the same wishes come to something else:\n%s", diff)
		}
		if held != "" {
			return
		}
		before := object(t, wanted)
		after := got.Desired
		if after.GroupVersionKind() != before.GroupVersionKind() || after.GetName() != before.GetName() || after.GetNamespace() != before.GetNamespace() {
			t.Fatalf("%q and %q make another object: %v", patch, ignore, after.Object)
		}
		if after.GetLabels()[catalog.LabelManaged] != catalog.Manager {
			t.Fatalf("%q and %q take the label away", patch, ignore)
		}
		for _, key := range []string{AnnotationPatch, AnnotationIgnore, AnnotationMode, AnnotationPaused} {
			if _, found := after.GetAnnotations()[key]; found {
				t.Fatalf("%q makes the baseline own %s", patch, key)
			}
		}
		if _, problem := after.GetAnnotations()[AnnotationProblem]; problem != (len(got.Record.Problems) > 0) {
			t.Fatalf("problems %v, told %v", got.Record.Problems, problem)
		}
		_ = Differences(after, got.Live, masked)
		_ = after.DeepCopy()
	})
}
