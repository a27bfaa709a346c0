package machinevm

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
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
	reason string
	// before brings the world to where the paused copy begins.
	before func(w *world, fast *function)
	// meanwhile happens while the copy is paused; the other copy hears of it.
	meanwhile func(w *world, fast *function)
	// calm is the same without anybody pausing.
	calm func(w *world, f *function)
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

var scenes = map[string]scene{
	"ChangeDuringCreation": {
		reason: "a copy on a stale read must not take back a change", before: untouched, meanwhile: change,
		calm: func(w *world, f *function) { converged(w, f); change(w, f) },
	},
	"ChangeDuringChange": {
		reason: "the later of two changes stays",
		before: func(w *world, f *function) {
			converged(w, f)
			w.patch(kinds.Machines, subject, `{spec: {resources: {cpu: {cores: 3}}, disks: [{name: data, size: 1Gi, storageClass: fast-ssd}, {name: tmp, size: 3Gi}], running: false}}`)
		},
		meanwhile: func(w *world, f *function) {
			w.patch(kinds.Machines, subject, `{spec: {running: null}}`)
			change(w, f)
		},
		calm: func(w *world, f *function) {
			converged(w, f)
			change(w, f)
		},
	},
	"DeletionDuringCreation": {
		reason: "what is made for a Machine that goes meanwhile must go too", before: untouched, meanwhile: discard,
		calm: discard,
	},
	"DeletionDuringDeletion": {
		reason: "two copies may take the same Machine down",
		before: func(w *world, f *function) { converged(w, f); w.remove(kinds.Machines, subject) },
		meanwhile: func(w *world, f *function) {
			f.insist(w.machineEvent(subject))
			w.release()
		},
		calm: discard,
	},
	"NothingDuringCreation": {
		reason: "two copies make one Machine", before: untouched, meanwhile: converged, calm: converged,
	},
	"NewLifeDuringCreation": {
		reason: "what was made for a Machine of an earlier life is no part of the new one's", before: untouched, meanwhile: recreate,
		calm: converged,
	},
	"NewLifeDuringDeletion": {
		reason: "the deletion of an earlier life must leave the new Machine's objects alone",
		before: func(w *world, f *function) { converged(w, f); w.remove(kinds.Machines, subject) },
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
// first go on with what it had read. The events that a source would send of it all
// are one more event for each copy of the truth.
func TestTwoCopiesOneOnAStaleReadNeverUndoEachOther(t *testing.T) {
	for title, sc := range scenes {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			calm := newSubject(t)
			sc.calm(calm, calm.copyOf())
			want := calm.state()
			calls := sc.calls(t)
			t.Logf("the copy makes %d calls", calls)
			if calls < 10 {
				t.Fatalf("only %d calls: there is nothing to pause", calls)
			}
			for n := 1; n <= calls; n++ {
				t.Run(fmt.Sprintf("PausedAtCall%d", n), func(t *testing.T) { sc.play(t, n, want) })
			}
		})
	}
}

// calls counts those of a copy that nobody pauses.
func (sc scene) calls(t *testing.T) int {
	t.Helper()
	w := newSubject(t)
	sc.before(w, w.copyOf())
	slow := w.copyOf()
	slow.insist(w.machineEvent(subject))
	return slow.called()
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
	finish()
	w.release()
	// What the two wrote gives events: of the Machine, and of claims that go.
	fast.insist(w.machineEvent(subject))
	w.release()
	fast.insist(w.machineEvent(subject))
	if diff := cmp.Diff(want, w.state()); diff != "" {
		t.Errorf("%s (-calm +paused):\n%s", sc.reason, diff)
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
