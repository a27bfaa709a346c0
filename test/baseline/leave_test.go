package baseline

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

func TestWhatIsNotWantedAnyMoreLosesTheLabel(t *testing.T) {
	s := newScene(t, everything())
	s.Create(`{apiVersion: aaq.kubevirt.io/v1alpha1, kind: AAQ, metadata: {name: aaq}, spec: {}}`)
	f := s.run()
	f.Resync()
	aaq := s.must("aaq-operator").GetUID()
	for _, key := range []string{"enable-loadaware", "enable-aaq", "enable-cpu-manager"} {
		s.annotate(catalog.HCO, catalog.Prefix+key, "")
	}
	s.annotate(catalog.HCO, catalog.Prefix+"enable-mtv", "false")
	s.annotate(catalog.HCO, decide.AnnotationDisabled, "[{kind: MetalLB, name: '*'}]")
	mtv := fmt.Sprint(s.value("mtv-operator", "spec"))
	f.Insist(s.changed(catalog.HCO))
	if s.live("descheduler-loadaware") != nil {
		t.Error("the function made it, the catalog says delete, and it is still there")
	}
	for _, name := range []string{"aaq-operator", "kubelet-cpu-manager", "mtv-operator", "metallb-operator"} {
		obj := s.must(name)
		if _, found := obj.GetLabels()[catalog.LabelManaged]; found {
			t.Errorf("%s carries the label, and nobody looks after it", name)
		}
		for _, entry := range obj.GetManagedFields() {
			if entry.Manager == catalog.Manager {
				t.Errorf("%s is still owned: %v", name, entry)
			}
		}
	}
	if s.must("aaq-operator").GetUID() != aaq || fmt.Sprint(s.value("mtv-operator", "spec")) != mtv {
		t.Error("what a person made is gone, or values have changed")
	}
	f.Rests(s.changed(catalog.HCO), s.changed("mtv-operator"))
	// And back again.
	s.annotate(catalog.HCO, catalog.Prefix+"enable-mtv", "")
	s.annotate(catalog.HCO, decide.AnnotationDisabled, "")
	s.annotate(catalog.HCO, catalog.Prefix+"enable-loadaware", "true")
	f.Insist(s.changed(catalog.HCO))
	for _, name := range []string{"mtv-operator", "metallb-operator", "descheduler-loadaware"} {
		if s.must(name).GetLabels()[catalog.LabelManaged] != catalog.Manager {
			t.Errorf("%s is wanted again and has no label", name)
		}
	}
	// What a person made in place of ours is not deleted either.
	s.At("openshift-kube-descheduler-operator").Remove(kinds.KubeDeschedulers, "cluster")
	s.Create(`{apiVersion: operator.openshift.io/v1, kind: KubeDescheduler, metadata: {name: cluster, namespace: openshift-kube-descheduler-operator}, spec: {}}`)
	f.Insist(s.changed("descheduler-loadaware"))
	s.annotate(catalog.HCO, catalog.Prefix+"enable-loadaware", "")
	f.Insist(s.changed(catalog.HCO))
	if obj := s.live("descheduler-loadaware"); obj == nil || obj.GetLabels()[catalog.LabelManaged] != "" {
		t.Error("a person's object was deleted, or keeps the label")
	}
}

func TestTombstones(t *testing.T) {
	s := newScene(t, nil)
	crd := s.Must(kind.CRDs, "uiplugins.observability.openshift.io")
	defer s.Update(kind.CRDs, crd.GetName(), "person", func(obj *unstructured.Unstructured) { obj.Object["spec"] = crd.DeepCopy().Object["spec"] })
	// Today's definition ties names to types; the object is from before.
	s.Update(kind.CRDs, crd.GetName(), "person", func(obj *unstructured.Unstructured) {
		versions, _, _ := unstructured.NestedSlice(obj.Object, "spec", "versions")
		for _, v := range versions {
			schema, _, _ := unstructured.NestedMap(v.(map[string]any), "schema", "openAPIV3Schema")
			delete(schema, "x-kubernetes-validations")
			_ = unstructured.SetNestedMap(v.(map[string]any), schema, "schema", "openAPIV3Schema")
		}
		_ = unstructured.SetNestedSlice(obj.Object, versions, "spec", "versions")
	})
	bury := func(labels string) bool {
		obj := suite.Parse(t, `{apiVersion: observability.openshift.io/v1alpha1, kind: UIPlugin, metadata: {name: kubevirt-plugin, labels: `+labels+`}, spec: {type: Monitoring}}`)
		_, err := s.In(kinds.UIPlugins).Create(t.Context(), obj, metav1.CreateOptions{})
		return err == nil
	}
	for range 100 {
		if bury(`{platform.kubevirt.io/managed-by: virt-platform-autopilot}`) {
			break
		}
	}
	f := s.run()
	f.Resync()
	if s.Get(kinds.UIPlugins, "kubevirt-plugin") != nil {
		t.Fatalf("it is still there:\n%s", f.Log)
	}
	if got := s.told(""); got[decide.ReasonTombstoneDeleted] != 1 {
		t.Errorf("Events: %v", got)
	}
	bury(`{}`)
	defer s.Remove(kinds.UIPlugins, "kubevirt-plugin")
	f.Resync()
	f.Resync()
	if s.Get(kinds.UIPlugins, "kubevirt-plugin") == nil {
		t.Error("an object that does not carry the label was deleted")
	}
	if got := s.told(""); got[decide.ReasonTombstoneSkipped] != 1 {
		t.Errorf("Events: %v", got)
	}
	if !strings.Contains(grep(f.Metrics(), "virt_platform_tombstone_status"), "-2") {
		t.Error(grep(f.Metrics(), "virt_platform_tombstone_status"))
	}
}

