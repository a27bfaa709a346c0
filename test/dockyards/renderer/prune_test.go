package renderer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/workload-renderer/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/test/suite"
)

func (w *world) inventory(name string) string {
	w.t.Helper()
	return w.Must(dockyards.Workloads, name).GetAnnotations()[decide.AnnotationInventory]
}

func TestSourcesStayUntilFluxHasCleanedUp(t *testing.T) {
	w := newWorld(t)
	w.workload("web", both)
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.Patch(render.Kustomizations, "web", `{metadata: {finalizers: [finalizers.fluxcd.io]}}`)
	w.template("web", head)
	f.Insist(w.event("web"))
	w.wants("web", "Reconciling", "True Pruning: Kustomization/web is being deleted")
	w.wants("web", "Ready", "False Pruning")
	if w.Must(render.GitRepositories, "web").GetDeletionTimestamp() != nil {
		t.Error("the source went before its Kustomization")
	}
	f.Rests(w.event("web"))
	w.Patch(render.Kustomizations, "web", `{metadata: {finalizers: null}}`)
	f.Insist(w.Event(render.Kustomizations, "web")) // deleted: only the inventory tells whose it was
	if got := w.made(); len(got) > 0 {
		t.Errorf("there are still %v", got)
	}
	if got := w.inventory("web"); got != "[]" {
		t.Errorf("the inventory is %s", got)
	}
	w.wants("web", "Ready", "True Ready")
}

func TestWhatAPersonKeepsStaysAndIsReleased(t *testing.T) {
	w := newWorld(t)
	w.workload("web", both+configMap("keep", ""))
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.Patch(render.ConfigMaps, "keep", `{metadata: {annotations: {slipway.dev/prune: "false"}}}`)
	w.template("web", both)
	f.Insist(w.event("web"))
	if refs := w.Must(render.ConfigMaps, "keep").GetOwnerReferences(); len(refs) > 0 {
		t.Errorf("it still belongs to %v", refs)
	}
	if strings.Contains(w.inventory("web"), "keep") {
		t.Errorf("the inventory is %s", w.inventory("web"))
	}
	w.wants("web", "WorkloadTemplateReconciled", "True Ready")
	f.Rests(w.event("web"))
}

func TestPruningIsCappedAndGoesOn(t *testing.T) {
	w := newWorld(t)
	source := head
	for i := range 5 {
		source += configMap(fmt.Sprintf("c%d", i), "")
	}
	w.workload("web", source)
	f := w.copyWith([]string{"RENDERER_MAX_PRUNE", "2"})
	f.Insist(w.event("web"))
	w.template("web", head)
	for _, left := range []int{3, 1, 0} {
		f.Insist(w.event("web"))
		if got := w.made(); len(got) != left {
			t.Errorf("there are %v, want %d", got, left)
		}
	}
	f.Insist(w.event("web"))
	f.Rests(w.event("web"))
}

func TestAnInventoryThatSomebodyTamperedWithPrunesNothing(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"KindNotAllowed": func(s string) string { return strings.Replace(s, `"ConfigMap"`, `"Pod"`, 1) },
		"UnknownKey":     func(s string) string { return strings.Replace(s, `{"g"`, `{"x":1,"g"`, 1) },
		"NotCanonical":   func(s string) string { return strings.Replace(s, `,`, `, `, 1) },
		"NoJSON":         func(string) string { return "everything" },
		"OtherScope":     func(s string) string { return strings.Replace(s, `"}`, `","c":true}`, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.workload("web", head+configMap("a", "")+configMap("b", ""))
			f := w.copyOf()
			f.Insist(w.event("web"))
			w.Update(dockyards.Workloads, "web", "person", func(obj *unstructuredObject) {
				dockyards.SetAnnotation(obj, decide.AnnotationInventory, change(obj.GetAnnotations()[decide.AnnotationInventory]))
			})
			w.template("web", head+configMap("a", `k: "v"`)+configMap("c", ""))
			f.Insist(w.event("web"))
			if diff := cmp.Diff([]string{"ConfigMap/a", "ConfigMap/b", "ConfigMap/c"}, w.made()); diff != "" {
				t.Errorf("applying goes on, and nothing is deleted (-want +got):\n%s", diff)
			}
			w.wants("web", "WorkloadTemplateReconciled", "False InventoryInvalid")
			f.Rests(w.event("web"))
			w.Patch(dockyards.Workloads, "web", `{metadata: {annotations: {slipway.dev/inventory: null}}}`)
			f.Insist(w.event("web"))
			w.wants("web", "WorkloadTemplateReconciled", "True Ready: left alone, since no inventory names them: ConfigMap/b")
		})
	}
}

