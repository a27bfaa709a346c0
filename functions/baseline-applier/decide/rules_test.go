package decide

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
)

func TestHardwareIsWhatItSays(t *testing.T) {
	cases := map[string]struct {
		reason, node string
		want         []string
	}{
		"KubeVirtNode": {"every KubeVirt node has these", `{status: {capacity: {cpu: 1, memory: 1, pods: 1, ephemeral-storage: 1, hugepages-16Gi: 0, attachable-volumes-x: 1, devices.kubevirt.io/kvm: 1k}}}`, nil},
		"Device":       {"a resource of a device plugin", `{status: {capacity: {intel.com/qat: 1}}}`, []string{PCIDevices}},
		"GPU":          {"a GPU is a PCI device too", `{status: {capacity: {nvidia.com/gpu: 1}}}`, []string{GPU, PCIDevices}},
		"PCILabel":     {"Node Feature Discovery's labels", `{metadata: {labels: {feature.node.kubernetes.io/pci-0300_10de.present: "true"}}}`, []string{PCIDevices}},
		"OldPCILabel":  {"the seed's label", `{metadata: {labels: {feature.node.kubernetes.io/pci-present: "true"}}}`, []string{PCIDevices}},
		"SMT":          {"threads are no NUMA", `{metadata: {labels: {feature.node.kubernetes.io/cpu-hardware_multithreading: "true"}}}`, nil},
		"NUMA":         {"memory is", `{metadata: {labels: {feature.node.kubernetes.io/memory-numa: "true"}}}`, []string{NUMANodes}},
		"Topology":     {"or KubeVirt's annotation", `{metadata: {annotations: {kubevirt.io/topology-manager-policy: best-effort}}}`, []string{NUMANodes}},
		"IOMMU":        {"VFIO needs it on", `{metadata: {labels: {feature.node.kubernetes.io/iommu-enabled: "false"}}}`, nil},
		"VFIO":         {"it is on", `{metadata: {labels: {feature.node.kubernetes.io/iommu-enabled: "true"}}}`, []string{VFIOCapable}},
		"USB":          {"with class and vendor", `{metadata: {labels: {feature.node.kubernetes.io/usb-ef_1234_5678.present: "true"}}}`, []string{USBDevices}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := Detect(object(t, tc.node))
			var got []string
			for _, detector := range Detectors() {
				if found[detector] {
					got = append(got, detector)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOnlyNodesThatChangeSomethingMatter(t *testing.T) {
	usb := func(name string) *unstructured.Unstructured {
		return object(t, `{metadata: {name: `+name+`, labels: {feature.node.kubernetes.io/usb-present: "true"}}}`)
	}
	providers := Providers([]unstructured.Unstructured{*usb("b"), *usb("a")})
	if diff := cmp.Diff(map[string]string{USBDevices: "a"}, providers); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	plain := object(t, `{metadata: {name: a}}`)
	for name, tc := range map[string]struct {
		node string
		now  *unstructured.Unstructured
		want bool
	}{
		"Heartbeat": {"a", usb("a"), false}, "SecondProvider": {"b", usb("b"), false}, "SecondGoes": {"b", nil, false},
		"ProviderGoes": {"a", nil, true}, "ProviderLosesIt": {"a", plain, true},
		"News": {"c", object(t, `{metadata: {name: c, labels: {feature.node.kubernetes.io/memory-numa: "true"}}}`), true},
	} {
		if got := Matters(providers, tc.node, tc.now); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestExclusions(t *testing.T) {
	cases := map[string]struct {
		reason, text string
		excluded     []string
		broken       int
		err          string
	}{
		"None":       {"an empty value has no rules", "", nil, 0, ""},
		"Name":       {"kind and name", "[{kind: MetalLB, name: metallb}]", []string{"MetalLB metallb-system/metallb"}, 0, ""},
		"Glob":       {"names are globs", "[{kind: MachineConfig, name: '50-*'}]", []string{"MachineConfig 50-virt-numa"}, 0, ""},
		"KindExact":  {"kinds are not", "[{kind: 'M*', name: '*'}, {kind: metallb, name: '*'}]", nil, 0, ""},
		"Namespace":  {"a namespace keeps cluster-scoped objects out", "[{kind: MachineConfig, name: '*', namespace: '?*'}]", nil, 0, ""},
		"Empty":      {"unless it matches nothing at all", "[{kind: MachineConfig, name: '50-*', namespace: '*'}]", []string{"MachineConfig 50-virt-numa"}, 0, ""},
		"BrokenGlob": {"one bad rule costs itself only", "[{kind: MetalLB, name: '['}, {kind: MetalLB, name: metallb}]", []string{"MetalLB metallb-system/metallb"}, 1, ""},
		"Text":       {"the form of old documents is malformed", "[MetalLB/metallb]", nil, 0, "cannot read"},
		"NoName":     {"a name has to be given", "[{kind: MetalLB}]", nil, 0, "lacks"},
		"Typo":       {"an unknown key is a typo", "[{kind: MetalLB, name: a, namspace: b}]", nil, 0, "cannot read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rules, broken, err := Exclusions(tc.text)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var got []string
			for _, o := range [][3]string{{"MachineConfig", "", "50-virt-numa"}, {"MetalLB", "metallb-system", "metallb"}} {
				if excluded(rules, o[0], o[1], o[2]) {
					got = append(got, describe(o[0], o[1], o[2]))
				}
			}
			if diff := cmp.Diff(tc.excluded, got); diff != "" || len(broken) != tc.broken {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, broken, diff)
			}
		})
	}
}

func TestWhatMayBeLookedAfter(t *testing.T) {
	c := catalog.Catalog{Assets: []catalog.Asset{{Name: "a", Group: "g"}, {Name: "b", Group: "g"}, {Name: "c"}}}
	for name, tc := range map[string]struct {
		reason, text string
		idle         bool
		want         []string
		unknown      []string
	}{
		"True": {"all of it", " true ", false, []string{"a", "b", "c"}, nil}, "False": {"nothing at all", "false", true, nil, nil},
		"Empty": {"nothing at all", " ", true, nil, nil}, "Commas": {"a list of nothing", ", ,", true, nil, nil},
		"Names": {"those alone", "a, c,", false, []string{"a", "c"}, nil}, "Group": {"all of a group", "g", false, []string{"a", "b"}, nil},
		"Typo": {"it is told", "cc, a", false, []string{"a"}, []string{"cc"}},
	} {
		got, unknown := allowedBy(map[string]string{AnnotationAutopilot: tc.text}, c)
		var names []string
		for _, a := range c.Assets {
			if !got.idle && got.allows(a) {
				names = append(names, a.Name)
			}
		}
		if got.idle != tc.idle || !slices.Equal(names, tc.want) || !slices.Equal(unknown, tc.unknown) {
			t.Errorf("%s: %s: idle %v, %v, unknown %v", name, tc.reason, got.idle, names, unknown)
		}
	}
	if got, _ := allowedBy(nil, c); got.idle || !got.allows(c.Assets[2]) {
		t.Error("without the annotation everything is looked after")
	}
}

func TestFeatureGatesInBothShapes(t *testing.T) {
	for name, tc := range map[string]struct {
		hco  string
		want bool
	}{
		"Map": {`{spec: {featureGates: {CPUManager: true}}}`, true}, "MapOff": {`{spec: {featureGates: {CPUManager: false}}}`, false},
		"List": {`{spec: {featureGates: [{name: CPUManager, state: Enabled}]}}`, true}, "ListNoState": {`{spec: {featureGates: [{name: CPUManager}]}}`, true},
		"ListOff": {`{spec: {featureGates: [{name: CPUManager, state: Disabled}]}}`, false}, "None": {`{}`, false}, "Text": {`{spec: {featureGates: a}}`, false},
	} {
		if got := FeatureGate(object(t, tc.hco), "CPUManager"); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWhoIsWanted(t *testing.T) {
	cases := map[string]struct {
		reason, annotations string
		hardware            map[string]string
		want                []string
	}{
		"Plain": {"always on, but for hardware", `{}`, map[string]string{}, []string{"kubelet-perf-settings", "metallb-operator", "mtv-operator", "node-health-check", "numa-topology", "observability-operator", "prometheus-alerts", "psi-enable", "swap-enable"}},
		"Off": {
			"the old opt-ins switch off", `{platform.kubevirt.io/openshift: "false", platform.kubevirt.io/enable-mtv: "false", platform.kubevirt.io/enable-metallb: "true"}`,
			map[string]string{PCIDevices: "n"},
			[]string{"kubelet-perf-settings", "metallb-operator", "node-health-check", "observability-operator", "prometheus-alerts", "psi-enable", "swap-enable"},
		},
		"OptIn": {
			"and the real ones on", `{platform.kubevirt.io/enable-loadaware: "true", platform.kubevirt.io/enable-cpu-manager: "true", platform.kubevirt.io/enable-aaq: "true"}`,
			map[string]string{GPU: "n", USBDevices: "n", VFIOCapable: "n"},
			[]string{"descheduler-loadaware", "kubelet-cpu-manager", "kubelet-perf-settings", "metallb-operator", "mtv-operator", "node-health-check", "numa-topology", "observability-operator", "pci-passthrough", "prometheus-alerts", "psi-enable", "swap-enable", "aaq-operator", "vfio-assign", "usb-passthrough"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := context{hco: object(t, `{metadata: {annotations: `+tc.annotations+`}}`), hardware: tc.hardware}
			var got []string
			for _, a := range catalog.BuiltIn().Assets {
				if v, _ := c.wanted(a); v == holds && a.Name != catalog.HCO {
					got = append(got, a.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	c := context{hco: object(t, `{}`)}
	for _, a := range catalog.BuiltIn().Assets {
		v, _ := c.wanted(a)
		if hardware := slices.Contains([]string{"pci-passthrough", "vfio-assign", "usb-passthrough"}, a.Name); hardware != (v == unknown) {
			t.Errorf("%s is judged %v while no node can be seen", a.Name, v)
		}
	}
}

func TestTheOpponentIsWhoChangedTheField(t *testing.T) {
	live := object(t, `{metadata: {managedFields: [
		{manager: virt-platform-autopilot, operation: Apply, time: "2026-01-01T00:00:09Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:b": {}}}},
		{manager: kubelet, operation: Update, time: "2026-01-01T00:00:08Z", fieldsType: FieldsV1, subresource: status, fieldsV1: {"f:status": {"f:a": {}}}},
		{manager: argo, operation: Update, time: "2026-01-01T00:00:01Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:a": {}}}},
		{manager: late, operation: Update, time: "2026-01-01T00:00:07Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:c": {}}}}]}}`)
	differs := Differences(object(t, `{spec: {a: 1}}`), object(t, `{spec: {a: 2}}`), catalog.Asset{})
	if got := (change{live: live, paths: differs}).opponent(); got != "argo" {
		t.Errorf("it is %q", got)
	}
	if ownsAll(live, differs) || !ownsAll(live, Differences(object(t, `{spec: {b: 1}}`), object(t, `{spec: {b: 2}}`), catalog.Asset{})) {
		t.Error("a field that is ours is not told from one that is not")
	}
}

func TestGivingUpAFieldLeavesItsValue(t *testing.T) {
	live := object(t, `{spec: {a: 1, b: {c: 2}}, metadata: {managedFields: [
		{manager: virt-platform-autopilot, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}}},
		{manager: other, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:a": {}}}}]}}`)
	m := Mask(object(t, `{spec: {a: 1, b: {c: 2}}}`), live, "/spec/b/c", catalog.Asset{})
	got, changed := without(live, m.released)
	if !changed || !cmp.Equal(live.Object["spec"], got.Object["spec"]) {
		t.Fatalf("changed %v: %v", changed, got.Object)
	}
	set, _ := ours(got)
	if holdsPath(set, m.released[0]) || set.Size() != 1 {
		t.Errorf("still owned: %s", set)
	}
	if _, changed := without(got, m.released); changed {
		t.Error("it is given up twice")
	}
}
