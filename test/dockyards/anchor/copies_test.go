package anchor

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/test/suite"
)

// scene is what happens while one copy is held at a call.
type scene struct {
	name, reason string
	// before brings the world to where the held copy begins.
	before func(w *world, fast *suite.Copy)
	// meanwhile happens while the copy is held; another copy hears of it.
	meanwhile func(w *world, fast *suite.Copy)
}

func untouched(*world, *suite.Copy) {}

var scenes = []scene{
	{
		name: "MoveDuringCreation", reason: "a stale hostname must not come back", before: untouched,
		meanwhile: func(w *world, f *suite.Copy) {
			w.converged(f, subject)
			w.externalURL("https://example.net")
			w.converged(f, subject)
		},
	},
	{
		name: "MoveDuringMove", reason: "the later hostname stays",
		before: func(w *world, f *suite.Copy) {
			w.converged(f, subject)
			w.externalURL("https://example.org")
		},
		meanwhile: func(w *world, f *suite.Copy) {
			w.externalURL("https://example.net")
			w.converged(f, subject)
		},
	},
	{
		name: "NoIngressDuringCreation", reason: "a Workload that is not wanted any more is not left", before: untouched,
		meanwhile: func(w *world, f *suite.Copy) {
			w.Patch(dockyards.Clusters, subject, "spec: {noDefaultIngressProvider: true}")
			w.converged(f, subject)
		},
	},
	{
		name: "DeletionDuringCreation", reason: "what is made for a Cluster that went has to go too", before: untouched,
		meanwhile: func(w *world, f *suite.Copy) {
			w.adopt()
			w.Remove(dockyards.Clusters, subject)
			w.Remove(capis, subject)
			w.converged(f, subject)
		},
	},
	{
		name: "ForeignInputDuringChange", reason: "what others write into the Workload survives",
		before: func(w *world, f *suite.Copy) {
			w.converged(f, subject)
			w.addresses("{value: 192.0.2.77}")
		},
		meanwhile: func(w *world, _ *suite.Copy) {
			w.Patch(dockyards.Workloads, ingress, "spec: {input: {replicas: 3}}")
			w.Patch(capis, subject, "metadata: {labels: {a: b}}")
		},
	},
}

// TestACopyOnAStaleReadUndoesNothing holds one copy at a call while another one goes
// on, over the scenes at each, and wants the end to be the same as without the first.
func TestACopyOnAStaleReadUndoesNothing(t *testing.T) {
	for turn, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			calm := newWorld(t)
			calm.environment(subject)
			f := calm.anchor()
			s.before(calm, f)
			const calls = 20
			s.meanwhile(calm, f)
			f.Send(calm.Event(dockyards.Clusters, subject))
			// Kubernetes collects what has no owner any more; here nobody does.
			calm.collect()
			want := calm.State()

			suite.Each(t, suite.Sample(calls, turn), func(n int) string { return fmt.Sprint(n) }, func(t *testing.T, n int) {
				w := newWorld(t)
				w.environment(subject)
				fast := w.anchor()
				s.before(w, fast)
				gate := suite.NewGate(n)
				slow := w.anchor(suite.WithTap(gate.Tap))
				finish, held := gate.Begin(slow, w.Event(dockyards.Clusters, subject))
				if held {
					s.meanwhile(w, fast)
				}
				if got := finish(); got != http.StatusNoContent && got != http.StatusServiceUnavailable {
					t.Errorf("the held copy answered %d; its log:\n%s", got, slow.Log)
				}
				if !held {
					s.meanwhile(w, fast)
				}
				fast.Send(w.Event(dockyards.Clusters, subject))
				w.collect()
				if diff := cmp.Diff(want, w.State()); diff != "" {
					t.Errorf("%s (-calm +held):\n%s", s.reason, diff)
				}
			})
		})
	}
}

// adopt does what Cluster API does with an infrastructure that is referred to.
func (w *world) adopt() {
	w.TB.Helper()
	capi := w.Must(capis, subject)
	if suite.Text(capi, "spec", "infrastructureRef", "name") == "" || w.Get(dockyards.KubevirtClusters, subject) == nil {
		return
	}
	w.Update(dockyards.KubevirtClusters, subject, "manager", func(obj *unstructured.Unstructured) {
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: capis.APIVersion(), Kind: capis.Kind, Name: subject, UID: capi.GetUID()}})
	})
}

// collect removes what is owned by objects that are gone, as Kubernetes does.
func (w *world) collect() {
	w.TB.Helper()
	lives := map[string]bool{}
	objects := w.Objects()
	for _, obj := range objects {
		lives[string(obj.GetUID())] = true
	}
	for _, obj := range objects {
		for _, ref := range obj.GetOwnerReferences() {
			if !lives[string(ref.UID)] {
				for _, res := range ours {
					if res.Is(obj.GetAPIVersion(), obj.GetKind()) {
						w.Remove(res, obj.GetName())
					}
				}
				break
			}
		}
	}
}
