package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/deploy/local/build"
)

// chart writes the chart as make chart does, and returns its folder.
func (p *platform) chart() string {
	p.t.Helper()
	if err := build.Binaries(p.t.Context(), build.Options{Root: p.root, Out: os.Stderr}, "chart"); err != nil {
		p.t.Fatal(err)
	}
	dir := p.t.TempDir()
	p.must(nil, "go", "run", "./deploy/generate", "-chart", dir, "-version", "v1.2.3")
	return dir
}

// template renders a chart with Helm's engine.
func (p *platform) template(dir, values string) []*unstructured.Unstructured {
	p.t.Helper()
	args := []string{dir}
	if values != "" {
		file := filepath.Join(p.t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
			p.t.Fatal(err)
		}
		args = append(args, file)
	}
	return p.decode(p.must(nil, filepath.Join(p.root, filepath.FromSlash(build.DefaultBin), "chart"), args...))
}

func TestTheChartIsTheManifestsWithValues(t *testing.T) {
	p := start(t)
	p.home()
	dir := p.chart()
	plain := p.template(dir, "")
	p.check(plain)

	t.Run("it installs what the overlay for development does", func(t *testing.T) {
		list := func(objs []*unstructured.Unstructured) []string {
			var out []string
			for _, obj := range objs {
				// Helm makes the namespace.
				if obj.GetKind() != "Namespace" {
					out = append(out, obj.GetAPIVersion()+" "+obj.GetNamespace()+" "+named(obj))
				}
			}
			slices.Sort(out)
			return out
		}
		if diff := cmp.Diff(list(p.render("deploy/overlays/development")), list(plain)); diff != "" {
			t.Errorf("(-overlay +chart):\n%s", diff)
		}
	})

	set := p.template(dir, `
image: {repository: registry.example.com/s, tag: v9, pullPolicy: Always}
replicaCount: 1
resources: {requests: {cpu: 1m, memory: 2Mi}}
nodeSelector: {disk: ssd}
tolerations: [{key: k, operator: Exists}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]}}}
functions:
  node-capacity:
    replicaCount: 0
    maxReplicas: 2
    nodeSelector: {}
    resources: {limits: {memory: 1Gi}}
`)
	find := func(objs []*unstructured.Unstructured, name string) map[string]any {
		t.Helper()
		for _, obj := range objs {
			if obj.GetKind() == "Service" && obj.GetName() == name || obj.GetKind() == "Deployment" && obj.GetName() == name {
				template, _, _ := unstructured.NestedMap(obj.Object, "spec", "template")
				return template
			}
		}
		t.Fatalf("the chart has no %s", name)
		return nil
	}
	container := func(template map[string]any) map[string]any {
		return template["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	}
	t.Run("without values images are those of the chart's version, and functions scale to zero", func(t *testing.T) {
		for _, spec := range slipway.Specs() {
			template := find(plain, spec.Name)
			if got, want := container(template)["image"], "ghcr.io/slipway-dev/slipway/functions/"+spec.Name+"/cmd:v1.2.3"; got != want {
				t.Errorf("%s runs %v, want %s", spec.Name, got, want)
			}
			annotations := template["metadata"].(map[string]any)["annotations"]
			if diff := cmp.Diff(map[string]any{"autoscaling.knative.dev/min-scale": "0", "autoscaling.knative.dev/max-scale": "5"}, annotations); diff != "" {
				t.Errorf("%s:\n%s", spec.Name, diff)
			}
		}
	})
	t.Run("a value reaches every function", func(t *testing.T) {
		template := find(set, "machine-vm")
		spec := template["spec"].(map[string]any)
		if c := container(template); c["image"] != "registry.example.com/s/functions/machine-vm/cmd:v9" || c["imagePullPolicy"] != "Always" {
			t.Errorf("the image is %v, %v", c["image"], c["imagePullPolicy"])
		}
		// Helm puts maps together: the limit is the chart's.
		resources := map[string]any{"requests": map[string]any{"cpu": "1m", "memory": "2Mi"}, "limits": map[string]any{"memory": "128Mi"}}
		if diff := cmp.Diff(resources, container(template)["resources"]); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]any{"disk": "ssd"}, spec["nodeSelector"]); diff != "" {
			t.Error(diff)
		}
		if spec["tolerations"] == nil || spec["affinity"] == nil {
			t.Errorf("where it runs: %v", spec)
		}
		if got := template["metadata"].(map[string]any)["annotations"].(map[string]any)["autoscaling.knative.dev/min-scale"]; got != "1" {
			t.Errorf("it is not always on: %v", got)
		}
	})
	t.Run("a function that needs more has more, whatever the value for all", func(t *testing.T) {
		limits, _, _ := unstructured.NestedStringMap(container(find(set, "workload-renderer")), "resources", "limits")
		if limits["memory"] != "1Gi" {
			t.Errorf("workload-renderer may take %v", limits)
		}
	})
	t.Run("a function's own value wins", func(t *testing.T) {
		template := find(set, "node-capacity")
		spec := template["spec"].(map[string]any)
		if spec["nodeSelector"] != nil || spec["tolerations"] == nil {
			t.Errorf("where it runs: %v", spec)
		}
		annotations := template["metadata"].(map[string]any)["annotations"]
		if diff := cmp.Diff(map[string]any{"autoscaling.knative.dev/min-scale": "0", "autoscaling.knative.dev/max-scale": "2"}, annotations); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]any{"limits": map[string]any{"memory": "1Gi"}}, container(template)["resources"]); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a chart of another version leaves nothing of the one before", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(dir, "templates", "function-gone.yaml"), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		p.must(nil, "go", "run", "./deploy/generate", "-chart", dir, "-version", "v1.2.4")
		if _, err := os.Stat(filepath.Join(dir, "templates", "function-gone.yaml")); !os.IsNotExist(err) {
			t.Errorf("a function that is gone is still in the chart: %v", err)
		}
		about, err := os.ReadFile(filepath.Join(dir, "Chart.yaml"))
		if err != nil || !strings.Contains(string(about), "version: 1.2.4") {
			t.Errorf("%v: %s", err, about)
		}
	})
}
