package baseline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

func TestEveryAssetIsAcceptedAsItIs(t *testing.T) {
	s := newScene(t, everything())
	s.Create(hardware)
	f := s.run()
	f.Resync()
	if diff := cmp.Diff(map[string]string{}, s.outcomes()); diff != "" {
		t.Fatalf("not as they should be (-want +got):\n%s\n%s", diff, f.Log)
	}
	for _, a := range catalog.BuiltIn().Assets {
		if got := s.must(a.Name).GetLabels()[catalog.LabelManaged]; got != catalog.Manager {
			t.Errorf("%s has the label %q", a.Name, got)
		}
	}
	reads, wrote := f.Asked()
	t.Logf("the first pass: %d reads, %d writes", len(reads), len(wrote))
	before := s.versions()
	f.Resync()
	reads, wrote = f.Asked()
	dryRuns := strings.Count(f.Metrics(), "dry-run")
	t.Logf("a pass at the fixpoint: %d requests that write nothing, %v; %d kinds of dry-runs", len(reads), wrote, dryRuns)
	var events []cloudevents.Event
	for _, a := range catalog.BuiltIn().Assets {
		events = append(events, s.changed(a.Name))
	}
	f.Rests(events...)
	if diff := cmp.Diff(before, s.versions()); diff != "" {
		t.Errorf("a second pass has written (-before +after):\n%s", diff)
	}
	// A copy that knows nothing yet finds the same.
	other := s.run()
	other.Resync()
	if w := writes(other); len(w) > 0 {
		t.Errorf("a second copy writes %v", w)
	}
	if n := s.told("")[decide.ReasonAssetApplied]; n != len(events) {
		t.Errorf("%d Events tell of %d assets", n, len(events))
	}
	if n := s.told("")[decide.ReasonSucceeded]; n != 1 {
		t.Errorf("success is told %d times: %v", n, s.notes(decide.ReasonSucceeded))
	}
	metrics := f.Metrics()
	for _, want := range []string{`virt_platform_compliance_status{group="metallb.io",kind="MetalLB",name="metallb",namespace="metallb-system"} 1`, `virt_platform_missing_dependency{group="aaq.kubevirt.io"`} {
		if !strings.Contains(strings.ReplaceAll(metrics, `otel_scope_name="github.com/slipway-dev/slipway/functions",otel_scope_schema_url="",otel_scope_version="",`, ""), want) {
			t.Errorf("the metrics lack %s:\n%s", want, grep(metrics, "virt_platform"))
		}
	}
}

func grep(text, part string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, part) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func TestTheHyperConvergedComesFirst(t *testing.T) {
	s := newScene(t, everything())
	f := s.run()
	f.Insist(s.changed(catalog.HCO))
	if got := s.value("descheduler-loadaware", "spec", "evictionLimits", "total"); got != int64(5) {
		t.Fatalf("the limit is %v", got)
	}
	// An admin's value is put back, unless the admin says that it is his.
	s.edit("admin", catalog.HCO, `{"spec":{"liveMigrationConfig":{"parallelMigrationsPerCluster":45}}}`)
	f.Insist(s.changed(catalog.HCO))
	if got := s.value(catalog.HCO, "spec", "liveMigrationConfig", "parallelMigrationsPerCluster"); got != int64(5) {
		t.Errorf("it is %v", got)
	}
	s.annotate(catalog.HCO, decide.AnnotationPatch, `[{"op":"replace","path":"/spec/liveMigrationConfig/parallelMigrationsPerCluster","value":7}]`)
	f.Insist(s.changed(catalog.HCO))
	if got := s.value("descheduler-loadaware", "spec", "evictionLimits", "total"); got != int64(7) {
		t.Errorf("the limit is %v: it follows the HyperConverged as it came to be", got)
	}
	s.annotate(catalog.HCO, decide.AnnotationIgnore, "/spec/liveMigrationConfig/parallelMigrationsPerCluster")
	s.annotate(catalog.HCO, decide.AnnotationPatch, "")
	s.edit("admin", catalog.HCO, `{"spec":{"liveMigrationConfig":{"parallelMigrationsPerCluster":9}}}`)
	f.Insist(s.changed(catalog.HCO))
	if got := s.value("descheduler-loadaware", "spec", "evictionLimits", "total"); got != int64(9) {
		t.Errorf("the limit is %v", got)
	}
	f.Rests(s.changed(catalog.HCO), s.changed("descheduler-loadaware"))
	// One that is deleted does not come back, and what there is stays.
	s.Remove(hcos, decide.HCOName)
	f.Insist(s.event("delete", catalog.HCO))
	f.Resync()
	if s.live(catalog.HCO) != nil || s.live("descheduler-loadaware") == nil {
		t.Error("the HyperConverged came back, or took something along")
	}
}

