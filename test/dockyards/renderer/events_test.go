package renderer

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/test/suite"
)

func TestATemplateWakesEveryWorkloadThatItResolvesTo(t *testing.T) {
	w := newWorld(t)
	w.template("web", both)
	for name, ref := range map[string]string{
		"plain": `{kind: WorkloadTemplate, name: web}`, "named": `{kind: WorkloadTemplate, name: web, namespace: ` + w.NS + `}`,
		"odd": `{apiGroup: x.test, kind: ClusterTemplate, name: web}`, "other": `{kind: WorkloadTemplate, name: other}`,
	} {
		w.Create(fmt.Sprintf(`{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: %s, labels: {dockyards.io/cluster-name: demo}},
  spec: {provenience: User, targetNamespace: apps, workloadTemplateRef: %s}}`, name, ref))
	}
	f := w.copyOf()
	f.Insist(w.Event(kindsTemplates, "web"))
	for name, want := range map[string]string{"plain": "True", "named": "True", "odd": "True", "other": ""} {
		if is, _, _ := suite.Condition(w.Must(dockyards.Workloads, name), "WorkloadTemplateReconciled"); is != want {
			t.Errorf("Workload %s is %q after the template's event, want %q", name, is, want)
		}
	}
}

func TestAClusterWakesTheWorkloadsThatNameItByOwnerOrLabel(t *testing.T) {
	w := newWorld(t)
	w.template("web", both)
	uid := w.Must(dockyards.Clusters, "demo").GetUID()
	for name, meta := range map[string]string{
		"owned":    `, ownerReferences: [{apiVersion: dockyards.io/v1alpha2, kind: Cluster, name: demo, uid: ` + string(uid) + `}]`,
		"labelled": `, labels: {dockyards.io/cluster-name: demo}`,
		"other":    `, labels: {dockyards.io/cluster-name: other}`,
	} {
		w.Create(fmt.Sprintf(`{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: %s%s},
  spec: {provenience: User, targetNamespace: apps, workloadTemplateRef: {kind: WorkloadTemplate, name: web}}}`, name, meta))
	}
	f := w.copyOf()
	f.Insist(w.Event(dockyards.Clusters, "demo"))
	for name, want := range map[string]string{"owned": "True", "labelled": "True", "other": ""} {
		if is, _, _ := suite.Condition(w.Must(dockyards.Workloads, name), "WorkloadTemplateReconciled"); is != want {
			t.Errorf("Workload %s is %q after the Cluster's event, want %q", name, is, want)
		}
	}
}

func TestEventsOfOthersObjectsWakeNobody(t *testing.T) {
	w := newWorld(t)
	w.workload("web", both)
	w.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	w.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {dockyards.io/workload-name: web}, ownerReferences: [{apiVersion: v1, kind: Pod, name: x, uid: 11111111-1111-1111-1111-111111111111, controller: true}]}}`)
	f := w.copyOf()
	for _, name := range []string{"a", "b", "gone"} {
		if got := f.Send(w.Event(kind.ConfigMaps, name)); got != http.StatusNoContent {
			t.Errorf("the event of %s was answered %d", name, got)
		}
	}
	if got := f.Send(suite.Changed("update", "v1", "Pod", w.NS, "x")); got != http.StatusBadRequest {
		t.Errorf("an event of a kind that wakes nobody was answered %d", got)
	}
	if got := w.made(); len(got) != 2 {
		t.Errorf("there are %v", got)
	}
}

// story is a life with everything in it: creation, change, pruning.
func story(w *world) func(*suite.Copy) {
	w.workload("web", both+configMap("a", "")+configMap("b", ""))
	return func(f *suite.Copy) {
		f.Insist(w.event("web"))
		w.template("web", both+configMap("b", `k: "v"`)+configMap("c", ""))
		f.Insist(w.event("web"))
	}
}

// trouble is one call that fails.
type trouble struct{ call, code int }

func (x trouble) String() string { return fmt.Sprintf("%d-%d", x.call, x.code) }

// TestAnyCallMayFailAndTheEndIsTheSame: every write and every sixth read, unless all
// are asked for.
func TestAnyCallMayFailAndTheEndIsTheSame(t *testing.T) {
	ref := newWorld(t)
	tell := story(ref)
	f := ref.copyOf()
	tell(f)
	want := ref.State()
	codes := []int{http.StatusInternalServerError, http.StatusConflict}
	var all []trouble
	for i, call := range f.Calls() {
		for way, code := range codes {
			if suite.Exhaustive() || (call.Write() || i%6 == 0) && way == i%len(codes) {
				all = append(all, trouble{i + 1, code})
			}
		}
	}
	t.Logf("%d of %d calls fail", len(all), len(f.Calls()))
	suite.Each(t, all, trouble.String, func(t *testing.T, x trouble) {
		w := newWorld(t)
		tell := story(w)
		f := w.copyOf(suite.WithTap(func(c suite.Call) (*http.Response, error) {
			if c.N == x.call {
				return suite.Answer(c.HTTP, x.code), nil
			}
			return nil, nil
		}))
		tell(f)
		f.Insist(w.event("web"))
		if diff := cmp.Diff(want, w.State()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestACopyThatWasPausedUndoesNothing(t *testing.T) {
	ref := newWorld(t)
	ref.workload("web", both+configMap("b", ""))
	counting := ref.copyOf()
	counting.Insist(ref.event("web"))
	var at []int
	for i, call := range counting.Calls() {
		if suite.Exhaustive() || call.Write() || i%6 == 0 {
			at = append(at, i+1)
		}
	}
	suite.Each(t, at, func(n int) string { return fmt.Sprint(n) }, func(t *testing.T, n int) {
		w := newWorld(t)
		w.workload("web", both+configMap("a", "")+configMap("b", ""))
		gate := suite.NewGate(n)
		slow, fast := w.copyOf(suite.WithTap(gate.Tap)), w.copyOf()
		finish, _ := gate.Begin(slow, w.event("web"))
		w.template("web", both+configMap("b", `k: "new"`))
		fast.Insist(w.event("web"))
		finish()
		fast.Insist(w.event("web"))
		if diff := cmp.Diff([]string{"ConfigMap/b", "GitRepository/web", "Kustomization/web"}, w.made()); diff != "" {
			t.Errorf("paused at call %d (-want +got):\n%s", n, diff)
		}
		if got := suite.Text(w.Must(kind.ConfigMaps, "b"), "data", "k"); got != "new" {
			t.Errorf("paused at call %d, the config map holds %q", n, got)
		}
		fast.Rests(w.event("web"))
	})
}

func TestEqualInputGivesEqualBytes(t *testing.T) {
	sample := suite.File(t, "deploy/samples/templates/helm-chart.yaml")
	var first string
	for range 3 {
		w := newWorld(t)
		w.Create(sample)
		w.copyOf().Insist(w.event("demo-redis"))
		var all strings.Builder
		for _, key := range []struct {
			res  kind.Resource
			name string
		}{{render.Worktrees, "demo-redis"}, {render.HelmReleases, "demo-redis"}} {
			all.WriteString(suite.Bytes(t, w.Must(key.res, key.name), "spec"))
		}
		if first == "" {
			first = all.String()
		}
		if all.String() != first {
			t.Errorf("one gave\n%s\nthe other\n%s", first, all.String())
		}
	}
}
