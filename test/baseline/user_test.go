package baseline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// health is the asset that these tests steer: nothing restarts by it.
const health = "node-health-check"

func TestAPatchIsInForceUntilItGoes(t *testing.T) {
	s := newScene(t, nil)
	f := s.begin(health)
	s.annotate(health, decide.AnnotationPatch, `[{"op":"replace","path":"/spec/minHealthy","value":"80%"},{"op":"test","path":"/kindred","value":1}]`)
	f.Insist(s.changed(health))
	if got := s.value(health, "spec", "minHealthy"); got != "51%" {
		t.Fatalf("a patch whose test fails is applied by half: %v", got)
	}
	s.annotate(health, decide.AnnotationPatch, `[{"op":"replace","path":"/spec/minHealthy","value":"80%"}]`)
	f.Insist(s.changed(health))
	if got := s.value(health, "spec", "minHealthy"); got != "80%" {
		t.Fatalf("it is %v", got)
	}
	if obj := s.must(health); obj.GetAnnotations()[decide.AnnotationProblem] != "" {
		t.Errorf("the problem is still told on the object: %v", obj.GetAnnotations())
	}
	// Tampering is put back to the patched value.
	s.edit("admin", health, `{"spec":{"minHealthy":"10%"}}`)
	f.Insist(s.changed(health))
	if got := s.value(health, "spec", "minHealthy"); got != "80%" {
		t.Errorf("it is %v", got)
	}
	// A typo does not take back what a valid patch has set.
	s.annotate(health, decide.AnnotationPatch, `[{"op":"replace","path":"/spec/minHealthy","value":"80%"`)
	f.Insist(s.changed(health))
	if got := s.value(health, "spec", "minHealthy"); got != "80%" {
		t.Errorf("a typo took the patch back: %v", got)
	}
	problem := s.must(health).GetAnnotations()[decide.AnnotationProblem]
	if !strings.HasPrefix(problem, decide.ReasonInvalidPatch) || s.told(health)[decide.ReasonInvalidPatch] != 2 {
		t.Errorf("on the object stands %q; Events: %v", problem, s.told(health))
	}
	s.stays(f, s.changed(health))
	s.annotate(health, decide.AnnotationPatch, "")
	f.Insist(s.changed(health))
	if obj := s.must(health); suite.Text(obj, "spec", "minHealthy") != "51%" || obj.GetAnnotations()[decide.AnnotationProblem] != "" {
		t.Errorf("the baseline is not back: %v %v", obj.Object["spec"], obj.GetAnnotations())
	}
	if got := s.told(health)[decide.ReasonPatchApplied]; got != 1 {
		t.Errorf("PatchApplied is told %d times", got)
	}
	// The function never owned the annotation: who set it can take it away.
	for _, entry := range s.must(health).GetManagedFields() {
		if entry.Manager == catalog.Manager && strings.Contains(entry.FieldsV1.GetRawString(), "kubevirt.io/patch") {
			t.Errorf("the patch annotation is owned: %s", entry.FieldsV1.GetRawString())
		}
	}
	s.stays(f, s.changed(health))
}

