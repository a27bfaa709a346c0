package renderer

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/workload-renderer/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/test/suite"
)

// everything is a template with an object of every kind that is allowed; n differs in
// each of them.
func everything(n string) string {
	flux := func(field, group, version, kindName, spec string) string {
		return field + `: {apiVersion: "` + group + `.toolkit.fluxcd.io/` + version + `", kind: "` + kindName + `", metadata: _meta, spec: {interval: "` + n + `m", ` + spec + "}}\n"
	}
	return head + strings.ReplaceAll(
		flux("a", "helm", "v2", "HelmRelease", `chart: spec: {chart: "c", sourceRef: {kind: "HelmRepository", name: _meta.name}}, kubeConfig: _remote`)+
			flux("b", "kustomize", "v1", "Kustomization", `prune: true, sourceRef: {kind: "GitRepository", name: _meta.name}, kubeConfig: _remote`)+
			flux("c", "source", "v1", "GitRepository", `url: "https://example.test/r.git"`)+
			flux("d", "source", "v1", "HelmRepository", `url: "https://example.test/charts"`)+
			flux("e", "source", "v1", "OCIRepository", `url: "oci://example.test/r"`)+
			flux("f", "source", "v1", "Bucket", `bucketName: "b", endpoint: "example.test"`)+
			flux("g", "source", "v1", "HelmChart", `chart: "c", sourceRef: {kind: "HelmRepository", name: _meta.name}`)+
			`h: {apiVersion: "dockyards.io/v1alpha3", kind: "Worktree", metadata: _meta, spec: files: "a.yaml": 'DIGIT'}
i: {apiVersion: "v1", kind: "ConfigMap", metadata: _meta, data: a: "DIGIT"}
j: {apiVersion: "v1", kind: "Secret", metadata: _meta, stringData: a: "hidden-DIGIT-secret", data: b: 'hidden-DIGIT-bytes'}
k: {apiVersion: "v1", kind: "Namespace", metadata: {name: "\(_meta.namespace)-extra", labels: n: "DIGIT", annotations: "slipway.dev/prune": "true"}}
`, "DIGIT", n)
}

func TestEveryKindIsMadeChangedAndPruned(t *testing.T) {
	w := newWorld(t)
	w.workload("web", everything("5"))
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.wants("web", "WorkloadTemplateReconciled", "True Ready")
	want := []string{
		"Bucket/web", "ConfigMap/web", "GitRepository/web", "HelmChart/web", "HelmRelease/web", "HelmRepository/web",
		"Kustomization/web", "OCIRepository/web", "Secret/web", "Worktree/web",
	}
	if diff := cmp.Diff(want, w.made()); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	extra := w.NS + "-extra"
	if got := suite.Text(w.Must(kind.Namespaces, extra), "metadata", "annotations", "slipway.dev/owner"); got != w.NS+"/web" {
		t.Errorf("the Namespace is marked for %q", got)
	}
	f.Rests(w.event("web"))
	lives := w.Lives()

	w.template("web", everything("6"))
	f.Insist(w.event("web"))
	if diff := cmp.Diff(lives, w.Lives()); diff != "" {
		t.Errorf("a change made objects anew (-before +after):\n%s", diff)
	}
	for _, res := range render.DefaultAllowed() {
		obj := w.Must(res, map[bool]string{true: "web", false: extra}[res.Namespaced])
		if text := suite.Bytes(t, obj); strings.Contains(text, `"interval":"5m"`) {
			t.Errorf("%s was not changed: %s", res.Kind, text)
		}
	}
	if got := suite.Text(w.Must(kind.Secrets, "web"), "data", "a"); got != "aGlkZGVuLTYtc2VjcmV0" {
		t.Errorf("the Secret holds %q", got)
	}
	f.Rests(w.event("web"))

	w.template("web", head)
	f.Insist(w.event("web"))
	w.wants("web", "WorkloadTemplateReconciled", "True Ready")
	if got := w.made(); len(got) > 0 {
		t.Errorf("the template gives nothing any more, and there are %v", got)
	}
	if ns := w.Get(kind.Namespaces, extra); ns != nil && ns.GetDeletionTimestamp() == nil {
		t.Error("the Namespace is still there")
	}
	f.Rests(w.event("web"))
	if strings.Contains(f.Log.String(), "hidden") {
		t.Error("the log holds the value of a Secret")
	}
}

