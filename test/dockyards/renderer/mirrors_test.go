package renderer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	helmreleasemirror "github.com/slipway-dev/slipway/functions/helmrelease-mirror"
	kustomizationmirror "github.com/slipway-dev/slipway/functions/kustomization-mirror"
	worktreemirror "github.com/slipway-dev/slipway/functions/worktree-mirror"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/inventory"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/test/suite"
)

// worktree makes a Worktree whose files were committed, or not.
func (w *world) worktree(name, status string) {
	w.t.Helper()
	w.Create(fmt.Sprintf(`{apiVersion: dockyards.io/v1alpha3, kind: Worktree, metadata: {name: %s, labels: {dockyards.io/workload-name: web, other: x}}, spec: {files: {a: YQ==}}}`, name))
	w.Patch(render.Worktrees, name, `{status: `+status+`}`, "status")
}

func TestAWorktreeBecomesASourceAtItsCommit(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	cases := map[string]struct{ reason, status, ref, want string }{
		"Branch":      {"no commit is known yet", `{url: "https://git.test/r.git", referenceName: refs/heads/main}`, `{"name":"refs/heads/main"}`, "True Reconciled"},
		"Commit":      {"a commit says more", `{url: "https://git.test/r.git", referenceName: refs/heads/main, commitHash: ` + commit + `}`, `{"commit":"` + commit + `"}`, "True Reconciled"},
		"NoURL":       {"it comes later", `{commitHash: ` + commit + `}`, "", "False WaitingForRepository"},
		"EmptyURL":    {"empty is none", `{url: "", commitHash: ` + commit + `}`, "", "False WaitingForRepository"},
		"NoReference": {"it comes later", `{url: "https://git.test/r.git"}`, "", "False WaitingForRepository"},
		"Scheme":      {"files of the source controller", `{url: "file:///etc", commitHash: ` + commit + `}`, "", "False InvalidRepository"},
		"User":        {"no credentials in a status", `{url: "https://u:p@git.test/r.git", commitHash: ` + commit + `}`, "", "False InvalidRepository"},
		"Hash":        {"no hash at all", `{url: "https://git.test/r.git", commitHash: main}`, "", "False InvalidRepository"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.worktree("files", tc.status)
			f := suite.Run(w.World, worktreemirror.Declare())
			f.Insist(w.Event(render.Worktrees, "files"))
			if got := w.Condition(render.Worktrees, "files", "GitRepositoryReconciled"); got != tc.want {
				t.Errorf("%s: the condition is %q, want %q", tc.reason, got, tc.want)
			}
			obj := w.Get(render.GitRepositories, "files")
			if (obj == nil) != (tc.ref == "") {
				t.Fatalf("%s: the source is %v", tc.reason, obj)
			}
			if obj != nil {
				if got := suite.Bytes(t, obj, "spec", "ref"); got != tc.ref {
					t.Errorf("%s: ref is %s, want %s", tc.reason, got, tc.ref)
				}
				if got := suite.Text(obj, "spec", "interval"); got != "5m0s" {
					t.Errorf("interval is %s", got)
				}
				if diff := cmp.Diff(map[string]string{"dockyards.io/workload-name": "web"}, obj.GetLabels()); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
			}
			f.Rests(w.Event(render.Worktrees, "files"))
		})
	}
}

