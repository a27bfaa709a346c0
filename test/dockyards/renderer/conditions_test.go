package renderer

import (
	"strings"
	"testing"

	worktreemirror "github.com/slipway-dev/slipway/functions/worktree-mirror"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/test/suite"
)

// charts is a template with a HelmRelease and an unscheduled repository.
const charts = head + `r: {apiVersion: "source.toolkit.fluxcd.io/v1", kind: "HelmRepository", metadata: _meta, spec: {type: "oci", url: "oci://example.test/charts"}}
h: {apiVersion: "helm.toolkit.fluxcd.io/v2", kind: "HelmRelease", metadata: _meta, spec: {interval: "5m", chart: spec: {chart: "c", sourceRef: {kind: "HelmRepository", name: _meta.name}}, kubeConfig: _remote}}
`

func TestReadyIsWhatFluxSays(t *testing.T) {
	type saying struct {
		res                            kind.Resource
		behind                         int64
		condition, is, reason, message string
	}
	ok := func(res kind.Resource) saying { return saying{res, 0, "Ready", "True", "Succeeded", "applied"} }
	cases := map[string]struct {
		reason, source     string
		says               []saying
		reconciling, ready string
	}{
		"NotLookedAt":    {"Flux has not seen it", both, nil, "True KustomizationReconciling: Kustomization/web: waits to be looked at by Flux", "False KustomizationReconciling"},
		"OldGeneration":  {"Flux has seen an older spec", both, []saying{{render.Kustomizations, 1, "Ready", "True", "Succeeded", ""}}, "True KustomizationReconciling", "False KustomizationReconciling"},
		"Busy":           {"Flux is at it", both, []saying{{render.Kustomizations, 0, "Reconciling", "True", "Progressing", "building"}}, "True KustomizationReconciling: Kustomization/web: building", "False KustomizationReconciling"},
		"Ready":          {"all is well", both, []saying{ok(render.Kustomizations), ok(render.GitRepositories)}, "", "True Ready"},
		"SourceUnseen":   {"some sources are never looked at", charts, []saying{ok(render.HelmReleases)}, "", "True Ready"},
		"Failed":         {"what failed all along is said", both, []saying{{render.Kustomizations, 0, "Ready", "False", "BuildFailed", "no such path"}}, "", "False KustomizationFailed: Kustomization/web: BuildFailed: no such path"},
		"Stalled":        {"nothing will happen by itself", charts, []saying{{render.HelmReleases, 0, "Stalled", "True", "RetriesExceeded", "install failed"}}, "True HelmReleaseReconciling", "False HelmReleaseReconciling"},
		"SourceFailed":   {"a source failed", both, []saying{ok(render.Kustomizations), {render.GitRepositories, 0, "Ready", "False", "GitOperationFailed", "not found"}}, "", "False SourceFailed: GitRepository/web: GitOperationFailed: not found"},
		"LongMessage":    {"copied messages are cut", both, []saying{{render.Kustomizations, 0, "Ready", "False", "X", strings.Repeat("long ", 200)}}, "", "False KustomizationFailed: Kustomization/web: X: long long"},
		"TwoFailed":      {"the first is named", both, []saying{{render.Kustomizations, 0, "Ready", "False", "X", "a"}, {render.GitRepositories, 0, "Ready", "False", "Z", "b"}}, "", "False SourceFailed: GitRepository/web: Z: b and 1 more"},
		"NothingToAwait": {"config maps are just there", head + configMap("a", ""), nil, "", "True Ready"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.workload("web", tc.source)
			f := w.copyOf()
			f.Insist(w.event("web"))
			for _, s := range tc.says {
				generation := w.Must(s.res, "web").GetGeneration() - s.behind
				w.says(s.res, "web", generation, s.condition, s.is, s.reason, strings.TrimSpace(s.message))
				f.Insist(w.Event(s.res, "web"))
			}
			if tc.reconciling == "" {
				if got := w.why("web", "Reconciling"); got != "" {
					t.Errorf("%s: Reconciling is %q", tc.reason, got)
				}
			} else {
				w.wants("web", "Reconciling", tc.reconciling)
			}
			w.wants("web", "Ready", tc.ready)
			if _, _, message := suite.Condition(w.Must(dockyards.Workloads, "web"), "Ready"); len(message) > 400 {
				t.Errorf("%s: the message has %d bytes", tc.reason, len(message))
			}
			f.Rests(w.event("web"))
		})
	}
}

func TestASuspendedChildCountsWithTheReadyItHas(t *testing.T) {
	w := newWorld(t)
	w.workload("web", both)
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.flux()
	w.Patch(render.Kustomizations, "web", `{spec: {suspend: true}}`)
	f.Insist(w.event("web"))
	w.wants("web", "Ready", "True Ready")
}

func TestConditionsOfOthersStay(t *testing.T) {
	w := newWorld(t)
	w.workload("web", both)
	other := `{type: WorkloadInventoryReady, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}`
	w.Patch(dockyards.Workloads, "web", `{status: {urls: ["https://x.test"], conditions: [`+other+`]}}`, "status")
	f := w.copyOf()
	f.Insist(w.event("web"))
	obj := w.Must(dockyards.Workloads, "web")
	if is, _, _ := suite.Condition(obj, "WorkloadInventoryReady"); is != "True" || suite.Bytes(t, obj, "status", "urls") != `["https://x.test"]` {
		t.Errorf("the status is %v", obj.Object["status"])
	}
	w.flux()
	f.Insist(w.event("web"))
	f.Rests(w.event("web"))
}

func TestAWorkloadWithoutATemplateIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: web, labels: {dockyards.io/cluster-name: demo}}, spec: {provenience: User, targetNamespace: apps}}`)
	before := w.Snapshot()["Workload/web"]
	f := w.copyOf()
	f.Rests(w.event("web"))
	if w.Snapshot()["Workload/web"] != before {
		t.Error("it was written to")
	}
}

func TestWhenTheTemplateIsNoLongerNamedItsObjectsStay(t *testing.T) {
	w := newWorld(t)
	w.workload("web", both)
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.flux()
	w.Patch(dockyards.Workloads, "web", `{spec: {workloadTemplateRef: null}}`)
	f.Insist(w.event("web"))
	if got := w.made(); len(got) != 2 {
		t.Errorf("there are %v", got)
	}
	w.wants("web", "Ready", "True Ready")
	f.Rests(w.event("web"))
}

func TestASourceOfAWorktreeCountsAndWhatOthersLabelDoesNot(t *testing.T) {
	w := newWorld(t)
	w.workload("web", head+"w: {apiVersion: \"dockyards.io/v1alpha3\", kind: \"Worktree\", metadata: _meta, spec: files: \"a\": 'b'}\n")
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.Create(`{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: foreign, labels: {dockyards.io/workload-name: web}}, spec: {url: "https://x.test"}}`)
	w.says(render.HelmRepositories, "foreign", 1, "Ready", "False", "Failed", "nobody asked")
	f.Insist(w.Event(render.HelmRepositories, "foreign"))
	w.wants("web", "Ready", "True Ready")
	w.Patch(render.Worktrees, "web", `{status: {url: "https://git.test/r.git", referenceName: refs/heads/main}}`, "status")
	suite.Run(w.World, worktreemirror.Declare()).Insist(w.Event(render.Worktrees, "web"))
	w.says(render.GitRepositories, "web", 1, "Ready", "False", "GitOperationFailed", "no access")
	f.Insist(w.Event(render.GitRepositories, "web"))
	w.wants("web", "Ready", "False SourceFailed: GitRepository/web: GitOperationFailed: no access")
	f.Rests(w.event("web"))
}
