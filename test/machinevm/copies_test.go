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
	w.create(surroundings)
	w.machine(subject, subjectSpec)
	return w
}

// gate holds a copy at its n-th call.
type gate struct {
	at               int
	reached, release chan struct{}
	once             sync.Once
}

func newGate(at int) *gate {
	return &gate{at: at, reached: make(chan struct{}), release: make(chan struct{})}
}

func (g *gate) tap(c call) (*http.Response, error) {
	if c.n == g.at {
		g.once.Do(func() { close(g.reached) })
		<-g.release
	}
	return nil, nil
}

// begin lets a copy handle an event up to the gate. Not ok: it came to its end
// before.
func (w *world) begin(g *gate) (finish func(), ok bool) {
	w.t.Helper()
	slow := w.copyOf(withTap(g.tap))
	done := make(chan int, 1)
	go func() { done <- slow.send(w.machineEvent(subject)) }()
	finish = func() {
		w.t.Helper()
		close(g.release)
		if got := <-done; got != http.StatusNoContent && got != http.StatusServiceUnavailable {
			w.t.Errorf("the paused copy answered %d; its log:\n%s", got, slow.log)
		}
	}
	select {
	case <-g.reached:
		return finish, true
	case got := <-done:
		w.t.Logf("the copy ended with %d before its call %d", got, g.at)
		return nil, false
	}
}

// scene is what one copy is doing while it is paused, and what happens meanwhile.
type scene struct {
	name, reason string
	// before brings the world to where the paused copy begins.
	before func(w *world, fast *function)
	// meanwhile happens while the copy is paused; the other copy hears of it.
	meanwhile func(w *world, fast *function)
	// calm is the same without anybody pausing.
	calm func(w *world, f *function)
	// writes pauses at writes only: what is read before is covered by others.
	writes bool
}

func converged(w *world, f *function) { f.insist(w.machineEvent(subject)) }

func untouched(*world, *function) {}

func change(w *world, f *function) {
	w.patch(kinds.Machines, subject, subjectChange)
	f.insist(w.machineEvent(subject))
}

func discard(w *world, f *function) {
	w.remove(kinds.Machines, subject)
	f.insist(w.machineEvent(subject))
	w.release()
}

func recreate(w *world, f *function) {
	discard(w, f)
	w.machine(subject, subjectSpec)
	f.insist(w.machineEvent(subject))
}

func discarded(w *world, f *function) {
	converged(w, f)
	w.remove(kinds.Machines, subject)
}

// foreign is what another manager adds to the virtual machine.
func foreign(w *world, _ *function) {
	vm := w.must(kinds.VirtualMachines, "vm-"+subject)
	volumes, _, _ := unstructured.NestedSlice(vm.Object, "spec", "template", "spec", "volumes")
	volumes = append(volumes, map[string]any{"name": "scratch", "emptyDisk": map[string]any{"capacity": "1Gi"}})
	if err := unstructured.SetNestedSlice(vm.Object, volumes, "spec", "template", "spec", "volumes"); err != nil {
		w.t.Fatal(err)
	}
	if err := unstructured.SetNestedField(vm.Object, "ssd", "spec", "template", "spec", "nodeSelector", "disk"); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.in(kinds.VirtualMachines).Update(w.t.Context(), vm, metav1.UpdateOptions{FieldManager: "somebody"}); err != nil {
		w.t.Fatal(err)
	}
}