func TestAdoptionKeepsWhatOthersSet(t *testing.T) {
	s := newScene(t, nil)
	s.Create(`{apiVersion: metallb.io/v1beta1, kind: MetalLB, metadata: {name: metallb, namespace: metallb-system, labels: {team: net}}, spec: {logLevel: debug}}`)
	s.Create(`{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {name: 99-openshift-machineconfig-worker-psi-karg,
		labels: {machineconfiguration.openshift.io/role: worker}}, spec: {kernelArguments: ["psi=1"]}}`)
	uid := s.must("metallb-operator").GetUID()
	generation := s.must("psi-enable").GetGeneration()
	f := s.run()
	f.Resync()
	metallb := s.must("metallb-operator")
	if metallb.GetUID() != uid || metallb.GetLabels()["team"] != "net" || suite.Text(metallb, "spec", "logLevel") != "debug" || metallb.GetLabels()[catalog.LabelManaged] != catalog.Manager {
		t.Errorf("it is %v", metallb.Object)
	}
	if s.must("psi-enable").GetGeneration() != generation {
		t.Error("a MachineConfig with the right content got another one: that restarts nodes")
	}
}

func TestAMissingDefinitionIsToldOnceAndFollowed(t *testing.T) {
	s := newScene(t, nil)
	crd := s.Must(kind.CRDs, "metallbs.metallb.io")
	s.Remove(kind.CRDs, "metallbs.metallb.io")
	s.Await(kind.CRDs, "metallbs.metallb.io", "is gone", suite.Gone)
	restored := false
	restore := func() {
		if restored {
			return
		}
		restored = true
		s.Apply(string(must(t)(suite.Bare(withoutStatus(crd)).MarshalJSON())))
		s.Await(kind.CRDs, "metallbs.metallb.io", "is established", func(obj *unstructured.Unstructured) bool {
			return decide.Installed(obj, "v1beta1")
		})
	}
	defer restore()
	f := s.run()
	f.Resync()
	f.Resync()
	if got := s.outcome("metallb-operator"); got != decide.CRDMissing {
		t.Fatalf("it is %s", got)
	}
	if n := s.told("metallb-operator")[decide.ReasonCRDMissing]; n != 1 {
		t.Errorf("it is told %d times", n)
	}
	if !strings.Contains(f.Metrics(), `virt_platform_missing_dependency`) || s.outcome("swap-enable") != decide.InSync {
		t.Error("no metric, or the others are not applied")
	}
	f.Rests()
	restore()
	event := suite.Changed("update", kind.CRDs.APIVersion(), kind.CRDs.Kind, "", "metallbs.metallb.io")
	f.Insist(event)
	if s.live("metallb-operator") == nil || s.told("metallb-operator")[decide.ReasonCRDDiscovered] != 1 {
		t.Errorf("the asset did not follow: %v", s.told("metallb-operator"))
	}
	f.Asked()
	f.Insist(event)
	if reads, wrote := f.Asked(); len(reads) > 1 || len(wrote) > 0 {
		t.Errorf("a definition that nobody waits for costs %v, %v", reads, wrote)
	}
}

func withoutStatus(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	delete(obj.Object, "status")
	return obj
}

