package renderer

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	workloadrenderer "github.com/slipway-dev/slipway/functions/workload-renderer"
	"github.com/slipway-dev/slipway/functions/workload-renderer/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/test/suite"
)

// object is an output as CUE.
func object(apiVersion, kindName, metadata, rest string) string {
	return fmt.Sprintf("x: {apiVersion: %q, kind: %q, metadata: {%s}%s}\n", apiVersion, kindName, metadata, rest)
}

// release is a Kustomization with a kubeConfig and more.
func release(spec string) string {
	return object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", `name: "x"`, `, spec: {interval: "5m", prune: true, `+spec+`}`)
}

const (
	plainRef = `sourceRef: {kind: "GitRepository", name: "x"}`
	remote   = `kubeConfig: secretRef: name: "demo-kubeconfig"`
)

func TestBadTemplatesAreSaidAndTouchNothing(t *testing.T) {
	cases := map[string]struct{ reason, source, want string }{
		"Syntax":             {"no CUE at all", "package template\n{", "BuildInstanceFailed: expected '}'"},
		"Import":             {"no module is looked at", "package template\nimport \"github.com/x/y\"\n", `BuildInstanceFailed: import "github.com/x/y" is not allowed`},
		"Embed":              {"no file is looked at", "@extern(embed)\npackage template\nx: _ @embed(file=\"/etc/passwd\")\n", "BuildInstanceFailed: attribute @extern is not allowed"},
		"NoCluster":          {"the definitions are part of the contract", "package template\n#workload: _\n", "LookupPathFailed: must have cluster definition"},
		"Schema":             {"what is bound does not fit", "package template\n#cluster: metadata: name: \"other\"\n#workload: _\n", "FillPathFailed: #cluster.metadata.name: conflicting values"},
		"Open":               {"an output has to be concrete", head + object("v1", "ConfigMap", "name: string", ""), "ValidateFailed: x.metadata.name: incomplete value string"},
		"NoObject":           {"a list is no object", head + "x: [1]\n", `DecodeFailed: output "x" is no object`},
		"NoKind":             {"an object has a kind", head + "x: {apiVersion: \"v1\", metadata: name: \"x\"}\n", `DecodeFailed: output "x" has no kind`},
		"NoName":             {"an object has a name", head + "x: {apiVersion: \"v1\", kind: \"ConfigMap\"}\n", `DecodeFailed: output "x" has no metadata.name`},
		"Twice":              {"two outputs are one object", head + object("v1", "ConfigMap", `name: "x"`, "") + "y: x\n", `DecodeFailed: output "y" is the same object as output "x"`},
		"BigNumber":          {"JSON cannot carry it", head + object("v1", "ConfigMap", `name: "x"`, ", data: n: 9223372036854775808"), `DecodeFailed: output "x" has at data.n the number 9223372036854775808`},
		"SecretText":         {"a Secret's data are bytes", head + object("v1", "Secret", `name: "x"`, `, data: a: "no base64!"`), `DecodeFailed: output "x" has data["a"] that is no bytes`},
		"Pod":                {"any other kind", head + object("v1", "Pod", `name: "x"`, ""), "ObjectNotAllowed: output \"x\", Pod "},
		"ClusterRoleBinding": {"rights of the whole cluster", head + object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", `name: "x"`, ""), "ObjectNotAllowed"},
		"RoleIsOff":          {"rights have to be switched on", head + object("rbac.authorization.k8s.io/v1", "Role", `name: "x"`, ""), "ObjectNotAllowed"},
		"OtherNamespace":     {"another tenant's", head + object("v1", "ConfigMap", `name: "x", namespace: "kube-system"`, ""), `ObjectNotAllowed: output "x", ConfigMap kube-system/x: namespace "kube-system" is not the Workload's`},
		"GenerateName":       {"the name has to be known", head + object("v1", "ConfigMap", `name: "x", generateName: "y-"`, ""), "ObjectNotAllowed"},
		"OwnerReferences":    {"belongs to us", head + object("v1", "ConfigMap", `name: "x", ownerReferences: []`, ""), "ObjectNotAllowed"},
		"Finalizers":         {"could never go", head + object("v1", "ConfigMap", `name: "x", finalizers: ["a/b"]`, ""), "ObjectNotAllowed"},
		"Status":             {"is Flux'", head + object("v1", "ConfigMap", `name: "x"`, ", status: a: 1"), "ObjectNotAllowed"},
		"BadName":            {"no valid name", head + object("v1", "ConfigMap", `name: "X_Y"`, ""), "ObjectNotAllowed"},
		"BadLabel":           {"no string", head + object("v1", "ConfigMap", `name: "x", labels: a: 5`, ""), "ObjectNotAllowed"},
		"ForeignWorkload":    {"another Workload's mark", head + object("v1", "ConfigMap", `name: "x", labels: "dockyards.io/workload-name": "other"`, ""), "ObjectNotAllowed"},
		"OurAnnotation":      {"the domain is ours", head + object("v1", "ConfigMap", `name: "x", annotations: "slipway.dev/owner-uid": "x"`, ""), "ObjectNotAllowed"},
		"LocalApply":         {"Flux would apply it here, with its own rights", head + release(plainRef), "ObjectNotAllowed: output \"x\", Kustomization "},
		"OtherCluster":       {"another cluster's kubeconfig", head + release(plainRef+`, kubeConfig: secretRef: name: "other-kubeconfig"`), "ObjectNotAllowed"},
		"ConfigMapRef":       {"leads anywhere", head + release(plainRef+`, kubeConfig: configMapRef: name: "x"`), "ObjectNotAllowed"},
		"BothRefs":           {"one hides the other", head + release(plainRef+`, kubeConfig: {secretRef: name: "demo-kubeconfig", configMapRef: name: "x"}`), "ObjectNotAllowed"},
		"ForeignSource":      {"another tenant's source", head + release(remote+`, sourceRef: {kind: "GitRepository", name: "x", namespace: "other"}`), "ObjectNotAllowed"},
		"ForeignDependency":  {"another tenant's object", head + release(remote+", "+plainRef+`, dependsOn: [{name: "a"}, {name: "x", namespace: "other"}]`), "ObjectNotAllowed"},
		"CloudIdentity":      {"Flux' own rights in the cloud", head + object("source.toolkit.fluxcd.io/v1", "GitRepository", `name: "x"`, `, spec: {interval: "5m", url: "https://x.test", provider: "azure"}`), "ObjectNotAllowed"},
		"TokenSecret":        {"rights of a ServiceAccount", head + object("v1", "Secret", `name: "x", annotations: "kubernetes.io/service-account.name": "default"`, `, type: "kubernetes.io/service-account-token"`), "ObjectNotAllowed"},
		"KubeconfigSecret":   {"says where Flux applies things", head + object("v1", "Secret", `name: "other-kubeconfig"`, ""), "ObjectNotAllowed"},
		"AnyNamespace":       {"somebody's namespace", head + object("v1", "Namespace", `name: "kube-system"`, ""), "ObjectNotAllowed"},
		"NamespaceLabels":    {"lifts restrictions", head + object("v1", "Namespace", `name: "\(#workload.metadata.namespace)-x", labels: "pod-security.kubernetes.io/enforce": "privileged"`, ""), "ObjectNotAllowed"},
		"FileName":           {"leads out of the tree", head + object("dockyards.io/v1alpha3", "Worktree", `name: "x"`, `, spec: files: "../x": 'a'`), "ObjectNotAllowed"},
		"GitFolder":          {"hooks", head + object("dockyards.io/v1alpha3", "Worktree", `name: "x"`, `, spec: files: ".git/hooks/post-checkout": 'a'`), "ObjectNotAllowed"},
		"UnknownField":       {"the schema refuses it", head + object("v1", "ConfigMap", `name: "x"`, ", dat: a: \"1\""), "ReconcileFailed"},
		"WrongType":          {"the schema refuses it", head + release(remote+`, `+plainRef+`, wait: "yes"`), "ReconcileFailed"},
		"UnknownVersion":     {"the API does not serve it", head + object("kustomize.toolkit.fluxcd.io/v9", "Kustomization", `name: "x"`, ""), "ObjectNotAllowed"},
		"ManyObjects":        {"a limit", "package template\nimport \"list\"\n#cluster: _\n#workload: _\nfor i in list.Range(0, 70, 1) {\"c\\(i)\": {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"c\\(i)\"}}\n", "RenderLimitExceeded: the template gives 70 objects, 64 are allowed"},
		"HugeObject":         {"a limit", "package template\nimport \"strings\"\n#cluster: _\n#workload: _\n" + object("v1", "ConfigMap", `name: "x"`, `, data: a: strings.Repeat("0123456789", 150000)`), "RenderLimitExceeded"},
		"Memory":             {"a limit", "package template\nimport \"strings\"\n#cluster: _\n#workload: _\nx: strings.Repeat(strings.Repeat(\"0123456789\", 100000), 100000)\n", "RenderLimitExceeded: rendering takes more than 256 MiB of memory"},
		"LongSource":         {"a limit", head + "// " + strings.Repeat("x", 513<<10) + "\n", "BuildInstanceFailed: the source has"},
	}
	w := newWorld(t)
	f := w.copyOf()
	w.workload("web", both)
	f.Insist(w.event("web"))
	before := w.Snapshot()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w.template("web", tc.source)
			if got := f.Send(w.event("web")); got != http.StatusNoContent {
				t.Errorf("%s: the event was answered %d", tc.reason, got)
			}
			w.wants("web", "WorkloadTemplateReconciled", "False "+tc.want)
			w.wants("web", "Ready", "False ")
			after := w.Snapshot()
			for _, key := range []string{"GitRepository/web", "Kustomization/web"} {
				if before[key] != after[key] {
					t.Errorf("%s: %s was touched", tc.reason, key)
				}
			}
			// What the template before meant to make, and never did, is forgotten in two steps.
			f.Insist(w.event("web"))
			f.Asked()
			f.Insist(w.event("web"))
			_, writes := f.Asked()
			// What the API server refuses is tried again, and nothing is changed by it.
			writes = slices.DeleteFunc(writes, func(call string) bool { return strings.HasSuffix(call, " 422") || strings.HasSuffix(call, " 400") })
			if len(writes) > 0 {
				t.Errorf("%s: another event wrote %v", tc.reason, writes)
			}
		})
	}
	w.template("web", both)
	f.Insist(w.event("web"))
	w.wants("web", "WorkloadTemplateReconciled", "True Ready")
	if _, quarantined := w.Must(dockyards.Workloads, "web").GetAnnotations()[decide.AnnotationQuarantine]; quarantined {
		t.Error("the quarantine did not end")
	}
}