var scenes = []scene{
	{
		name: "ChangeDuringCreation", reason: "a copy on a stale read must not take back a change",
		before: untouched, meanwhile: change,
		calm: func(w *world, f *function) { converged(w, f); change(w, f) },
	},
	{
		name: "ChangeDuringChange", reason: "the later of two changes stays", writes: true,
		before: func(w *world, f *function) {
			converged(w, f)
			w.patch(kinds.Machines, subject, `{spec: {resources: {cpu: {cores: 3}}, running: false}}`)
		},
		meanwhile: func(w *world, f *function) {
			w.patch(kinds.Machines, subject, `{spec: {running: true}}`)
			change(w, f)
		},
		calm: func(w *world, f *function) {
			converged(w, f)
			w.patch(kinds.Machines, subject, `{spec: {resources: {cpu: {cores: 3}}, running: false}}`)
			w.patch(kinds.Machines, subject, `{spec: {running: true}}`)
			change(w, f)
		},
	},
	{
		name: "ForeignWriteDuringChange", reason: "what others write into the virtual machine survives", writes: true,
		before: func(w *world, f *function) {
			converged(w, f)
			w.patch(kinds.Machines, subject, subjectChange)
		},
		meanwhile: foreign,
		calm:      func(w *world, f *function) { converged(w, f); foreign(w, f); change(w, f) },
	},
	{
		name: "DeletionDuringCreation", reason: "what is made for a Machine that goes meanwhile must go too",
		before: untouched, meanwhile: discard, calm: discard,
	},
	{
		name: "DeletionDuringDeletion", reason: "two copies may take the same Machine down", writes: true,
		before: discarded,
		meanwhile: func(w *world, f *function) {
			f.insist(w.machineEvent(subject))
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
		meanwhile: func(w *world, f *function) {
			f.insist(w.machineEvent(subject))
			w.release()
			w.machine(subject, subjectSpec)
			f.insist(w.machineEvent(subject))
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
			want := calm.state()
			var at []int
			for i, c := range sc.calls(t) {
				if c.Write() || !sc.writes || *exhaustive {
					at = append(at, i+1)
				}
			}
			t.Logf("the copy is paused at %d calls", len(at))
			concurrently(t, at, func(n int) string { return fmt.Sprintf("PausedAtCall%d", n) }, func(t *testing.T, n int) {
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
	slow.insist(w.machineEvent(subject))
	return slow.verbs()
}

func (sc scene) play(t *testing.T, n int, want map[string]string) {
	t.Helper()
	w := newSubject(t)
	fast := w.copyOf()
	sc.before(w, fast)
	finish, ok := w.begin(newGate(n))
	if !ok {
		return
	}
	sc.meanwhile(w, fast)
	lives := w.lives()
	finish()
	fast.insist(w.machineEvent(subject))
	if w.release() {
		// A claim that goes gives an event too.
		fast.insist(w.machineEvent(subject))
	}
	if diff := cmp.Diff(want, w.state()); diff != "" {
		t.Errorf("%s (-calm +paused):\n%s", sc.reason, diff)
	}
	now := w.lives()
	for key, uid := range lives {
		if now[key] != uid {
			t.Errorf("%s: %s was there, and the paused copy has deleted it", sc.reason, key)
		}
	}
}

// lives are the UIDs of everything in the namespace: what is deleted and made anew
// looks the same but for them.
func (w *world) lives() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for key, obj := range w.objects() {
		all[key] = string(obj.GetUID())
	}
	return all
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
				f.send(w.machineEvent(subject))
			}
		})
	}
	all.Wait()
	converged(w, w.copyOf())
	if diff := cmp.Diff(calm.state(), w.state()); diff != "" {
		t.Errorf("six copies made something else than one (-one +six):\n%s", diff)
	}
	for key, obj := range w.objects() {
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
				f.send(w.machineEvent(name))
			}
		})
	}
	both.Wait()
	f := w.copyOf()
	var winner, loser string
	for name := range specs {
		f.insist(w.machineEvent(name))
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
	if w.get(kinds.VirtualMachines, "vm-"+loser) != nil {
		t.Errorf("%s has a virtual machine on the claim of %s", loser, winner)
	}
	w.remove(kinds.Machines, winner)
	f.insist(w.machineEvent(winner))
	w.release()
	f.insist(w.of(kind.PersistentVolumeClaims, "web-1-root"))
	if got := w.condition(loser, "Ready"); got != "False Creating" {
		t.Errorf("the name is free, and Ready of %s is still %s", loser, w.why(loser))
	}
}

// TestAMachineMayBeCalledLikeItsNetwork shows that the network is not taken for the
// Machine's record.
func TestAMachineMayBeCalledLikeItsNetwork(t *testing.T) {
	w := newWorld(t)
	w.create(surroundings)
	before := w.versions()
	w.machine("lan", `{template: small, networks: [{name: eth0, networkName: lan}]}`)
	f := w.copyOf()
	f.insist(w.machineEvent("lan"))
	w.must(kinds.VirtualMachines, "vm-lan")
	f.asked()
	f.insist(w.machineEvent("lan"))
	if _, writes := f.asked(); len(writes) > 0 {
		t.Errorf("the Machine never comes to rest: %v", writes)
	}
	w.remove(kinds.Machines, "lan")
	f.insist(w.machineEvent("lan"))
	w.release()
	if diff := cmp.Diff(before, w.versions()); diff != "" {
		t.Errorf("after the deletion (-before +after):\n%s", diff)
	}
}

// TestAResyncRemovesWhatACopyThatWasKilledLeft kills a copy between its write and
// its look at whether the Machine is still there.
func TestAResyncRemovesWhatACopyThatWasKilledLeft(t *testing.T) {
	w := newSubject(t)
	fast := w.copyOf()
	killed := false
	slow := w.copyOf(withTap(func(c call) (*http.Response, error) {
		if killed {
			return nil, errKilled
		}
		if c.Verb == "create" && c.Resource == kind.PersistentVolumeClaims.Plural {
			// The Machine goes while this call is under way.
			killed = true
			w.remove(kinds.Machines, subject)
			fast.insist(w.machineEvent(subject))
		}
		return nil, nil
	}))
	slow.send(w.machineEvent(subject))
	if !killed {
		t.Fatal("no claim was created")
	}
	left := slices.DeleteFunc(w.names(), func(name string) bool { return slices.Contains(given, name) })
	if len(left) == 0 {
		t.Fatal("the killed copy left nothing: this test shows nothing")
	}
	fast.resync()
	w.release()
	if diff := cmp.Diff(given, slices.Sorted(maps.Keys(w.state()))); diff != "" {
		t.Errorf("the killed copy had left %v (-want +after one resync):\n%s", left, diff)
	}
}
