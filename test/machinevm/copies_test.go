package machinevm

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	kubetest "github.com/slipway-dev/slipway/test/kube"
	"github.com/slipway-dev/slipway/test/suite"
)

// subject is a Machine that uses everything that the function can make: two
// claims, a network's definition, a Secret for cloud-init, a record.
const subject = "web"

// surroundings are what the subject's spec names.
const surroundings = `
apiVersion: v1
kind: Secret
metadata: {name: source}
stringData: {userdata: "#cloud-config\nhostname: web\n"}
---
apiVersion: vitistack.io/v1alpha1
kind: NetworkConfiguration
metadata: {name: lan}
spec: {bridge: br7, vlan: 7}
`

const subjectSpec = `
template: small
disks: [{name: data, size: 1Gi, storageClass: fast-ssd}]
networks: [{name: eth0, networkName: lan}]
cloudInit: {secretRef: {name: source}}
`

// subjectChange is what a person makes of the subject's spec: more processors,
// another disk, the second network card of another model.
const subjectChange = `{spec: {resources: {cpu: {cores: 4}}, disks: [{name: data, size: 1Gi, storageClass: fast-ssd}, {name: log, size: 2Gi}], networks: [{name: eth0, networkName: lan, model: e1000}]}}`

var given = []string{"NetworkConfiguration/lan", "Secret/source"}

// newSubject is a namespace with the subject, which no copy has seen yet.
func newSubject(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.Create(surroundings)
	w.machine(subject, subjectSpec)
	return w
}

// begin lets a copy handle an event up to the gate. Not ok: it came to its end
// before.
func (w *world) begin(g *suite.Gate) (finish func(), ok bool) {
	w.t.Helper()
	slow := w.copyOf(suite.WithTap(g.Tap))
	end, held := g.Begin(slow, w.machineEvent(subject))
	if !held {
		w.t.Logf("the copy ended with %d before its call %d", end(), g.At)
		return nil, false
	}
	return func() {
		w.t.Helper()
		if got := end(); got != http.StatusNoContent && got != http.StatusServiceUnavailable {
			w.t.Errorf("the paused copy answered %d; its log:\n%s", got, slow.Log)
		}
	}, true
}

// scene is what one copy is doing while it is paused, and what happens meanwhile.
type scene struct {
	name, reason string
	// before brings the world to where the paused copy begins.
	before func(w *world, fast *suite.Copy)
	// meanwhile happens while the copy is paused; the other copy hears of it.
	meanwhile func(w *world, fast *suite.Copy)
	// calm is the same without anybody pausing.
	calm func(w *world, f *suite.Copy)
	// writes pauses at writes only: what is read before is covered by others.
	writes bool
}

func converged(w *world, f *suite.Copy) { f.Insist(w.machineEvent(subject)) }

func untouched(*world, *suite.Copy) {}

func change(w *world, f *suite.Copy) {
	w.Patch(kinds.Machines, subject, subjectChange)
	f.Insist(w.machineEvent(subject))
}

func discard(w *world, f *suite.Copy) {
	w.Remove(kinds.Machines, subject)
	f.Insist(w.machineEvent(subject))
	w.release()
}

func recreate(w *world, f *suite.Copy) {
	discard(w, f)
	w.machine(subject, subjectSpec)
	f.Insist(w.machineEvent(subject))
}

func discarded(w *world, f *suite.Copy) {
	converged(w, f)
	w.Remove(kinds.Machines, subject)
}

// foreign is what another manager adds to the virtual machine.
func foreign(w *world, _ *suite.Copy) {
	vm := w.Must(kinds.VirtualMachines, "vm-"+subject)
	volumes, _, _ := unstructured.NestedSlice(vm.Object, "spec", "template", "spec", "volumes")
	volumes = append(volumes, map[string]any{"name": "scratch", "emptyDisk": map[string]any{"capacity": "1Gi"}})
	if err := unstructured.SetNestedSlice(vm.Object, volumes, "spec", "template", "spec", "volumes"); err != nil {
		w.t.Fatal(err)
	}
	if err := unstructured.SetNestedField(vm.Object, "ssd", "spec", "template", "spec", "nodeSelector", "disk"); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.In(kinds.VirtualMachines).Update(w.t.Context(), vm, metav1.UpdateOptions{FieldManager: "somebody"}); err != nil {
		w.t.Fatal(err)
	}
}

