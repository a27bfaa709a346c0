package perturb

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	helmreleasemirror "github.com/slipway-dev/slipway/functions/helmrelease-mirror"
	kustomizationmirror "github.com/slipway-dev/slipway/functions/kustomization-mirror"
	workloadrenderer "github.com/slipway-dev/slipway/functions/workload-renderer"
	templates "github.com/slipway-dev/slipway/functions/workload-renderer/kinds"
	worktreemirror "github.com/slipway-dev/slipway/functions/worktree-mirror"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/inventory"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/test/suite"
)

const (
	head = `package template
#cluster: {metadata: {name: string, ...}, ...}
#workload: {metadata: {name: string, namespace: string, ...}, spec: {targetNamespace: string, input?: _, ...}, ...}
_meta: {name: #workload.metadata.name, namespace: #workload.metadata.namespace}
_remote: secretRef: name: "\(#cluster.metadata.name)-kubeconfig"
`
	repository    = "gitRepository: {apiVersion: \"source.toolkit.fluxcd.io/v1\", kind: \"GitRepository\", metadata: _meta, spec: {url: \"https://example.test/r.git\", interval: \"5m\"}}\n"
	kustomization = "kustomization: {apiVersion: \"kustomize.toolkit.fluxcd.io/v1\", kind: \"Kustomization\", metadata: _meta, spec: {interval: \"5m\", prune: true, sourceRef: {kind: \"GitRepository\", name: _meta.name}, kubeConfig: _remote}}\n"
)

// settingsOf is a config map of a template.
func settingsOf(name, data string) string {
	return fmt.Sprintf("%q: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: {name: %q}, data: {%s}}\n", name, name, data)
}

func (w *world) template(name, source string) {
	w.TB.Helper()
	spec := map[string]any{"type": "dockyards.io/cue", "source": source}
	obj := map[string]any{"spec": spec}
	if !w.has(templates.WorkloadTemplates, name) {
		obj = map[string]any{"apiVersion": "dockyards.io/v1alpha3", "kind": "WorkloadTemplate", "metadata": map[string]any{"name": name}, "spec": spec}
	}
	raw, err := yaml.Marshal(obj)
	if err != nil {
		w.TB.Fatal(err)
	}
	if obj["kind"] != nil {
		w.Create(string(raw))
		return
	}
	w.Patch(templates.WorkloadTemplates, name, string(raw))
}

func (w *world) workload(name string) {
	w.TB.Helper()
	w.Create(fmt.Sprintf(`{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: %s, labels: {dockyards.io/cluster-name: demo}},
  spec: {provenience: User, targetNamespace: apps, workloadTemplateRef: {kind: WorkloadTemplate, name: %s}}}`, name, name))
}

// flux calls every object ready that it has not seen.
func flux(w *world) {
	w.TB.Helper()
	for _, res := range []kind.Resource{render.GitRepositories, render.Kustomizations} {
		list, err := w.In(res).List(w.TB.Context(), metav1.ListOptions{})
		if err != nil {
			w.TB.Fatal(err)
		}
		for i := range list.Items {
			obj := &list.Items[i]
			if obj.GetDeletionTimestamp() != nil || suite.Text(obj, "status", "observedGeneration") == fmt.Sprint(obj.GetGeneration()) {
				continue
			}
			w.Patch(res, obj.GetName(), fmt.Sprintf(`{status: {observedGeneration: %d, conditions: [{type: Ready, status: "True", reason: ReconciliationSucceeded, message: applied, observedGeneration: %[1]d, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`,
				obj.GetGeneration()), "status")
		}
	}
}

