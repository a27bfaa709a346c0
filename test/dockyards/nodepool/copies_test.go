package nodepool

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// scene is what happens while one copy is held at a call.
type scene struct {
	name, reason string
	controlPlane bool
	// before brings the world to where the held copy begins.
	before func(w *world, fast *suite.Copy)
	// meanwhile happens while the copy is held; another copy hears of it.
	meanwhile func(w *world, fast *suite.Copy)
}

var scenes = []scene{
	{
		name: "ChangeDuringCreation", reason: "what was asked for before must not come back",
		before: func(*world, *suite.Copy) {},
		meanwhile: func(w *world, f *suite.Copy) {
			w.converged(f)
			w.spec("replicas: 5, resources: {cpu: 5}")
			w.converged(f)
		},
	},
	{
		name: "ChangeDuringRollout", reason: "the later change stays", controlPlane: true,
		before: func(w *world, f *suite.Copy) {
			w.converged(f)
			w.spec("resources: {cpu: 4}")
		},
		meanwhile: func(w *world, f *suite.Copy) {
			w.spec("resources: {cpu: 5}")
			w.converged(f)
		},
	},
	{
		name: "HoldDuringRollout", reason: "replicas of one and the hold of the other both count", controlPlane: true,
		before: func(w *world, f *suite.Copy) {
			w.converged(f)
			w.Patch(dockyards.NodePools, subject, "metadata: {annotations: {slipway.dev/hold-rollouts: ''}}")
			w.spec("replicas: 1")
		},
		meanwhile: func(w *world, f *suite.Copy) {
			w.spec("replicas: 5, resources: {cpu: 5}")
			w.converged(f)
		},
	},
	{
		name: "DeletionDuringCreation", reason: "what is made for a pool that went has to go too",
		before: func(*world, *suite.Copy) {},
		meanwhile: func(w *world, f *suite.Copy) {
			w.Remove(dockyards.NodePools, subject)
			f.Resync()
		},
	},
}

// TestACopyOnAStaleReadUndoesNothing holds one copy at a call while another one goes on,
// over the scenes at each, and wants the end to be the same as without the first.
func TestACopyOnAStaleReadUndoesNothing(t *testing.T) {
	onUsual(t)
	for turn, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			calm := newWorld(t)
			calm.pool(subject, s.controlPlane, ", replicas: 3")
			f := calm.provisioner()
			s.before(calm, f)
			s.meanwhile(calm, f)
			calm.end(f)
			want := calm.lasting()

			const calls = 22
			suite.Each(t, suite.Sample(calls, turn), func(n int) string { return fmt.Sprint(n) }, func(t *testing.T, n int) {
				w := newWorld(t)
				w.pool(subject, s.controlPlane, ", replicas: 3")
				fast := w.provisioner()
				s.before(w, fast)
				gate := suite.NewGate(n)
				slow := w.provisioner(suite.WithTap(gate.Tap))
				finish, held := gate.Begin(slow, w.Event(dockyards.NodePools, subject))
				if held {
					s.meanwhile(w, fast)
				}
				if got := finish(); got != http.StatusNoContent && got != http.StatusServiceUnavailable {
					t.Errorf("the held copy answered %d; its log:\n%s", got, slow.Log)
				}
				if !held {
					s.meanwhile(w, fast)
				}
				w.end(fast)
				if diff := cmp.Diff(want, w.lasting()); diff != "" {
					t.Errorf("%s (-calm +held):\n%s", s.reason, diff)
				}
			})
		})
	}
}

// end is what comes after: the event once more, and a resync.
func (w *world) end(f *suite.Copy) {
	w.TB.Helper()
	f.Insist(w.Event(dockyards.NodePools, subject))
	f.Resync()
	f.Resync()
}

// lasting is the world but for what may differ by who was faster: which template
// carries the plain name and which is made of its content, what a rollout was
// announced as, and templates that are younger than the one in use, which go later.
func (w *world) lasting() map[string]string {
	w.TB.Helper()
	state := map[string]string{}
	for _, controlPlane := range []bool{true, false} {
		obj := w.Get(keeper(controlPlane), subject)
		if obj == nil {
			continue
		}
		infrastructure, _ := w.named(controlPlane)
		state["runs"] = w.runs(controlPlane)
		state["template"] = suite.Bytes(w.TB, w.Must(dockyards.KubevirtMachineTemplates, infrastructure), "spec", "template", "spec", "virtualMachineTemplate", "spec", "template")
		state["recorded"] = fmt.Sprint(w.recorded(controlPlane))
	}
	if w.Get(dockyards.NodePools, subject) == nil {
		state["left"] = fmt.Sprint(w.Names())
		return state
	}
	for _, conditionType := range []string{template, control, config, deployed, ready} {
		state[conditionType] = w.Condition(dockyards.NodePools, subject, conditionType)
	}
	return state
}

