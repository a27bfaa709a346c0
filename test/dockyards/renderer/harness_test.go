package renderer

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	helmreleasemirror "github.com/slipway-dev/slipway/functions/helmrelease-mirror"
	kustomizationmirror "github.com/slipway-dev/slipway/functions/kustomization-mirror"
	workloadrenderer "github.com/slipway-dev/slipway/functions/workload-renderer"
	"github.com/slipway-dev/slipway/functions/workload-renderer/kinds"
	worktreemirror "github.com/slipway-dev/slipway/functions/worktree-mirror"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/inventory"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/shared/render/worker"
	"github.com/slipway-dev/slipway/test/suite"
)

// given are the resources of which a namespace's state consists.
func given() []kind.Resource {
	all := []kind.Resource{dockyards.Workloads, kinds.WorkloadTemplates, dockyards.Clusters, inventory.Inventories}
	for _, res := range render.DefaultAllowed() {
		if res.Namespaced {
			all = append(all, res)
		}
	}
	return all
}

var suit = suite.New(suite.Options{
	Specs: []reconcile.Spec{
		workloadrenderer.DefaultSpec(), worktreemirror.DefaultSpec(), kustomizationmirror.DefaultSpec(), helmreleasemirror.DefaultSpec(),
	},
	CRDs:  []string{crds.FluxKustomize, crds.FluxSource, crds.FluxHelm},
	Files: []string{"api/dockyards/crds"},
	Kinds: given(), Others: []kind.Resource{render.ServiceAccounts, render.Roles, render.RoleBindings},
})

// pool is shared by all tests, as by all calls of a process.
var pool *worker.Pool

func TestMain(m *testing.M) {
	worker.Hook()
	pool = worker.New(2)
	code := suit.Main(m)
	pool.Close()
	os.Exit(code)
}

// world is an organization's namespace with a Cluster.
type world struct {
	*suite.World
	t *testing.T
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: suit.World(t), t: t}
	w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: demo}}`)
	return w
}

// copyOf starts a copy of the function under default settings.
func (w *world) copyOf(options ...suite.Option) *suite.Copy {
	w.t.Helper()
	return w.copyWith(nil, options...)
}

// copyWith starts a copy of the function with environment variables, as pairs.
func (w *world) copyWith(env []string, options ...suite.Option) *suite.Copy {
	w.t.Helper()
	settings, err := workloadrenderer.ParseSettings(func(name string) (string, bool) {
		for i := 0; i+1 < len(env); i += 2 {
			if env[i] == name {
				return env[i+1], true
			}
		}
		return "", false
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return suite.Run(w.World, workloadrenderer.Declare(settings, pool.Render), options...)
}

func (w *world) event(name string) cloudevents.Event { return w.Event(dockyards.Workloads, name) }

// head is what every template of the suite begins with.
const head = `package template
#cluster: {metadata: {name: string, ...}, ...}
#workload: {metadata: {name: string, namespace: string, ...}, spec: {targetNamespace: string, input?: _, ...}, ...}
_meta: {name: #workload.metadata.name, namespace: #workload.metadata.namespace}
_remote: secretRef: name: "\(#cluster.metadata.name)-kubeconfig"
`

// repository and kustomization are the two objects that most tests are about.
const (
	repository    = "gitRepository: {apiVersion: \"source.toolkit.fluxcd.io/v1\", kind: \"GitRepository\", metadata: _meta, spec: {url: \"https://example.test/r.git\", interval: \"5m\"}}\n"
	kustomization = "kustomization: {apiVersion: \"kustomize.toolkit.fluxcd.io/v1\", kind: \"Kustomization\", metadata: _meta, spec: {interval: \"5m\", prune: true, sourceRef: {kind: \"GitRepository\", name: _meta.name}, kubeConfig: _remote}}\n"
	both          = head + repository + kustomization
)

// configMap is a config map of a name.
func configMap(name, data string) string {
	return fmt.Sprintf("%q: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: {name: %q}, data: {%s}}\n", name, name, data)
}

// template makes or changes a template.
func (w *world) template(name, source string) {
	w.t.Helper()
	if w.Get(kinds.WorkloadTemplates, name) != nil {
		raw, err := yaml.Marshal(map[string]any{"spec": map[string]any{"source": source}})
		if err != nil {
			w.t.Fatal(err)
		}
		w.Patch(kinds.WorkloadTemplates, name, string(raw))
		return
	}
	raw, err := yaml.Marshal(map[string]any{
		"apiVersion": "dockyards.io/v1alpha3", "kind": "WorkloadTemplate", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"type": "dockyards.io/cue", "source": source},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Create(string(raw))
}

// workload makes a Workload with a template of its own name.
func (w *world) workload(name, source string) *unstructured.Unstructured {
	w.t.Helper()
	w.template(name, source)
	return w.Create(fmt.Sprintf(`{apiVersion: dockyards.io/v1alpha3, kind: Workload,
  metadata: {name: %s, labels: {dockyards.io/cluster-name: demo}},
  spec: {provenience: User, targetNamespace: apps, workloadTemplateRef: {kind: WorkloadTemplate, name: %s}}}`, name, name))
}

// why is all of a condition of a Workload.
func (w *world) why(name, conditionType string) string {
	w.t.Helper()
	is, reason, message := suite.Condition(w.Must(dockyards.Workloads, name), conditionType)
	return strings.TrimSuffix(strings.TrimSpace(is+" "+reason+": "+message), ":")
}

func (w *world) wants(name, conditionType, want string) {
	w.t.Helper()
	if got := w.why(name, conditionType); !strings.HasPrefix(got, want) {
		w.t.Errorf("%s of Workload %s is %q, want %q", conditionType, name, got, want)
	}
}

// flux plays Flux' controllers: it looks at every object and calls it ready.
func (w *world) flux() {
	w.t.Helper()
	for key, obj := range w.Objects() {
		res := w.ResourceOf(obj)
		if !render.IsSource(res) && !render.IsRelease(res) || obj.GetDeletionTimestamp() != nil {
			continue
		}
		w.says(res, strings.TrimPrefix(key, res.Kind+"/"), obj.GetGeneration(), "Ready", "True", "ReconciliationSucceeded", "applied")
	}
}

// says lets Flux say something of an object.
func (w *world) says(res kind.Resource, name string, generation int64, conditionType, is, reason, message string) {
	w.t.Helper()
	w.Patch(res, name, fmt.Sprintf(`{status: {observedGeneration: %d, conditions: [{type: %s, status: %q, reason: %s, message: %q, observedGeneration: %d, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`,
		generation, conditionType, is, reason, message, generation), "status")
}

// names are kind and name of what was made for Workloads.
func (w *world) made() []string {
	w.t.Helper()
	return slices.DeleteFunc(w.Names(), func(name string) bool {
		return strings.HasPrefix(name, "Workload/") || strings.HasPrefix(name, "WorkloadTemplate/") || strings.HasPrefix(name, "Cluster/")
	})
}

// unstructuredObject is short for what tests change.
type unstructuredObject = unstructured.Unstructured

// kindsTemplates is short for the templates' resource.
var kindsTemplates = kinds.WorkloadTemplates