var renderer = &scenario{
	fn: "workload-renderer",
	suite: suite.New(suite.Options{
		Specs: []reconcile.Spec{workloadrenderer.DefaultSpec()}, Partial: true, CRDs: []string{crds.FluxKustomize, crds.FluxSource, crds.FluxHelm},
		Files: []string{"api/dockyards/crds"}, Kinds: rendered(), Plain: unobserved,
	}),
	given: func(w *world) { w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: demo}}`) },
	start: func(w *world, options ...suite.Option) *suite.Copy {
		settings, err := workloadrenderer.ParseSettings(func(string) (string, bool) { return "", false })
		if err != nil {
			w.TB.Fatal(err)
		}
		return run(w, workloadrenderer.Declare(settings, pool.Render), options...)
	},
	neighbours: flux,
	steps: []func(w *world){
		func(w *world) {
			w.template("web", head+repository+kustomization+settingsOf("a", ""))
			w.workload("web")
		},
		func(w *world) {
			w.template("web", head+repository+kustomization+settingsOf("a", `x: "1"`)+settingsOf("b", ""))
			w.template("db", head+repository)
			w.workload("db")
		},
		func(w *world) { w.template("web", head+settingsOf("a", `x: "2"`)) },
		func(w *world) { w.Remove(dockyards.Workloads, "db") },
	},
}

func rendered() []kind.Resource {
	all := []kind.Resource{dockyards.Workloads, templates.WorkloadTemplates, dockyards.Clusters, inventory.Inventories}
	for _, res := range render.DefaultAllowed() {
		if res.Namespaced {
			all = append(all, res)
		}
	}
	return all
}

// unobserved takes out of a state what Flux counts: generations tell how often an
// object was written on the way.
func unobserved(obj *unstructuredObject) {
	if strings.HasSuffix(obj.GroupVersionKind().Group, "toolkit.fluxcd.io") {
		delete(obj.Object, "status")
	}
}

var worktrees = &scenario{
	fn: "worktree-mirror",
	suite: suite.New(suite.Options{
		Specs: []reconcile.Spec{worktreemirror.DefaultSpec()}, Partial: true, CRDs: []string{crds.FluxSource},
		Files: []string{"api/dockyards/crds"}, Kinds: []kind.Resource{render.Worktrees, render.GitRepositories},
	}),
	given: func(*world) {},
	start: func(w *world, options ...suite.Option) *suite.Copy {
		return run(w, worktreemirror.Declare(), options...)
	},
	steps: []func(w *world){
		func(w *world) {
			w.worktree("files")
			w.worktree("other")
		},
		func(w *world) {
			w.Patch(render.Worktrees, "files", `{status: {url: "https://git.test/r.git", referenceName: refs/heads/main}}`, "status")
			w.Patch(render.Worktrees, "other", `{status: {url: "file:///etc", referenceName: refs/heads/main}}`, "status")
		},
		func(w *world) {
			w.Patch(render.Worktrees, "files", `{status: {commitHash: 0123456789abcdef0123456789abcdef01234567}}`, "status")
			w.Patch(render.Worktrees, "other", `{status: {url: "https://git.test/o.git"}}`, "status")
		},
		func(w *world) {
			if w.has(render.GitRepositories, "files") {
				w.Patch(render.GitRepositories, "files", `{spec: {url: "https://evil.test"}}`)
			}
		},
	},
}

func (w *world) worktree(name string) {
	w.TB.Helper()
	w.Create(fmt.Sprintf(`{apiVersion: dockyards.io/v1alpha3, kind: Worktree, metadata: {name: %s, labels: {dockyards.io/workload-name: web}}, spec: {files: {a: YQ==}}}`, name))
}

var kustomizations = mirror("kustomization-mirror", kustomizationmirror.DefaultSpec(), kustomizationmirror.Declare, render.Kustomizations, crds.FluxKustomize,
	`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: NAME, labels: {dockyards.io/workload-name: web, dockyards.io/cluster-name: demo}},
	  spec: {interval: 5m, prune: true, sourceRef: {kind: GitRepository, name: web}, kubeConfig: {secretRef: {name: demo-kubeconfig}}}}`,
	`lastAppliedRevision: "main@sha1:abc"`)

var helmReleases = mirror("helmrelease-mirror", helmreleasemirror.DefaultSpec(), helmreleasemirror.Declare, render.HelmReleases, crds.FluxHelm,
	`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: NAME, labels: {dockyards.io/workload-name: web, dockyards.io/cluster-name: demo}},
	  spec: {interval: 5m, chartRef: {kind: OCIRepository, name: web}, kubeConfig: {secretRef: {name: demo-kubeconfig}}}}`,
	`history: [{chartName: c, chartVersion: 1.2.3, configDigest: x, digest: x, firstDeployed: "2026-01-01T00:00:00Z", lastDeployed: "2026-01-01T00:00:00Z", name: x, namespace: x, status: deployed, version: 1}]`)

// mirror is the story of an object of Flux whose inventory is kept, and of one whose
// Cluster goes first.
func mirror(fn string, spec reconcile.Spec, declare func() reconcile.Function[inventory.Input], res kind.Resource, definitions, object, status string) *scenario {
	create := func(w *world, name string) { w.Create(strings.ReplaceAll(object, "NAME", name)) }
	return &scenario{
		fn: fn,
		suite: suite.New(suite.Options{
			Specs: []reconcile.Spec{spec}, Partial: true, CRDs: []string{definitions}, Files: []string{"api/dockyards/crds"},
			Kinds: []kind.Resource{res, inventory.Inventories, dockyards.Clusters},
		}),
		given:      func(w *world) { w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: demo}}`) },
		start:      func(w *world, options ...suite.Option) *suite.Copy { return run(w, declare(), options...) },
		neighbours: func(w *world) { goneForGood(w, res) },
		steps: []func(w *world){
			func(w *world) { create(w, "web") },
			func(w *world) {
				w.Patch(res, "web", `{status: {observedGeneration: 1, conditions: [{type: Ready, status: "False", reason: Broken, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}], `+status+`}}`, "status")
				create(w, "db")
			},
			func(w *world) {
				w.Patch(res, "web", `{status: {conditions: [{type: Ready, status: "True", reason: Done, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, "status")
				w.Patch(res, "db", `{metadata: {finalizers: [finalizers.fluxcd.io]}}`)
				w.Remove(res, "db")
			},
			func(w *world) { w.Remove(dockyards.Clusters, "demo") },
		},
	}
}

// goneForGood plays Flux and the garbage collector: an object of Flux that is being
// deleted goes once it need not clean up any more, and its inventory with it.
func goneForGood(w *world, res kind.Resource) {
	w.TB.Helper()
	obj := w.Get(res, "db")
	if obj != nil && obj.GetDeletionTimestamp() != nil && (suite.Text(obj, "spec", "prune") == "false" || suite.Text(obj, "spec", "suspend") == "true") {
		w.Patch(res, "db", `{metadata: {finalizers: null}}`)
		obj = nil
	}
	if obj != nil {
		return
	}
	inventories, err := w.In(inventory.Inventories).List(w.TB.Context(), metav1.ListOptions{})
	if err != nil {
		w.TB.Fatal(err)
	}
	for i := range inventories.Items {
		if owners := inventories.Items[i].GetOwnerReferences(); len(owners) == 1 && owners[0].Name == "db" {
			w.Remove(inventory.Inventories, inventories.Items[i].GetName())
		}
	}
}