// TestFailingAnyCallOnceEndsTheSame fails a call of a pool's creation: each write, and
// some of the reads.
func TestFailingAnyCallOnceEndsTheSame(t *testing.T) {
	onUsual(t)
	bothRoles(t, func(t *testing.T, controlPlane bool) {
		calm := newWorld(t)
		calm.pool(subject, controlPlane, ", replicas: 3")
		f := calm.provisioner()
		calm.converged(f)
		calls := f.Calls()
		calm.end(f)
		want := calm.lasting()
		for _, code := range []int{http.StatusInternalServerError, http.StatusConflict} {
			sampled := suite.Sample(len(calls), 0)
			var at []int
			for i, call := range calls {
				if call.Write() || (code != http.StatusConflict && slices.Contains(sampled, i+1)) {
					at = append(at, i+1)
				}
			}
			suite.Each(t, at, func(n int) string { return fmt.Sprint(code, n) }, func(t *testing.T, n int) {
				w := newWorld(t)
				w.pool(subject, controlPlane, ", replicas: 3")
				var begun atomic.Bool
				f := w.provisioner(suite.WithTap(func(c suite.Call) (*http.Response, error) {
					if c.N == n && !begun.Load() {
						return suite.Answer(c.HTTP, code), nil
					}
					return nil, nil
				}))
				w.converged(f)
				begun.Store(true) // what comes after has its own calls
				w.end(f)
				f.Rests(w.Event(dockyards.NodePools, subject))
				if diff := cmp.Diff(want, w.lasting()); diff != "" {
					t.Errorf("call %d was answered %d (-calm +failed):\n%s", n, code, diff)
				}
			})
		}
	})
}

// TestConditionsOfOthersSurviveConcurrentWrites writes another controller's condition
// just before the function writes its own.
func TestConditionsOfOthersSurviveConcurrentWrites(t *testing.T) {
	w := newWorld(t)
	w.pool(subject, false, "")
	between := 0
	f := w.provisioner(suite.WithTap(func(c suite.Call) (*http.Response, error) {
		if c.Subresource == "status" && c.Verb == "patch" && between < 3 {
			between++
			obj := w.Must(dockyards.NodePools, subject)
			list, _, _ := nested(obj.Object, "status", "conditions")
			conditions, _ := list.([]any)
			obj.Object["status"] = map[string]any{"conditions": append(conditions, map[string]any{
				"type": fmt.Sprint("Theirs", between), "status": "False", "reason": "Theirs", "message": "", "lastTransitionTime": "2025-01-01T00:00:00Z",
			})}
			if _, err := w.In(dockyards.NodePools).UpdateStatus(t.Context(), obj, metav1.UpdateOptions{FieldManager: "theirs"}); err != nil {
				t.Error(err)
			}
		}
		return nil, nil
	}))
	w.converged(f)
	w.is(subject, ready, "True Reconciled")
	for n := 1; n <= between; n++ {
		w.is(subject, fmt.Sprint("Theirs", n), "False Theirs")
	}
	if between != 3 {
		t.Errorf("the status was written %d times in between", between)
	}
	f.Rests(w.Event(dockyards.NodePools, subject))
}

// TestLosingEveryEventEndsTheSameAfterAResync changes everything without a word.
func TestLosingEveryEventEndsTheSameAfterAResync(t *testing.T) {
	told, silent := newWorld(t), newWorld(t)
	for _, w := range []*world{told, silent} {
		w.pool(subject, false, ", replicas: 3")
	}
	f, g := told.provisioner(), silent.provisioner()
	g.Resync()
	steps := []func(w *world) (kind.Resource, string){
		func(w *world) (kind.Resource, string) {
			w.spec("replicas: 4, resources: {cpu: 5}")
			return dockyards.NodePools, subject
		},
		func(w *world) (kind.Resource, string) {
			w.Patch(dockyards.Clusters, owner, "spec: {version: v1.35.0, podSubnets: [10.0.0.0/9]}")
			return dockyards.Clusters, owner
		},
		func(w *world) (kind.Resource, string) {
			w.Remove(kind.ConfigMaps, w.settings.ConfigMapName)
			w.configMap("dockyards-kubevirt.ntp.servers: time.b")
			return kind.ConfigMaps, w.settings.ConfigMapName
		},
	}
	f.Insist(told.Event(dockyards.NodePools, subject))
	for _, step := range steps {
		res, name := step(told)
		f.Insist(told.Event(res, name))
		f.Insist(told.Event(res, name))
		step(silent)
	}
	told.end(f)
	silent.end(g)
	if diff := cmp.Diff(told.lasting(), silent.lasting()); diff != "" {
		t.Errorf("(-told +silent):\n%s", diff)
	}
}