func TestASourceFollowsItsWorktreeAndKeepsWhatOthersSet(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	w := newWorld(t)
	w.worktree("files", `{url: "https://git.test/r.git", referenceName: refs/heads/main}`)
	f := suite.Run(w.World, worktreemirror.Declare())
	f.Insist(w.Event(render.Worktrees, "files"))
	w.Patch(render.GitRepositories, "files", `{spec: {secretRef: {name: s}, suspend: true, url: "https://evil.test"}}`)
	f.Insist(w.Event(render.GitRepositories, "files"))
	w.Patch(render.Worktrees, "files", `{status: {commitHash: `+commit+`}}`, "status")
	f.Insist(w.Event(render.Worktrees, "files"))
	obj := w.Must(render.GitRepositories, "files")
	if got := suite.Bytes(t, obj, "spec", "ref"); got != `{"commit":"`+commit+`"}` {
		t.Errorf("ref is %s", got)
	}
	if got := suite.Text(obj, "spec", "url") + suite.Text(obj, "spec", "secretRef", "name") + suite.Text(obj, "spec", "suspend"); got != "https://git.test/r.gitstrue" {
		t.Errorf("the spec is %v", obj.Object["spec"])
	}
	w.Patch(render.Worktrees, "files", `{status: {url: null}}`, "status")
	f.Insist(w.Event(render.Worktrees, "files"))
	if w.Get(render.GitRepositories, "files") == nil {
		t.Error("the source went with the url")
	}
	w.Patch(render.Worktrees, "files", `{status: {url: "https://git.test/r.git"}}`, "status")
	w.Remove(render.GitRepositories, "files")
	f.Insist(w.Event(render.GitRepositories, "files"))
	w.Must(render.GitRepositories, "files")
	f.Rests(w.Event(render.Worktrees, "files"))
}

func TestASourceOfSomebodyElseIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.Create(`{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: files, ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Workload, name: web, uid: 11111111-1111-1111-1111-111111111111, controller: true}]}, spec: {url: "https://x.test", interval: 1m}}`)
	w.worktree("files", `{url: "https://git.test/r.git", referenceName: refs/heads/main}`)
	before := w.Snapshot()["GitRepository/files"]
	f := suite.Run(w.World, worktreemirror.Declare())
	f.Insist(w.Event(render.Worktrees, "files"))
	if got := w.Condition(render.Worktrees, "files", "GitRepositoryReconciled"); got != "False ObjectNotOwned" || w.Snapshot()["GitRepository/files"] != before {
		t.Errorf("the condition is %q", got)
	}
	f.Rests(w.Event(render.Worktrees, "files"))
}