func TestWritesComeInTheOrderInWhichTheyCanBeFoundAgain(t *testing.T) {
	w := newWorld(t)
	w.workload("web", head+kustomization+configMap("settings", "a: \"b\"")+repository)
	f := w.copyOf()
	f.Insist(w.event("web"))
	_, writes := f.Asked()
	want := []string{
		"patch workloads.dockyards.io NS/web 200",
		"create configmaps NS 201",
		"create gitrepositories.source.toolkit.fluxcd.io NS 201",
		"create kustomizations.kustomize.toolkit.fluxcd.io NS 201",
		"patch workloads.dockyards.io NS/web 200",
	}
	for i := range writes {
		writes[i] = strings.ReplaceAll(writes[i], w.NS, "NS")
	}
	if diff := cmp.Diff(want, writes[:min(len(want), len(writes))]); diff != "" {
		t.Errorf("(-want +got):\n%s\nall: %s", diff, strings.Join(writes, "\n"))
	}
}

func TestWhatATemplateLeavesOpenIsLeftToOthersAndWhatItStopsSettingGoes(t *testing.T) {
	w := newWorld(t)
	w.workload("web", head+repository+strings.Replace(kustomization, "prune: true", `prune: true, path: "./a", wait: true`, 1)+configMap("settings", `a: "1", b: "2"`))
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.Patch(render.Kustomizations, "web", `{spec: {suspend: true}, metadata: {annotations: {reconcile.fluxcd.io/requestedAt: now}, labels: {team: blue}}}`)
	w.Patch(render.ConfigMaps, "settings", `{data: {c: "3"}}`)
	generation := w.Must(render.Kustomizations, "web").GetGeneration()
	f.Insist(w.event("web")) // suspended, it is not waited for any more
	f.Rests(w.event("web"))

	w.template("web", head+repository+kustomization+configMap("settings", `a: "1"`))
	f.Insist(w.event("web"))
	obj := w.Must(render.Kustomizations, "web")
	if got := suite.Text(obj, "spec", "suspend") + suite.Text(obj, "spec", "path") + suite.Text(obj, "spec", "wait"); got != "true" {
		t.Errorf("suspend, path and wait are now %q: the first is a person's, the others are not set any more", got)
	}
	if obj.GetAnnotations()["reconcile.fluxcd.io/requestedAt"] != "now" || obj.GetLabels()["team"] != "blue" {
		t.Errorf("others' metadata is now %v, %v", obj.GetAnnotations(), obj.GetLabels())
	}
	if got := obj.GetGeneration(); got != generation+1 {
		t.Errorf("generation went from %d to %d for one change", generation, got)
	}
	if got := suite.Bytes(t, w.Must(render.ConfigMaps, "settings"), "data"); got != `{"a":"1","c":"3"}` {
		t.Errorf("the config map holds %s", got)
	}
	f.Rests(w.event("web"))
}

func TestDriftIsUndoneByTheObjectsOwnEvent(t *testing.T) {
	w := newWorld(t)
	w.workload("web", both+configMap("settings", `a: "1"`))
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.Patch(render.GitRepositories, "web", `{spec: {url: "https://evil.test"}}`)
	f.Insist(w.Event(render.GitRepositories, "web"))
	if got := suite.Text(w.Must(render.GitRepositories, "web"), "spec", "url"); got != "https://example.test/r.git" {
		t.Errorf("the url is %q", got)
	}
	w.Remove(render.ConfigMaps, "settings")
	f.Insist(w.Event(render.ConfigMaps, "settings"))
	w.Must(render.ConfigMaps, "settings")
	// Without owner reference the label tells.
	w.Patch(render.ConfigMaps, "settings", `{metadata: {ownerReferences: null}, data: {a: "2"}}`)
	f.Insist(w.Event(render.ConfigMaps, "settings"))
	obj := w.Must(render.ConfigMaps, "settings")
	if len(obj.GetOwnerReferences()) != 1 || suite.Text(obj, "data", "a") != "1" {
		t.Errorf("the config map is %v %v", obj.GetOwnerReferences(), obj.Object["data"])
	}
	f.Rests(w.event("web"))
}