func must(t *testing.T) func(raw []byte, err error) []byte {
	return func(raw []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
}

func TestAMissingNamespaceIsNoWar(t *testing.T) {
	s := newScene(t, nil)
	s.settings.HCONamespace = s.NS
	f := s.run()
	// No controller takes namespaces away here: one that is going counts as gone.
	s.Remove(kind.Namespaces, "openshift-mtv")
	defer func() { finalize(s, "openshift-mtv") }()
	f.Resync()
	f.Resync()
	if got := s.outcome("mtv-operator"); got != decide.NamespaceMissing {
		t.Errorf("it is %s", got)
	}
	if r := s.memory().Assets["mtv-operator"]; len(r.Writes) > 0 || len(r.Oppositions) > 0 {
		t.Errorf("it uses budget: %+v", r)
	}
}

// finalize ends a namespace that is going, and makes it anew.
func finalize(s *scene, name string) {
	obj := s.Get(kind.Namespaces, name)
	if obj == nil {
		return
	}
	_ = unstructured.SetNestedSlice(obj.Object, []any{}, "spec", "finalizers")
	if _, err := s.In(kind.Namespaces).Update(s.t.Context(), obj, metav1.UpdateOptions{}, "finalize"); err != nil {
		s.t.Fatal(err)
	}
	s.Await(kind.Namespaces, name, "is gone", suite.Gone)
	s.Apply(string(must(s.t)(namespace(name).MarshalJSON())))
}

func TestOlderDeschedulersGetWhatTheyKnow(t *testing.T) {
	cases := map[string]struct {
		reason   string
		profiles []any
		drop     [][]string
		want     string
		leftOut  []string
	}{
		"4.17": {
			reason:   "no profile for KubeVirt, no limit per node",
			profiles: []any{"LifecycleAndUtilization", "LongLifecycle"},
			drop:     [][]string{{"evictionLimits", "properties", "node"}, {"profileCustomizations", "properties", "devActualUtilizationProfile"}},
			want:     `map[deschedulingIntervalSeconds:60 evictionLimits:map[total:5] logLevel:Normal managementState:Managed mode:Automatic profileCustomizations:map[devEnableEvictionsInBackground:true] profiles:[LongLifecycle]]`,
			leftOut:  []string{"spec.evictionLimits.node", "spec.profileCustomizations.devActualUtilizationProfile"},
		},
		"4.19": {
			reason:   "a preview of the profile",
			profiles: []any{"LongLifecycle", "DevKubeVirtRelieveAndMigrate"},
			drop:     [][]string{{"evictionLimits", "properties", "node"}},
			want:     `map[deschedulingIntervalSeconds:60 evictionLimits:map[total:5] logLevel:Normal managementState:Managed mode:Automatic profileCustomizations:map[devActualUtilizationProfile:PrometheusCPUMemoryCombinedProfile] profiles:[DevKubeVirtRelieveAndMigrate]]`,
			leftOut:  []string{"spec.evictionLimits.node"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, everything())
			crd := s.Must(kind.CRDs, "kubedeschedulers.operator.openshift.io")
			defer s.Update(kind.CRDs, crd.GetName(), "person", func(obj *unstructured.Unstructured) { obj.Object["spec"] = crd.DeepCopy().Object["spec"] })
			s.Update(kind.CRDs, crd.GetName(), "person", func(obj *unstructured.Unstructured) {
				versions, _, _ := unstructured.NestedSlice(obj.Object, "spec", "versions")
				spec := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties"}
				version := versions[0].(map[string]any)
				_ = unstructured.SetNestedSlice(version, tc.profiles, append(slices.Clone(spec), "profiles", "items", "enum")...)
				for _, path := range tc.drop {
					unstructured.RemoveNestedField(version, append(slices.Clone(spec), path...)...)
				}
				_ = unstructured.SetNestedSlice(obj.Object, versions, "spec", "versions")
			})
			s.Create(`{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {name: descheduler-rules, namespace: openshift-kube-descheduler-operator},
				spec: {groups: [{name: a, rules: [{record: "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m", expr: "1"}]}]}}`)
			defer s.At("openshift-kube-descheduler-operator").Remove(kinds.PrometheusRules, "descheduler-rules")
			f := s.run()
			var got string
			// The server serves a changed schema a moment after it took it.
			for range 50 {
				f.Insist(suite.Changed("update", kinds.PrometheusRules.APIVersion(), "PrometheusRule", "openshift-kube-descheduler-operator", "descheduler-rules"))
				if obj := s.live("descheduler-loadaware"); obj != nil {
					if got = fmt.Sprint(obj.Object["spec"]); got == tc.want {
						break
					}
				}
			}
			if got != tc.want {
				t.Errorf("%s:\n%s, want\n%s\n%+v", tc.reason, got, tc.want, s.memory().Assets["descheduler-loadaware"])
			}
			if diff := cmp.Diff(tc.leftOut, s.memory().Assets["descheduler-loadaware"].LeftOut); diff != "" {
				t.Errorf("what is left out is reported (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheManifestGrantsWhatIsDeclared(t *testing.T) { suit.CheckManifest(t) }