func TestASourceOfUpstreamIsAdopted(t *testing.T) {
	w := newWorld(t)
	w.worktree("files", `{url: "https://git.test/r.git", referenceName: refs/heads/main}`)
	uid := w.Must(render.Worktrees, "files").GetUID()
	made := w.CreateAs(inventory.Upstream, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: files, ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Worktree, name: files, uid: `+string(uid)+`, blockOwnerDeletion: true}]}, spec: {url: "https://git.test/r.git", interval: 5m0s, ref: {name: refs/heads/main}}}`)
	f := suite.Run(w.World, worktreemirror.Declare())
	f.Insist(w.Event(render.Worktrees, "files"))
	obj := w.Must(render.GitRepositories, "files")
	if obj.GetUID() != made.GetUID() || obj.GetGeneration() != made.GetGeneration() {
		t.Errorf("it is %s/%d and was %s/%d", obj.GetUID(), obj.GetGeneration(), made.GetUID(), made.GetGeneration())
	}
	w.Patch(render.Worktrees, "files", `{status: {commitHash: 0123456789abcdef0123456789abcdef01234567}}`, "status")
	f.Insist(w.Event(render.Worktrees, "files"))
	if got := suite.Bytes(t, w.Must(render.GitRepositories, "files"), "spec", "ref"); strings.Contains(got, "name") {
		t.Errorf("ref is %s", got)
	}
	f.Rests(w.Event(render.Worktrees, "files"))
}

// mirrored are the two kinds with an object of each and the function that mirrors it.
var mirrored = map[string]struct {
	res     kind.Resource
	declare func() reconcile.Function[inventory.Input]
	name    string
	object  string
	domain  string
	status  string
	free    string
}{
	"Kustomization": {
		render.Kustomizations, kustomizationmirror.Declare, "web-4l8sj",
		`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: web%s}, spec: {interval: 5m, prune: true, sourceRef: {kind: GitRepository, name: web}, kubeConfig: {secretRef: {name: demo-kubeconfig}}}}`,
		"kustomize.toolkit.fluxcd.io", `lastAppliedRevision: "main@sha1:abc"`, `"prune":false`,
	},
	"HelmRelease": {
		render.HelmReleases, helmreleasemirror.Declare, "web-lpfhh",
		`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: web%s}, spec: {interval: 5m, chartRef: {kind: OCIRepository, name: web}, kubeConfig: {secretRef: {name: demo-kubeconfig}}}}`,
		"helm.toolkit.fluxcd.io", `history: [{chartName: c, chartVersion: 1.2.3, configDigest: x, digest: x, firstDeployed: "2026-01-01T00:00:00Z", lastDeployed: "2026-01-01T00:00:00Z", name: x, namespace: x, status: deployed, version: 1}]`, `"suspend":true`,
	},
}

const workloadMarks = `, labels: {dockyards.io/workload-name: web, dockyards.io/cluster-name: demo, other: x}`

func TestWhatFluxAppliesIsMirroredIntoAnInventory(t *testing.T) {
	for name, tc := range mirrored {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Create(fmt.Sprintf(tc.object, workloadMarks))
			f := suite.Run(w.World, tc.declare())
			f.Insist(w.Event(tc.res, "web"))
			obj := w.Must(inventory.Inventories, tc.name)
			want := fmt.Sprintf(`{"matchLabels":{"%s/name":"web","%s/namespace":"%s"}}`, tc.domain, tc.domain, w.NS)
			if got := suite.Bytes(t, obj, "spec", "selector"); got != want {
				t.Errorf("the selector is %s", got)
			}
			if refs := obj.GetOwnerReferences(); len(refs) != 1 || refs[0].Kind != name || refs[0].Controller != nil {
				t.Errorf("the owners are %v", refs)
			}
			f.Rests(w.Event(tc.res, "web"))
			w.Patch(inventory.Inventories, tc.name, `{spec: {urls: ["https://x.test"]}}`)
			w.Patch(tc.res, "web", `{status: {observedGeneration: 1, conditions: [{type: Ready, status: "False", reason: Broken, message: "canary value", lastTransitionTime: "2026-01-01T00:00:00Z"}], `+tc.status+`}}`, "status")
			f.Insist(w.Event(tc.res, "web"))
			obj = w.Must(inventory.Inventories, tc.name)
			if got := obj.GetAnnotations(); got[inventory.AnnotationReady] != "False" || got[inventory.AnnotationReason] != "Broken" || got[inventory.AnnotationRevision] == "" {
				t.Errorf("the state is %v", got)
			}
			if suite.Bytes(t, obj, "spec", "urls") != `["https://x.test"]` || strings.Contains(suite.Bytes(t, obj), "canary") {
				t.Errorf("the inventory is %v", obj.Object)
			}
			w.Patch(inventory.Inventories, tc.name, `{spec: {selector: {matchLabels: {extra: "1"}}}}`)
			f.Insist(w.Event(inventory.Inventories, tc.name))
			if got := suite.Bytes(t, w.Must(inventory.Inventories, tc.name), "spec", "selector"); got != want {
				t.Errorf("the selector is %s", got)
			}
			w.Remove(inventory.Inventories, tc.name)
			f.Insist(w.Event(inventory.Inventories, tc.name))
			w.Must(inventory.Inventories, tc.name)
			f.Rests(w.Event(tc.res, "web"))
		})
	}
}

func TestWhatBelongsToNoWorkloadIsIgnored(t *testing.T) {
	for name, tc := range mirrored {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Create(fmt.Sprintf(tc.object, `, labels: {dockyards.io/workload-name: web}`))
			f := suite.Run(w.World, tc.declare())
			f.Rests(w.Event(tc.res, "web"))
			w.Patch(tc.res, "web", `{metadata: {finalizers: [finalizers.fluxcd.io]}}`)
			w.Remove(tc.res, "web")
			f.Rests(w.Event(tc.res, "web"))
			w.Patch(tc.res, "web", `{metadata: {finalizers: null}}`)
		})
	}
}

func TestAnInventoryOfUpstreamIsAdoptedAndItsSelectorShrinks(t *testing.T) {
	w := newWorld(t)
	tc := mirrored["HelmRelease"]
	owner := w.Create(fmt.Sprintf(tc.object, workloadMarks))
	made := w.CreateAs(inventory.Upstream, fmt.Sprintf(`{apiVersion: dockyards.io/v1alpha3, kind: WorkloadInventory, metadata: {name: %s, ownerReferences: [{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: web, uid: %s}]},
  spec: {selector: {matchLabels: {app.kubernetes.io/managed-by: Helm, helm.sh/chart: c-1, helm.toolkit.fluxcd.io/name: web}}}}`, tc.name, owner.GetUID()))
	w.Patch(inventory.Inventories, tc.name, `{spec: {urls: ["https://x.test"]}}`)
	f := suite.Run(w.World, tc.declare())
	f.Insist(w.Event(tc.res, "web"))
	obj := w.Must(inventory.Inventories, tc.name)
	if obj.GetUID() != made.GetUID() || strings.Contains(suite.Bytes(t, obj), "helm.sh/chart\":\"c-1") {
		t.Errorf("it is %v", obj.Object)
	}
	if got := suite.Bytes(t, obj, "spec", "urls"); got != `["https://x.test"]` {
		t.Errorf("urls are %s: another component writes them", got)
	}
	f.Rests(w.Event(tc.res, "web"))
}

func TestAnObjectWhoseClusterIsGoneIsLetGo(t *testing.T) {
	for name, tc := range mirrored {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Create(`{apiVersion: v1, kind: Secret, metadata: {name: demo-kubeconfig}}`)
			w.Create(fmt.Sprintf(tc.object, workloadMarks))
			w.Patch(tc.res, "web", `{metadata: {finalizers: [finalizers.fluxcd.io]}}`)
			w.Remove(tc.res, "web")
			f := suite.Run(w.World, tc.declare())
			still := func(reason string) {
				t.Helper()
				f.Insist(w.Event(tc.res, "web"))
				if strings.Contains(suite.Bytes(t, w.Must(tc.res, "web"), "spec"), tc.free) {
					t.Errorf("it was let go although %s", reason)
				}
			}
			still("everything is there")
			w.Remove(kind.Secrets, "demo-kubeconfig")
			f.Asked()
			still("the Cluster lives: its kubeconfig may be on its way back")
			if _, writes := f.Asked(); !strings.Contains(strings.Join(writes, " "), "create events") {
				t.Errorf("no Event says what is awaited: %v", writes)
			}
			w.Remove(dockyards.Clusters, "demo")
			f.Insist(w.Event(dockyards.Clusters, "demo"))
			if got := suite.Bytes(t, w.Must(tc.res, "web"), "spec"); !strings.Contains(got, tc.free) {
				t.Errorf("it is still held: %s", got)
			}
			f.Rests(w.Event(tc.res, "web"))
			w.Patch(tc.res, "web", `{metadata: {finalizers: null}}`)
		})
	}
}

func TestAKubeconfigThatIsFoundInAnotherWayIsNotMissed(t *testing.T) {
	w := newWorld(t)
	w.Create(`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: web, finalizers: [finalizers.fluxcd.io]` + workloadMarks + `}, spec: {interval: 5m, prune: true, sourceRef: {kind: GitRepository, name: web}, kubeConfig: {configMapRef: {name: x}}}}`)
	w.Remove(render.Kustomizations, "web")
	w.Remove(dockyards.Clusters, "demo")
	f := suite.Run(w.World, kustomizationmirror.Declare())
	f.Insist(w.Event(render.Kustomizations, "web"))
	if got := suite.Text(w.Must(render.Kustomizations, "web"), "spec", "prune"); got != "true" {
		t.Errorf("prune is %s", got)
	}
	w.Patch(render.Kustomizations, "web", `{metadata: {finalizers: null}}`)
}