var scenes = []scene{
	{
		name: "ChangeDuringCreation", reason: "a copy on a stale read must not take back a change",
		before: untouched, meanwhile: change,
		calm: func(w *world, f *suite.Copy) { converged(w, f); change(w, f) },
	},
	{
		name: "ChangeDuringChange", reason: "the later of two changes stays", writes: true,
		before: func(w *world, f *suite.Copy) {
			converged(w, f)
			w.Patch(kinds.Machines, subject, `{spec: {resources: {cpu: {cores: 3}}, running: false}}`)
		},
		meanwhile: func(w *world, f *suite.Copy) {
			w.Patch(kinds.Machines, subject, `{spec: {running: true}}`)
			change(w, f)
		},
		calm: func(w *world, f *suite.Copy) {
			converged(w, f)
			w.Patch(kinds.Machines, subject, `{spec: {resources: {cpu: {cores: 3}}, running: false}}`)
			w.Patch(kinds.Machines, subject, `{spec: {running: true}}`)
			change(w, f)
		},
	},
	{
		name: "ForeignWriteDuringChange", reason: "what others write into the virtual machine survives", writes: true,
		before: func(w *world, f *suite.Copy) {
			converged(w, f)
			w.Patch(kinds.Machines, subject, subjectChange)
		},
		meanwhile: foreign,
		calm:      func(w *world, f *suite.Copy) { converged(w, f); foreign(w, f); change(w, f) },
	},
	{
		name: "DeletionDuringCreation", reason: "what is made for a Machine that goes meanwhile must go too",
		before: untouched, meanwhile: discard, calm: discard,
	},
	{
		name: "DeletionDuringDeletion", reason: "two copies may take the same Machine down", writes: true,
		before: discarded,
		meanwhile: func(w *world, f *suite.Copy) {
			f.Insist(w.machineEvent(subject))
			w.release()
		},
		calm: discard,
	},
	{
		name: "NothingDuringCreation", reason: "two copies make one Machine",
		before: untouched, meanwhile: converged, calm: converged,
	},
	{
		name: "NewLifeDuringCreation", reason: "what was made for a Machine of an earlier life is no part of the new one's",
		before: untouched, meanwhile: recreate, calm: converged, writes: true,
	},
	{
		name: "NewLifeDuringDeletion", reason: "the deletion of an earlier life must leave the new Machine's objects alone",
		before: discarded, writes: true,
		meanwhile: func(w *world, f *suite.Copy) {
			f.Insist(w.machineEvent(subject))
			w.release()
			w.machine(subject, subjectSpec)
			f.Insist(w.machineEvent(subject))
		},
		calm: converged,
	},
}

// TestTwoCopiesOneOnAStaleReadNeverUndoEachOther pauses one copy at every single
// call that it makes, lets another carry out what happens meanwhile, and lets the
// first go on with what it had read. Then comes the event that a source would send
// of it all.
func TestTwoCopiesOneOnAStaleReadNeverUndoEachOther(t *testing.T) {
	for _, sc := range scenes {
		t.Run(sc.name, func(t *testing.T) {
			calm := newSubject(t)
			sc.calm(calm, calm.copyOf())
			want := calm.State()
			var at []int
			for i, c := range sc.calls(t) {
				if c.Write() || !sc.writes || suite.Exhaustive() {
					at = append(at, i+1)
				}
			}
			t.Logf("the copy is paused at %d calls", len(at))
			suite.Each(t, at, func(n int) string { return fmt.Sprintf("PausedAtCall%d", n) }, func(t *testing.T, n int) {
				sc.play(t, n, want)
			})
		})
	}
}

// calls are those of a copy that nobody pauses.
func (sc scene) calls(t *testing.T) []kubetest.Request {
	t.Helper()
	w := newSubject(t)
	sc.before(w, w.copyOf())
	slow := w.copyOf()
	slow.Insist(w.machineEvent(subject))
	return slow.Calls()
}

func (sc scene) play(t *testing.T, n int, want map[string]string) {
	t.Helper()
	w := newSubject(t)
	fast := w.copyOf()
	sc.before(w, fast)
	finish, ok := w.begin(suite.NewGate(n))
	if !ok {
		return
	}
	sc.meanwhile(w, fast)
	lives := w.Lives()
	finish()
	fast.Insist(w.machineEvent(subject))
	if w.release() {
		// A claim that goes gives an event too.
		fast.Insist(w.machineEvent(subject))
	}
	if diff := cmp.Diff(want, w.State()); diff != "" {
		t.Errorf("%s (-calm +paused):\n%s", sc.reason, diff)
	}
	now := w.Lives()
	for key, uid := range lives {
		if now[key] != uid {
			t.Errorf("%s: %s was there, and the paused copy has deleted it", sc.reason, key)
		}
	}
}