func TestWhatIsAwaited(t *testing.T) {
	const workload = `{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: web, labels: {dockyards.io/cluster-name: %s}},
  spec: {provenience: User, targetNamespace: apps, workloadTemplateRef: {kind: WorkloadTemplate, name: web, namespace: %s}}}`
	cases := map[string]struct {
		reason string
		before func(w *world)
		want   string
	}{
		"NoOwner": {"no Cluster is named", func(w *world) {
			w.template("web", both)
			w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: web}, spec: {provenience: User, targetNamespace: apps, workloadTemplateRef: {kind: WorkloadTemplate, name: web}}}`)
		}, "False WaitingForCluster: the Workload names no Cluster"},
		"NoCluster": {"it comes later", func(w *world) {
			w.template("web", both)
			w.Create(fmt.Sprintf(workload, "later", `""`))
		}, `False WaitingForCluster: Cluster "later" does not exist`},
		"NoTemplate": {"it comes later", func(w *world) { w.Create(fmt.Sprintf(workload, "demo", `""`)) }, "False WaitingForWorkloadTemplate"},
		"OtherTenant": {"its template may hold secrets", func(w *world) {
			w.template("web", both)
			w.Create(fmt.Sprintf(workload, "demo", "kube-system"))
		}, `False WorkloadTemplateNotAllowed: templates of namespace "kube-system" may not be used`},
		"OtherType": {"somebody else renders it", func(w *world) {
			w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: WorkloadTemplate, metadata: {name: web}, spec: {type: helm, source: x}}`)
			w.Create(fmt.Sprintf(workload, "demo", `""`))
		}, `False IncorrectWorkloadTemplateType`},
		"NotReady": {"the cluster is not ready", func(w *world) {
			w.template("web", both)
			w.Create(fmt.Sprintf(workload, "demo", `""`))
			w.Patch(dockyards.Clusters, "demo", `{status: {conditions: [{type: Ready, status: "False", reason: X, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, "status")
		}, `False WaitingForClusterReady: Cluster "demo" is not ready`},
		"Going": {"nothing new is begun on a cluster that goes", func(w *world) {
			w.template("web", both)
			w.Create(fmt.Sprintf(workload, "demo", `""`))
			w.Patch(dockyards.Clusters, "demo", `{metadata: {finalizers: [a/b]}}`)
			w.Remove(dockyards.Clusters, "demo")
		}, `False WaitingForClusterReady: Cluster "demo" is being deleted`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.before(w)
			f := w.copyOf()
			f.Insist(w.event("web"))
			w.wants("web", "WorkloadTemplateReconciled", tc.want)
			if got := w.made(); len(got) > 0 {
				t.Errorf("%s: made %v", tc.reason, got)
			}
			f.Rests(w.event("web"))
			if name == "Going" {
				w.Patch(dockyards.Clusters, "demo", `{metadata: {finalizers: null}}`)
			}
		})
	}
}

func TestAComponentDoesNotWaitForItsCluster(t *testing.T) {
	w := newWorld(t)
	w.workload("web", both)
	w.Patch(dockyards.Clusters, "demo", `{status: {conditions: [{type: Ready, status: "False", reason: X, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, "status")
	w.Patch(dockyards.Workloads, "web", `{spec: {clusterComponent: true}}`)
	f := w.copyOf()
	f.Insist(w.Event(dockyards.Clusters, "demo"))
	w.wants("web", "WorkloadTemplateReconciled", "True Ready")
}

func TestAPublicTemplateIsUsedFromEverywhere(t *testing.T) {
	w := newWorld(t)
	public := w.At(w.NS + "-public")
	w.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + public.NS + `}}`)
	public.Create(`{apiVersion: dockyards.io/v1alpha3, kind: WorkloadTemplate, metadata: {name: web}, spec: {type: dockyards.io/cue, source: "` + strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(both, `\`, `\\`), `"`, `\"`), "\n", `\n`) + `"}}`)
	w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: web, labels: {dockyards.io/cluster-name: demo}},
  spec: {provenience: User, targetNamespace: apps, workloadTemplateRef: {kind: Anything, name: web, namespace: ` + public.NS + `}}}`)
	w.copyOf().Insist(w.event("web"))
	w.wants("web", "WorkloadTemplateReconciled", "False WorkloadTemplateNotAllowed")
	f := w.copyWith([]string{"RENDERER_PUBLIC_NAMESPACES", public.NS})
	f.Insist(public.Event(kindsTemplates, "web"))
	w.wants("web", "WorkloadTemplateReconciled", "True Ready")
}

// counted is a copy whose renders are counted.
func (w *world) counted(limits render.Limits) (*suite.Copy, *atomic.Int64) {
	w.t.Helper()
	settings, err := workloadrenderer.ParseSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		w.t.Fatal(err)
	}
	settings.Limits = limits
	var renders atomic.Int64
	return suite.Run(w.World, workloadrenderer.Declare(settings, func(ctx context.Context, r render.Request) (render.Result, error) {
		renders.Add(1)
		return pool.Render(ctx, r)
	})), &renders
}

// endless is a template that never ends: a product of disjunctions.
func endless() string {
	var b strings.Builder
	b.WriteString(head)
	for i := range 18 {
		fmt.Fprintf(&b, "#d%d: {a%d: 1} | {b%d: 2}\n", i, i, i)
	}
	b.WriteString("x: {apiVersion: \"v1\"}")
	for i := range 18 {
		fmt.Fprintf(&b, " & {#d%d, ...}", i)
	}
	return b.String() + "\n"
}

func TestARenderThatWasStoppedIsNotTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.workload("bad", endless())
	w.workload("good", both)
	limits := render.DefaultLimits()
	limits.CPU, limits.Wall = 500*time.Millisecond, 8*time.Second
	f, renders := w.counted(limits)
	f.Insist(w.event("good"))
	w.wants("good", "WorkloadTemplateReconciled", "True Ready")
	renders.Store(0)
	f.Insist(w.event("bad"))
	w.wants("bad", "WorkloadTemplateReconciled", "False RenderLimitExceeded: rendering takes more than 500ms of processor time")
	if got := renders.Load(); got != 1 {
		t.Errorf("it was rendered %d times", got)
	}
	f.Rests(w.event("bad"))
	renders.Store(0)
	f.Insist(w.event("bad"))
	if got := renders.Load(); got != 0 {
		t.Errorf("it was rendered %d times more", got)
	}
	w.Patch(dockyards.Workloads, "bad", `{metadata: {annotations: {slipway.dev/render-quarantine: null}}}`)
	f.Insist(w.event("bad"))
	if got := renders.Load(); got != 1 {
		t.Errorf("a person asked for another try, and it was rendered %d times", got)
	}
	w.template("bad", both)
	f.Insist(w.event("bad"))
	w.wants("bad", "WorkloadTemplateReconciled", "True Ready")
}

func TestWhoCannotRenderNowIsAskedToComeAgain(t *testing.T) {
	w := newWorld(t)
	w.workload("web", both)
	settings, err := workloadrenderer.ParseSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	f := suite.Run(w.World, workloadrenderer.Declare(settings, func(context.Context, render.Request) (render.Result, error) {
		return render.Result{}, fmt.Errorf("cannot render now: all renderers are busy")
	}))
	if got := f.Send(w.event("web")); got != http.StatusServiceUnavailable {
		t.Errorf("it was answered %d", got)
	}
	if got := w.why("web", "WorkloadTemplateReconciled"); got != "" {
		t.Errorf("the condition is %q", got)
	}
}

func TestNobodyTakesWhatIsAnothers(t *testing.T) {
	owned := `{apiVersion: v1, kind: ConfigMap, metadata: {name: x%s}, data: {of: person}}`
	marks := `, labels: {dockyards.io/workload-name: web, dockyards.io/cluster-name: demo}`
	cases := map[string]struct{ reason, object, want string }{
		"Persons":   {"it has no marks at all", fmt.Sprintf(owned, ""), "False ObjectNotOwned: output \"x\" is ConfigMap/x, which is not the Workload's"},
		"Worktrees": {"it has another controller", fmt.Sprintf(owned, marks+`, ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Worktree, name: tree, uid: 11111111-1111-1111-1111-111111111111, controller: true}]`), "False ObjectNotOwned: output \"x\" is ConfigMap/x, which is controlled by Worktree/tree"},
		"Adopted":   {"both labels and no controller: made by a predecessor", fmt.Sprintf(owned, marks), "True Ready"},
		"Restored":  {"its owner was a Workload of this name", fmt.Sprintf(owned, marks+`, ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Workload, name: web, uid: 11111111-1111-1111-1111-111111111111, controller: true}]`), "True Ready"},
		"OneLabel":  {"half the marks are none", fmt.Sprintf(owned, `, labels: {dockyards.io/workload-name: web}`), "False ObjectNotOwned"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Create(tc.object)
			before := w.Snapshot()["ConfigMap/x"]
			w.workload("web", both+object("v1", "ConfigMap", `name: "x"`, `, data: a: "b"`))
			f := w.copyOf()
			f.Insist(w.event("web"))
			w.wants("web", "WorkloadTemplateReconciled", tc.want)
			obj := w.Must(kind.ConfigMaps, "x")
			if strings.HasPrefix(tc.want, "True") {
				if refs := obj.GetOwnerReferences(); string(obj.GetUID()) != before.UID || len(refs) != 1 || refs[0].UID != w.Must(dockyards.Workloads, "web").GetUID() {
					t.Errorf("%s: it is %v", tc.reason, obj.Object)
				}
			} else {
				if diff := cmp.Diff([]string{"ConfigMap/x"}, w.made()); diff != "" || w.Snapshot()["ConfigMap/x"] != before {
					t.Errorf("%s: something was written (-want +got):\n%s", tc.reason, diff)
				}
			}
			f.Rests(w.event("web"))
		})
	}
}

func TestOfTwoWorkloadsTheFirstKeepsWhatBothGive(t *testing.T) {
	w := newWorld(t)
	shared := head + object("v1", "ConfigMap", `name: "x"`, "")
	w.workload("first", shared)
	w.workload("second", shared)
	f := w.copyOf()
	f.Insist(w.event("first"))
	f.Insist(w.event("second"))
	w.wants("second", "WorkloadTemplateReconciled", `False ObjectNotOwned: output "x" is ConfigMap/x, which is controlled by Workload/first`)
	w.Remove(dockyards.Workloads, "first")
	f.Insist(w.event("first"))
	f.Resync()
	w.wants("second", "WorkloadTemplateReconciled", "True Ready")
}
