package catalog

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden anew")

// facts are those of a cluster that has everything.
func facts() Facts {
	hardware := map[string]any{}
	for _, name := range []string{"gpuPresent", "numaNodesPresent", "pciDevicesPresent", "usbDevicesPresent", "vfioCapable"} {
		hardware[name] = true
	}
	return Facts{
		"hcoNamespace": "openshift-cnv", "hcoVersion": "v1beta1", "opinions": true, "runbooks": "https://runbooks",
		"managementCPUs": "0-1,52-53", "hardware": hardware,
		"descheduler": map[string]any{"profile": "LongLifecycle", "background": true, "utilization": "PrometheusCPUCombined", "total": int64(5), "node": int64(2)},
	}
}

func TestTheCatalogIsWhole(t *testing.T) {
	want := []string{
		HCO, "descheduler-loadaware", "kubelet-cpu-manager", "kubelet-perf-settings", "metallb-operator", "mtv-operator", "node-health-check",
		"numa-topology", "observability-operator", "pci-passthrough", "prometheus-alerts", "psi-enable", "swap-enable",
		"aaq-operator", "vfio-assign", "usb-passthrough",
	}
	var got []string
	for _, a := range BuiltIn().Assets {
		got = append(got, a.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the order is by reconcile_order and name (-want +got):\n%s", diff)
	}
}

// TestContentsAreExact: a changed byte of a MachineConfig restarts every node, so what
// is rendered is written down, and differs from what it was only on purpose.
func TestContentsAreExact(t *testing.T) {
	var out strings.Builder
	for _, a := range BuiltIn().Assets {
		obj, err := a.Render(facts())
		if err != nil || obj == nil {
			t.Errorf("%s: %v, %v", a.Name, obj, err)
			continue
		}
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n# " + a.Name + "\n")
		out.Write(text)
	}
	const golden = "testdata/assets.yaml"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("run the test with -update if it is meant so (-golden +got):\n%s", diff)
	}
}

func TestThePinningFileIsTheKnownOne(t *testing.T) {
	const want = "eyAKICAibWFuYWdlbWVudCI6IHsKICAgICJjcHVzZXQiOiAiMC0xLDUyLTUzIgogIH0KfQo="
	if got, err := pinning("0-1,52-53"); err != nil || got != want {
		t.Errorf("%v: %s", err, got)
	}
}

func TestAlertsKeepPrometheusPlaceholders(t *testing.T) {
	a, _ := BuiltIn().Find("prometheus-alerts")
	obj, err := a.Render(facts())
	if err != nil {
		t.Fatal(err)
	}
	text, _ := yaml.Marshal(obj.Object)
	for _, part := range []string{"{{ $labels.kind }}", "{{ $value }}", "platform.kubevirt.io/reconcile-paused", "VirtPlatformTombstoneStuck"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%q is not in the alerts", part)
		}
	}
}

func TestRenderingNothingIsNotApplicable(t *testing.T) {
	a, _ := BuiltIn().Find("numa-topology")
	f := facts()
	f["hardware"].(map[string]any)["numaNodesPresent"] = false
	if obj, err := a.Render(f); err != nil || obj != nil {
		t.Errorf("%v, %v", obj, err)
	}
}

func TestNewerHyperConvergedsGetNoFeatureGates(t *testing.T) {
	a, _ := BuiltIn().Find(HCO)
	f := facts()
	f["hcoVersion"] = "v1"
	obj, err := a.Render(f)
	if err != nil {
		t.Fatal(err)
	}
	spec := obj.Object["spec"].(map[string]any)
	if _, found := spec["featureGates"]; found || obj.GetAPIVersion() != "hco.kubevirt.io/v1" || spec["virtualization"] == nil {
		t.Errorf("the list of gates is atomic, an apply would take the others away: %v", spec)
	}
}

func TestACatalogThatIsWrongIsRefused(t *testing.T) {
	const asset = `{name: a, path: p, summary: s, tier: always, phase: 1, install: always, component: MachineConfig, apiVersion: machineconfiguration.openshift.io/v1, object: o, reconcile_order: 1`
	const template = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: o}\n"
	cases := map[string]struct {
		reason, text, template, want string
	}{
		"UnknownKey":        {"a typo must not be ignored", `assets: [` + asset + `, fase: 1}]`, template, "fase"},
		"Twice":             {"names are ids", `assets: [` + asset + `}, ` + asset + `}]`, template, "twice"},
		"OptInForNobody":    {"it could never be chosen", `assets: [` + strings.Replace(asset, "install: always", "install: opt-in", 1) + `}]`, template, "never be chosen"},
		"UnknownCondition":  {"it would hold by accident", `assets: [` + asset + `, conditions: [{type: moon}]}]`, template, "unknown"},
		"ConditionLacks":    {"a field is missing", `assets: [` + asset + `, conditions: [{type: annotation}]}]`, template, `"key"`},
		"HCOAlone":          {"order 0 is taken", `assets: [` + strings.Replace(asset, "reconcile_order: 1", "reconcile_order: 0", 1) + `}]`, template, "alone"},
		"UnknownKind":       {"nobody could apply it", `assets: [` + strings.Replace(asset, "MachineConfig", "Moon", 1) + `}]`, template, "Moon"},
		"Scope":             {"the kind has no namespace", `assets: [` + asset + `, namespace: n}]`, template, "scope"},
		"Template":          {"it does not parse", `assets: [` + asset + `}]`, "[[ if ]]", "template"},
		"TombstoneUnmarked": {"anybody's object would go", `tombstones: [{apiVersion: metallb.io/v1beta1, kind: MetalLB, metadata: {name: a}}]`, template, "label"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.text), func(string) ([]byte, error) { return []byte(tc.template), nil })
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestWhatATemplateMayNotMake(t *testing.T) {
	const head = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: o}\n"
	for name, tc := range map[string]struct{ template, want string }{
		"TwoDocuments": {head + "---\n" + head, "2 documents"},
		"AnotherName":  {strings.Replace(head, "name: o", "name: p", 1), "the catalog says"},
		"UnknownFact":  {head + "spec: [[ .nothing ]]", "nothing"},
		"TooDeep":      {head + "spec: " + strings.Repeat("{a: ", 101) + "1" + strings.Repeat("}", 101), "deeper"},
		"DoubledKey":   {head + "spec: {a: 1, a: 2}", "already set"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse([]byte(`assets: [{name: a, path: p, summary: s, tier: always, phase: 1, install: always, component: MachineConfig, apiVersion: machineconfiguration.openshift.io/v1, object: o, reconcile_order: 1}]`),
				func(string) ([]byte, error) { return []byte(tc.template), nil })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Assets[0].Render(facts()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want an error with %q, got %v", tc.want, err)
			}
		})
	}
}