// TestManyCopiesAtOnceMakeOneMachine lets copies race from the first event on.
func TestManyCopiesAtOnceMakeOneMachine(t *testing.T) {
	calm := newSubject(t)
	converged(calm, calm.copyOf())
	w := newSubject(t)
	var all sync.WaitGroup
	for range 6 {
		f := w.copyOf()
		all.Go(func() {
			for range 3 {
				f.Send(w.machineEvent(subject))
			}
		})
	}
	all.Wait()
	converged(w, w.copyOf())
	if diff := cmp.Diff(calm.State(), w.State()); diff != "" {
		t.Errorf("six copies made something else than one (-one +six):\n%s", diff)
	}
	for key, obj := range w.Objects() {
		if slices.Contains(given, key) || obj.GetKind() == kinds.Machines.Kind {
			continue
		}
		if obj.GetGeneration() > 1 {
			t.Errorf("%s was made and then changed: generation %d", key, obj.GetGeneration())
		}
	}
}

// TestTwoMachinesThatMapToOneClaimNeverShareIt lets them race for it. The loser says
// why, and gets the name when the winner goes.
func TestTwoMachinesThatMapToOneClaimNeverShareIt(t *testing.T) {
	specs := map[string]string{
		"web":   `{disks: [{name: 1-root, size: 1Gi}]}`,
		"web-1": `{disks: [{name: root, size: 1Gi}]}`,
	}
	w := newWorld(t)
	var both sync.WaitGroup
	for name, spec := range specs {
		w.machine(name, spec)
		f := w.copyOf()
		both.Go(func() {
			for range 2 {
				f.Send(w.machineEvent(name))
			}
		})
	}
	both.Wait()
	f := w.copyOf()
	var winner, loser string
	for name := range specs {
		f.Insist(w.machineEvent(name))
		switch ready := w.condition(name, "Ready"); ready {
		case "False Creating":
			winner = name
		case "False ClaimConflict":
			loser = name
		default:
			t.Errorf("Ready of %s is %s", name, w.why(name))
		}
	}
	if winner == "" || loser == "" {
		t.Fatalf("one of the two must have the claim: %q has it, %q does not", winner, loser)
	}
	if w.Get(kinds.VirtualMachines, "vm-"+loser) != nil {
		t.Errorf("%s has a virtual machine on the claim of %s", loser, winner)
	}
	w.Remove(kinds.Machines, winner)
	f.Insist(w.machineEvent(winner))
	w.release()
	f.Insist(w.Event(kind.PersistentVolumeClaims, "web-1-root"))
	if got := w.condition(loser, "Ready"); got != "False Creating" {
		t.Errorf("the name is free, and Ready of %s is still %s", loser, w.why(loser))
	}
}

// TestAMachineMayBeCalledLikeItsNetwork shows that the network is not taken for the
// Machine's record.
func TestAMachineMayBeCalledLikeItsNetwork(t *testing.T) {
	w := newWorld(t)
	w.Create(surroundings)
	before := w.Versions()
	w.machine("lan", `{template: small, networks: [{name: eth0, networkName: lan}]}`)
	f := w.copyOf()
	f.Insist(w.machineEvent("lan"))
	w.Must(kinds.VirtualMachines, "vm-lan")
	f.Asked()
	f.Insist(w.machineEvent("lan"))
	if _, writes := f.Asked(); len(writes) > 0 {
		t.Errorf("the Machine never comes to rest: %v", writes)
	}
	w.Remove(kinds.Machines, "lan")
	f.Insist(w.machineEvent("lan"))
	w.release()
	if diff := cmp.Diff(before, w.Versions()); diff != "" {
		t.Errorf("after the deletion (-before +after):\n%s", diff)
	}
}

// TestAResyncRemovesWhatACopyThatWasKilledLeft kills a copy between its write and
// its look at whether the Machine is still there.
func TestAResyncRemovesWhatACopyThatWasKilledLeft(t *testing.T) {
	w := newSubject(t)
	fast := w.copyOf()
	killed := false
	slow := w.copyOf(suite.WithTap(func(c suite.Call) (*http.Response, error) {
		if killed {
			return nil, errKilled
		}
		if c.Verb == "create" && c.Resource == kind.PersistentVolumeClaims.Plural {
			// The Machine goes while this call is under way.
			killed = true
			w.Remove(kinds.Machines, subject)
			fast.Insist(w.machineEvent(subject))
		}
		return nil, nil
	}))
	slow.Send(w.machineEvent(subject))
	if !killed {
		t.Fatal("no claim was created")
	}
	left := slices.DeleteFunc(w.Names(), func(name string) bool { return slices.Contains(given, name) })
	if len(left) == 0 {
		t.Fatal("the killed copy left nothing: this test shows nothing")
	}
	fast.Resync()
	w.release()
	if diff := cmp.Diff(given, slices.Sorted(maps.Keys(w.State()))); diff != "" {
		t.Errorf("the killed copy had left %v (-want +after one resync):\n%s", left, diff)
	}
}