func TestAForbiddenPatchLeavesTheBaselineInForce(t *testing.T) {
	s := newScene(t, nil)
	f := s.run()
	f.Resync()
	before := fmt.Sprint(s.Names())
	for name, patch := range map[string]string{
		"Kind":      `[{"op":"replace","path":"/kind","value":"Secret"},{"op":"replace","path":"/apiVersion","value":"v1"}]`,
		"Document":  `[{"op":"replace","path":"","value":{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"x"}}}]`,
		"Name":      `[{"op":"replace","path":"/metadata","value":{"name":"other"}}]`,
		"Namespace": `{"metadata":{"namespace":"kube-system"}}`,
		"Move":      `[{"op":"move","from":"/metadata/name","path":"/spec/minHealthy"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			s.annotate(health, decide.AnnotationPatch, patch)
			s.edit("admin", health, `{"spec":{"minHealthy":"10%"}}`)
			s.edit("admin", "psi-enable", `{"spec":{"kernelArguments":["psi=0"]}}`)
			told := s.told(health)[decide.ReasonInvalidPatch]
			s.pass(time.Hour)
			f.Resync()
			obj := s.must(health)
			if suite.Text(obj, "spec", "minHealthy") != "51%" || !strings.Contains(obj.GetAnnotations()[decide.AnnotationProblem], "forbidden") {
				t.Errorf("it is %v, with %v", obj.Object["spec"], obj.GetAnnotations())
			}
			if got := fmt.Sprint(s.value("psi-enable", "spec", "kernelArguments")); got != "[psi=1]" {
				t.Errorf("the rest of the baseline is touched: %s", got)
			}
			if after := fmt.Sprint(s.Names()); before != after {
				t.Errorf("there were %v, there are %v", before, after)
			}
			if n := s.told(health)[decide.ReasonInvalidPatch]; n != told+1 {
				t.Errorf("it is told %d times", n-told)
			}
			s.stays(f, s.changed(health))
			// The next one starts from a good state.
			s.annotate(health, decide.AnnotationPatch, "")
			f.Insist(s.changed(health))
		})
	}
}

func TestAMachineConfigIsPatchedUnlessThatIsSwitchedOff(t *testing.T) {
	const patch = `[{"op":"add","path":"/spec/kernelArguments/-","value":"quiet"}]`
	s := newScene(t, nil)
	f := s.run()
	f.Resync()
	s.annotate("psi-enable", decide.AnnotationPatch, patch)
	f.Insist(s.changed("psi-enable"))
	if got := fmt.Sprint(s.value("psi-enable", "spec", "kernelArguments")); got != "[psi=1 quiet]" {
		t.Errorf("it is %s", got)
	}
	s.settings.PatchNodeKinds = false
	other := s.run()
	other.Resync()
	obj := s.must("psi-enable")
	if got := fmt.Sprint(s.value("psi-enable", "spec", "kernelArguments")); got != "[psi=1]" || !strings.Contains(obj.GetAnnotations()[decide.AnnotationProblem], "sensitive") {
		t.Errorf("it is %s, %v", got, obj.GetAnnotations())
	}
}

func TestIgnoredFieldsAreNotOwned(t *testing.T) {
	s := newScene(t, nil)
	f := s.run()
	f.Resync()
	s.annotate(health, decide.AnnotationIgnore, "/spec/minHealthy, /spec/unhealthyConditions/type=Ready;status=Unknown/duration")
	f.Insist(s.changed(health))
	if got := s.value(health, "spec", "minHealthy"); got != "51%" {
		t.Fatalf("giving a field up changed it: %v", got)
	}
	// Anybody can set it now, without force and without a conflict.
	_, err := s.of(health).Patch(t.Context(), asset(t, health).Object, types.ApplyPatchType, []byte(`{"apiVersion":"remediation.medik8s.io/v1alpha1","kind":"NodeHealthCheck",
		"metadata":{"name":"virt-node-health-check"},"spec":{"minHealthy":"30%","unhealthyConditions":[{"type":"Ready","status":"Unknown","duration":"9m"}]}}`), metav1.PatchOptions{FieldManager: "gitops"})
	if err != nil {
		t.Fatalf("the field is still owned: %v", err)
	}
	s.edit("admin", health, `{"spec":{"selector":{"matchLabels":{"x":"y"}}}}`)
	f.Insist(s.changed(health))
	f.Resync()
	obj := s.must(health)
	if suite.Text(obj, "spec", "minHealthy") != "30%" || !strings.Contains(fmt.Sprint(obj.Object["spec"]), "9m") {
		t.Errorf("an ignored field was changed: %v", obj.Object["spec"])
	}
	if strings.Contains(fmt.Sprint(obj.Object["spec"]), "matchLabels") {
		t.Errorf("the rest is not enforced: %v", obj.Object["spec"])
	}
	f.Rests(s.changed(health))
	s.annotate(health, decide.AnnotationIgnore, "")
	f.Insist(s.changed(health))
	if obj := s.must(health); suite.Text(obj, "spec", "minHealthy") != "51%" || strings.Contains(fmt.Sprint(obj.Object["spec"]), "9m") {
		t.Errorf("the baseline is not back: %v", obj.Object["spec"])
	}
}

func TestAnIgnoredFieldThatIsAbsentIsNotMade(t *testing.T) {
	s := newScene(t, nil)
	f := s.begin(health)
	s.annotate(health, decide.AnnotationIgnore, "/spec/remediationTemplate,/spec/nowhere,relative")
	f.Insist(s.changed(health))
	s.edit("admin", health, `{"spec":{"remediationTemplate":null,"minHealthy":"10%"}}`)
	f.Insist(s.changed(health))
	obj := s.must(health)
	if strings.Contains(fmt.Sprint(obj.Object["spec"]), "remediationTemplate") || suite.Text(obj, "spec", "minHealthy") != "51%" {
		t.Errorf("it is %v", obj.Object["spec"])
	}
	if problem := obj.GetAnnotations()[decide.AnnotationProblem]; !strings.Contains(problem, "nowhere") || !strings.Contains(problem, "relative") || s.told(health)[decide.ReasonInvalidIgnoreFields] != 2 {
		t.Errorf("pointers to nowhere are told as %q and %v", problem, s.told(health))
	}
	s.stays(f, s.changed(health))
}

func TestAnUnmanagedObjectIsNotTouched(t *testing.T) {
	s := newScene(t, nil)
	f := s.run()
	f.Resync()
	s.annotate(health, decide.AnnotationMode, "unmanaged")
	s.edit("admin", health, `{"spec":{"minHealthy":"10%"},"metadata":{"labels":{"platform.kubevirt.io/managed-by":null}}}`)
	version := s.must(health).GetResourceVersion()
	f.Insist(s.changed(health))
	f.Resync()
	if s.must(health).GetResourceVersion() != version || s.outcome(health) != decide.OptedOut || s.told(health)[decide.ReasonUnmanagedMode] != 1 {
		t.Errorf("it was written, is %s, told %v", s.outcome(health), s.told(health))
	}
	if metrics := grep(f.Metrics(), `name="virt-node-health-check"`); !strings.Contains(metrics, `type="unmanaged"`) || strings.Contains(metrics, "compliance") {
		t.Error(metrics)
	}
	f.Rests(s.changed(health))
	s.annotate(health, decide.AnnotationMode, "unmangaed")
	f.Insist(s.changed(health))
	obj := s.must(health)
	if suite.Text(obj, "spec", "minHealthy") != "51%" || !strings.Contains(obj.GetAnnotations()[decide.AnnotationProblem], "unmangaed") {
		t.Errorf("a mode that nobody knows is no mode, and is told: %v", obj.GetAnnotations())
	}
}

func TestAPauseByHandHoldsUntilItGoes(t *testing.T) {
	s := newScene(t, nil)
	f := s.begin(health)
	s.annotate(health, decide.AnnotationPaused, "true")
	s.edit("admin", health, `{"spec":{"minHealthy":"10%"}}`)
	f.Insist(s.changed(health))
	if got := s.value(health, "spec", "minHealthy"); got != "10%" || s.outcome(health) != decide.Paused {
		t.Errorf("it is %v, %s", got, s.outcome(health))
	}
	if metrics := grep(f.Metrics(), `name="virt-node-health-check"`); !strings.Contains(grep(metrics, "compliance"), "} 0") || !strings.Contains(grep(metrics, "paused"), "} 1") {
		t.Errorf("what is paused and differs does not comply:\n%s", metrics)
	}
	s.stays(f, s.changed(health))
	s.annotate(health, decide.AnnotationPaused, "")
	f.Insist(s.changed(health))
	if got := s.value(health, "spec", "minHealthy"); got != "51%" {
		t.Errorf("it is %v", got)
	}
}

func TestTheReportTellsWhatIsSwitchedOff(t *testing.T) {
	s := newScene(t, nil)
	f := s.run()
	f.Resync()
	s.annotate(health, decide.AnnotationPatch, `[{"op":"replace","path":"/spec/minHealthy","value":"80%"}]`)
	s.annotate(health, decide.AnnotationIgnore, "/spec/selector")
	s.annotate("psi-enable", decide.AnnotationMode, "unmanaged")
	f.Resync()
	report := suite.Text(s.Must(kind.ConfigMaps, decide.StateName), "data", "report.yaml")
	for _, part := range []string{"asset: node-health-check", "patchOperations: 1", "- /spec/selector", "outcome: Unmanaged", "outcome: Inactive", "annotation platform.kubevirt.io/enable-aaq"} {
		if !strings.Contains(report, part) {
			t.Errorf("the report lacks %q:\n%s", part, report)
		}
	}
}
