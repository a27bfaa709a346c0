package baselineapplier

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
)

func parse(t *testing.T, texts ...string) []*unstructured.Unstructured {
	t.Helper()
	out := make([]*unstructured.Unstructured, 0, len(texts))
	for _, text := range texts {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		obj := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw, &obj.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, obj)
	}
	return out
}

const hcoManifest = `{apiVersion: hco.kubevirt.io/v1beta1, kind: HyperConverged, metadata: {name: kubevirt-hyperconverged, namespace: cnv, annotations: {
	platform.kubevirt.io/enable-loadaware: "true", platform.kubevirt.io/enable-mtv: "false",
	platform.kubevirt.io/patch: '[{"op":"replace","path":"/spec/liveMigrationConfig/parallelMigrationsPerCluster","value":8}]'}}}`

func TestOfflineRendersWithWhatTheHyperConvergedComesTo(t *testing.T) {
	view, err := Offline(parse(t, hcoManifest, `{apiVersion: v1, kind: Node, metadata: {name: a, labels: {feature.node.kubernetes.io/usb-present: "true"}}}`,
		`{apiVersion: remediation.medik8s.io/v1alpha1, kind: NodeHealthCheck, metadata: {name: virt-node-health-check, annotations: {platform.kubevirt.io/ignore-fields: /spec/minHealthy}}, spec: {minHealthy: 10%}}`), decide.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]decide.Outcome{}
	for _, f := range view.Findings {
		outcomes[f.Asset.Name] = f.Record.Outcome
		switch f.Asset.Name {
		case "descheduler-loadaware":
			if total, _, _ := unstructured.NestedInt64(f.Desired.Object, "spec", "evictionLimits", "total"); total != 8 {
				t.Errorf("the limit is %d: it follows the patched HyperConverged", total)
			}
		case "prometheus-alerts":
			if f.Desired.GetNamespace() != "cnv" {
				t.Errorf("the alerts are in %q", f.Desired.GetNamespace())
			}
		case "node-health-check":
			if _, found, _ := unstructured.NestedString(f.Desired.Object, "spec", "minHealthy"); found || !slices.Equal(f.Record.Ignored, []string{"/spec/minHealthy"}) {
				t.Errorf("an ignored field is applied: %v", f.Desired.Object)
			}
		}
	}
	want := map[string]decide.Outcome{
		"hco-golden-config": decide.Drifted, "prometheus-alerts": decide.Drifted, "swap-enable": decide.Drifted, "psi-enable": decide.Drifted,
		"kubelet-perf-settings": decide.Drifted, "node-health-check": decide.Drifted, "metallb-operator": decide.Drifted, "observability-operator": decide.Drifted,
		"descheduler-loadaware": decide.Drifted, "usb-passthrough": decide.Drifted, "mtv-operator": decide.Inactive, "pci-passthrough": decide.Inactive,
		"kubelet-cpu-manager": decide.Inactive, "vfio-assign": decide.Inactive, "aaq-operator": decide.Inactive, "numa-topology": decide.NotApplicable,
	}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfflineNeedsNothing(t *testing.T) {
	view, err := Offline(nil, decide.DefaultSettings())
	if err != nil || len(view.Findings) != 16 {
		t.Errorf("%v, %d findings", err, len(view.Findings))
	}
}
