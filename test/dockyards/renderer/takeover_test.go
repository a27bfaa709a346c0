package renderer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	workloadrenderer "github.com/slipway-dev/slipway/functions/workload-renderer"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/test/suite"
)

// upstream is how dockyards-flux2 leaves an object: its labels, one controller, and no
// idea of server-side apply.
func (w *world) upstream(workload *unstructuredObject, apiVersion, kindName, name, spec string) *unstructuredObject {
	w.t.Helper()
	return w.CreateAs(workloadrenderer.Upstream, fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: %s,
  labels: {dockyards.io/workload-name: %s, dockyards.io/cluster-name: demo},
  ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Workload, name: %s, uid: %s, controller: true, blockOwnerDeletion: true}]},
  spec: %s}`, apiVersion, kindName, name, workload.GetName(), workload.GetName(), workload.GetUID(), spec))
}

const adopted = head + `r: {apiVersion: "source.toolkit.fluxcd.io/v1", kind: "HelmRepository", metadata: _meta, spec: {interval: "5m", url: "https://charts.test"}}
h: {apiVersion: "helm.toolkit.fluxcd.io/v2", kind: "HelmRelease", metadata: _meta, spec: {interval: "5m", chart: spec: {chart: "c", version: "1.x", sourceRef: {kind: "HelmRepository", name: _meta.name}}, kubeConfig: _remote, storageNamespace: "apps", targetNamespace: "apps", install: remediation: retries: -1, values: {a: 1, b: ["x"]}}}
w: {apiVersion: "dockyards.io/v1alpha3", kind: "Worktree", metadata: _meta, spec: files: "a.yaml": 'hello'}
` + kustomization

func (w *world) takenOver() *suite.Copy {
	w.t.Helper()
	workload := w.workload("web", adopted)
	const remoteRef = `kubeConfig: {secretRef: {name: demo-kubeconfig}}`
	w.upstream(workload, "source.toolkit.fluxcd.io/v1", "HelmRepository", "web", `{interval: 5m, url: "https://charts.test"}`)
	w.upstream(workload, "helm.toolkit.fluxcd.io/v2", "HelmRelease", "web", `{interval: 5m, chart: {spec: {chart: c, version: 1.x, sourceRef: {kind: HelmRepository, name: web}}}, `+remoteRef+`, storageNamespace: apps, targetNamespace: apps, install: {remediation: {retries: -1}}, values: {a: 1, b: [x]}}`)
	w.upstream(workload, "dockyards.io/v1alpha3", "Worktree", "web", `{files: {a.yaml: aGVsbG8=}}`)
	w.upstream(workload, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "web", `{interval: 5m, prune: true, sourceRef: {kind: GitRepository, name: web}, `+remoteRef+`}`)
	w.Patch(render.Kustomizations, "web", `{metadata: {finalizers: [finalizers.fluxcd.io]}}`)
	w.flux()
	return w.copyOf()
}

// bytes are all objects but Workloads as the server holds them, with UID and generation.
// What a takeover changes is left out: who owns which field, and so the version.
func (w *world) bytes() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for key, obj := range w.Objects() {
		if obj.GetKind() != dockyards.Workloads.Kind {
			obj = obj.DeepCopy()
			obj.SetManagedFields(nil)
			obj.SetResourceVersion("")
			all[key] = suite.Bytes(w.t, obj)
		}
	}
	return all
}

// TestWhatUpstreamMadeIsAdoptedAsItIs: nothing is made anew and no release installed
// again, so over three passes and one resync not a byte differs.
func TestWhatUpstreamMadeIsAdoptedAsItIs(t *testing.T) {
	w := newWorld(t)
	f := w.takenOver()
	before := w.bytes()
	for _, step := range []string{"first pass", "second pass", "third pass", "resync"} {
		if step == "resync" {
			f.Resync()
		} else {
			f.Insist(w.event("web"))
		}
		if diff := cmp.Diff(before, w.bytes()); diff != "" {
			t.Errorf("after the %s (-before +after):\n%s", step, diff)
		}
	}
	for _, res := range render.DefaultAllowed() {
		if !res.Namespaced || w.Get(res, "web") == nil {
			continue
		}
		for _, entry := range w.Must(res, "web").GetManagedFields() {
			if entry.Manager == workloadrenderer.Upstream && entry.Subresource == "" {
				t.Errorf("%s: upstream still owns %s", res.Kind, entry.FieldsV1)
			}
		}
	}
	w.wants("web", "Ready", "True Ready")
	f.Rests(w.event("web"))
	w.Patch(render.Kustomizations, "web", `{metadata: {finalizers: null}}`)
}

func TestAFieldOfUpstreamGoesWhenTheTemplateDropsIt(t *testing.T) {
	w := newWorld(t)
	f := w.takenOver()
	w.template("web", strings.NewReplacer(`, values: {a: 1, b: ["x"]}`, "", `version: "1.x", `, "").Replace(adopted))
	f.Insist(w.event("web"))
	obj := w.Must(render.HelmReleases, "web")
	if got := suite.Text(obj, "spec", "values") + suite.Text(obj, "spec", "chart", "spec", "version"); got != "*" {
		t.Errorf("values and version are now %q, want none and the default", got)
	}
	f.Rests(w.event("web"))
}

func TestLeftoversOfUpstreamAreReportedAndStay(t *testing.T) {
	w := newWorld(t)
	f := w.takenOver()
	w.upstream(w.Must(dockyards.Workloads, "web"), "source.toolkit.fluxcd.io/v1", "HelmRepository", "old", `{interval: 5m, url: "https://old.test"}`)
	w.says(render.HelmRepositories, "old", 1, "Ready", "True", "Succeeded", "")
	f.Insist(w.event("web"))
	w.wants("web", "WorkloadTemplateReconciled", "True Ready: left alone, since no inventory names them: HelmRepository/old")
	w.Must(render.HelmRepositories, "old")
	f.Rests(w.event("web"))
}

func TestWhatUpstreamAllowedAndIsRefusedNowIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	workload := w.workload("web", head+strings.Replace(kustomization, ", kubeConfig: _remote", "", 1))
	w.upstream(workload, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "web", `{interval: 5m, prune: true, sourceRef: {kind: GitRepository, name: web}}`)
	before := w.Snapshot()["Kustomization/web"]
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.wants("web", "WorkloadTemplateReconciled", "False ObjectNotAllowed: output \"kustomization\", Kustomization "+w.NS+"/web: there is no spec.kubeConfig")
	if w.Snapshot()["Kustomization/web"] != before {
		t.Error("it was touched")
	}
	local := w.copyWith([]string{"RENDERER_ALLOW_LOCAL_APPLY", "true"})
	local.Insist(w.event("web"))
	w.wants("web", "WorkloadTemplateReconciled", "True Ready")
}