func TestMalformedExclusionsStopEverything(t *testing.T) {
	s := newScene(t, map[string]string{decide.AnnotationDisabled: "[MetalLB/metallb]"})
	f := s.run()
	f.Resync()
	for _, a := range catalog.BuiltIn().Assets {
		if obj := s.live(a.Name); obj != nil && a.Name != catalog.HCO {
			t.Errorf("%s was made, and may be what was to be excluded", a.Name)
		}
	}
	if s.must(catalog.HCO).GetLabels()[catalog.LabelManaged] != "" || s.told("")[decide.ReasonInvalidExclusion] != 1 {
		t.Errorf("the HyperConverged was written, or nobody was told: %v", s.told(""))
	}
	f.Rests(s.changed(catalog.HCO))
	s.annotate(catalog.HCO, decide.AnnotationDisabled, "[{kind: MetalLB, name: metallb}]")
	f.Insist(s.changed(catalog.HCO))
	if s.live("metallb-operator") != nil || s.live("psi-enable") == nil {
		t.Error("the rule excludes MetalLB and nothing else")
	}
}

// TestTheBaselineCanBeStoppedOrNarrowed by the annotation that its successor has.
func TestTheBaselineCanBeStoppedOrNarrowed(t *testing.T) {
	s := newScene(t, map[string]string{decide.AnnotationAutopilot: "false"})
	f := s.run()
	f.Resync()
	if s.live("psi-enable") != nil || s.must(catalog.HCO).GetLabels()[catalog.LabelManaged] != "" {
		t.Error("it is stopped, and has written")
	}
	s.annotate(catalog.HCO, decide.AnnotationAutopilot, "psi-enable, node-health-check, psy")
	f.Insist(s.changed(catalog.HCO))
	if s.live("psi-enable") == nil || s.live("swap-enable") != nil || s.told("")[decide.ReasonUnknownAssets] != 1 {
		t.Errorf("what is named is looked after, and nothing else: %v, %v", s.outcomes(), s.told(""))
	}
	f.Rests(s.changed(catalog.HCO))
	s.annotate(catalog.HCO, decide.AnnotationAutopilot, "psi-enable")
	f.Insist(s.changed(catalog.HCO))
	if _, found := s.must(health).GetLabels()[catalog.LabelManaged]; found {
		t.Error("what is not named any more keeps the label")
	}
	s.annotate(catalog.HCO, decide.AnnotationAutopilot, "false")
	s.edit("admin", "psi-enable", `{"spec":{"kernelArguments":["psi=0"]}}`)
	f.Insist(s.changed(catalog.HCO))
	f.Insist(s.changed("psi-enable"))
	if got := fmt.Sprint(s.value("psi-enable", "spec", "kernelArguments")); got != "[psi=0]" || s.must("psi-enable").GetLabels()[catalog.LabelManaged] == "" {
		t.Errorf("it is stopped, and what there was became %s", got)
	}
	s.annotate(catalog.HCO, decide.AnnotationAutopilot, "")
	f.Insist(s.changed(catalog.HCO))
	if got := fmt.Sprint(s.value("psi-enable", "spec", "kernelArguments")); got != "[psi=1]" || s.live("swap-enable") == nil {
		t.Errorf("it goes on, and has left %s", got)
	}
}