func TestALostInventoryIsHarmless(t *testing.T) {
	w := newWorld(t)
	w.workload("web", head+configMap("a", "")+configMap("b", ""))
	f := w.copyOf()
	f.Insist(w.event("web"))
	before := w.inventory("web")
	w.Patch(dockyards.Workloads, "web", `{metadata: {annotations: {slipway.dev/inventory: null}}}`)
	f.Insist(w.event("web"))
	if got := w.inventory("web"); got != before {
		t.Errorf("the inventory is %s, and was %s", got, before)
	}
	w.Patch(dockyards.Workloads, "web", `{metadata: {annotations: {slipway.dev/inventory: null}}}`)
	w.template("web", head+configMap("a", ""))
	f.Asked()
	f.Insist(w.event("web"))
	w.Must(render.ConfigMaps, "b")
	w.wants("web", "Ready", "True Ready: left alone, since no inventory names them: ConfigMap/b")
	if _, writes := f.Asked(); !strings.Contains(strings.Join(writes, " "), "create events") {
		t.Errorf("no Event tells of what is left alone: %v", writes)
	}
	f.Rests(w.event("web"))
	w.Patch(dockyards.Workloads, "web", `{metadata: {annotations: {slipway.dev/prune-orphans: "true"}}}`)
	f.Insist(w.event("web"))
	if w.Get(render.ConfigMaps, "b") != nil {
		t.Error("a person asked for it, and it is still there")
	}
	w.wants("web", "Ready", "True Ready")
	f.Rests(w.event("web"))
}

func TestPruningNeedsTheSameUIDAndTheSameOwner(t *testing.T) {
	w := newWorld(t)
	w.workload("web", head+configMap("a", "")+configMap("b", ""))
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.Remove(render.ConfigMaps, "a")
	w.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {of: person}}`)
	w.Patch(render.ConfigMaps, "b", `{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: 11111111-1111-1111-1111-111111111111, controller: true}]}}`)
	w.template("web", head)
	f.Insist(w.event("web"))
	if diff := cmp.Diff([]string{"ConfigMap/a", "ConfigMap/b"}, w.made()); diff != "" {
		t.Errorf("others' objects of the same names (-want +got):\n%s", diff)
	}
	if got := w.inventory("web"); got != "[]" {
		t.Errorf("the inventory is %s", got)
	}
	f.Rests(w.event("web"))
}

func TestADeletedWorkloadTakesItsReleasesDownFirst(t *testing.T) {
	w := newWorld(t)
	w.workload("web", both+configMap("settings", "")+configMap("keep", ""))
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.Patch(render.Kustomizations, "web", `{metadata: {finalizers: [finalizers.fluxcd.io]}}`)
	w.Patch(render.ConfigMaps, "keep", `{metadata: {annotations: {slipway.dev/prune: "false"}}}`)
	w.Remove(dockyards.Clusters, "demo")
	w.Remove(kindsTemplates, "web")
	w.Remove(dockyards.Workloads, "web")
	f.Insist(w.event("web"))
	w.wants("web", "Reconciling", "True Deleting: Kustomization/web is being deleted: finalizers.fluxcd.io has to be done first")
	w.wants("web", "Ready", "False Deleting")
	w.Must(render.GitRepositories, "web")
	w.Must(render.ConfigMaps, "settings")
	f.Rests(w.event("web"))
	w.Patch(render.Kustomizations, "web", `{metadata: {finalizers: null}}`)
	f.Insist(w.Event(render.Kustomizations, "web"))
	if w.Get(dockyards.Workloads, "web") != nil {
		t.Error("the Workload is still held")
	}
	if diff := cmp.Diff([]string{"ConfigMap/keep"}, w.made()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if refs := w.Must(render.ConfigMaps, "keep").GetOwnerReferences(); len(refs) > 0 {
		t.Errorf("the garbage collector would take what a person keeps: %v", refs)
	}
	f.Rests(w.event("web"))
}

func TestAnUnreadableInventoryHoldsNoDeletionUp(t *testing.T) {
	w := newWorld(t)
	w.workload("web", both+configMap("settings", ""))
	f := w.copyOf()
	f.Insist(w.event("web"))
	w.Patch(dockyards.Workloads, "web", `{metadata: {annotations: {slipway.dev/inventory: "x"}}}`)
	w.Remove(dockyards.Workloads, "web")
	f.Insist(w.event("web"))
	if w.Get(dockyards.Workloads, "web") != nil || len(w.made()) > 0 {
		t.Errorf("there are still %v", w.Names())
	}
}

func TestAWorkloadThatNeverRenderedIsNotHeld(t *testing.T) {
	w := newWorld(t)
	w.workload("web", head+"broken: 1 & 2\n")
	f := w.copyOf()
	f.Insist(w.event("web"))
	if got := w.Must(dockyards.Workloads, "web").GetFinalizers(); len(got) > 0 {
		t.Errorf("it has %v", got)
	}
	w.Remove(dockyards.Workloads, "web")
	f.Insist(w.event("web"))
	if w.Get(dockyards.Workloads, "web") != nil {
		t.Error("it is still there")
	}
	if got := suite.Text(w.Must(dockyards.Clusters, "demo"), "metadata", "name"); got != "demo" {
		t.Error(got)
	}
}