func TestAFailedApplyPrunesNothingAndIsSaid(t *testing.T) {
	w := newWorld(t)
	secret := func(kindOf string) string {
		return `"s": {apiVersion: "v1", kind: "Secret", metadata: name: "s", type: "` + kindOf + `", data: {"username": 'a', "password": 'hidden-pass'}}` + "\n"
	}
	w.workload("web", both+secret("kubernetes.io/basic-auth")+configMap("old", ""))
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.template("web", both+secret("Opaque"))
	if got := f.Send(w.event("web")); got != http.StatusNoContent {
		t.Errorf("a refused write was answered %d", got)
	}
	w.wants("web", "WorkloadTemplateReconciled", "False ReconcileFailed: cannot apply secrets")
	w.wants("web", "Ready", "False ")
	w.Must(render.ConfigMaps, "old")
	if status := suite.Bytes(t, w.Must(dockyards.Workloads, "web")); strings.Contains(status, "hidden") || strings.Contains(f.Log.String(), "hidden") {
		t.Error("a Secret's value stands in the Workload or in the log")
	}
	w.template("web", both+secret("kubernetes.io/basic-auth"))
	f.Insist(w.event("web"))
	w.wants("web", "WorkloadTemplateReconciled", "True Ready")
	if w.Get(render.ConfigMaps, "old") != nil {
		t.Error("what is not wanted any more is still there")
	}
}

func TestAMovedReleaseIsAppliedAndAnEventSaysWhatThatMeans(t *testing.T) {
	w := newWorld(t)
	release := func(ns string) string {
		return head + `r: {apiVersion: "helm.toolkit.fluxcd.io/v2", kind: "HelmRelease", metadata: _meta, spec: {interval: "5m", chartRef: {kind: "OCIRepository", name: "x"}, kubeConfig: _remote, targetNamespace: "` + ns + `"}}` + "\n"
	}
	w.workload("web", release("a"))
	f := w.copyOf()
	f.Insist(w.event("web"))
	f.Asked()
	w.template("web", release("b"))
	f.Insist(w.event("web"))
	if got := suite.Text(w.Must(render.HelmReleases, "web"), "spec", "targetNamespace"); got != "b" {
		t.Errorf("the target is %q", got)
	}
	if _, writes := f.Asked(); !strings.Contains(strings.Join(writes, " "), "create events") {
		t.Errorf("no Event was written: %v", writes)
	}
	f.Rests(w.event("web"))
}

func TestAnObjectOnItsWayOutIsMadeAgainWhenItIsGone(t *testing.T) {
	w := newWorld(t)
	w.workload("web", both)
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.Patch(render.Kustomizations, "web", `{metadata: {finalizers: [finalizers.fluxcd.io]}}`)
	w.Remove(render.Kustomizations, "web")
	f.Insist(w.Event(render.Kustomizations, "web"))
	w.wants("web", "Reconciling", "True Pruning: Kustomization/web is being deleted: finalizers.fluxcd.io has to be done first, and is made again then")
	f.Rests(w.event("web"))
	w.Patch(render.Kustomizations, "web", `{metadata: {finalizers: null}}`)
	f.Insist(w.Event(render.Kustomizations, "web"))
	if w.Must(render.Kustomizations, "web").GetDeletionTimestamp() != nil {
		t.Error("it was not made again")
	}
	if w.Must(dockyards.Workloads, "web").GetAnnotations()[decide.AnnotationInventory] == "" {
		t.Error("there is no inventory")
	}
}
