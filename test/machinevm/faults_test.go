package machinevm

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	kubetest "github.com/slipway-dev/slipway/test/kube"
	"github.com/slipway-dev/slipway/test/suite"
)

var errKilled = errors.New("the process is gone")

// fault is what happens to one call.
type fault struct {
	name, reason string
	before       func(*http.Request) (*http.Response, error)
	after        error
	// writes: no server answers a read like this.
	writes bool
}

func broken(*http.Request) (*http.Response, error) { return nil, suite.ErrBroken }

var faults = []fault{
	{name: "409", reason: "somebody was faster", before: suite.Status(http.StatusConflict), writes: true},
	{name: "429", reason: "the server has too much to do", before: suite.Status(http.StatusTooManyRequests)},
	{name: "500", reason: "the server fails", before: suite.Status(http.StatusInternalServerError)},
	{name: "503", reason: "the server is not there", before: suite.Status(http.StatusServiceUnavailable)},
	{name: "Broken", reason: "the connection breaks before the call", before: broken},
	{name: "NoAnswer", reason: "the connection breaks after the call was carried out", after: suite.ErrBroken, writes: true},
}

// TestAFailureOfAnyCallIsRetriedToTheSameEnd fails the k-th call, for every k of a
// creation and of a deletion: a write in every way, a read in one way after the
// other.
func TestAFailureOfAnyCallIsRetriedToTheSameEnd(t *testing.T) {
	calm := newSubject(t)
	creating := calm.copyOf()
	converged(calm, creating)
	want := calm.State()
	deleting := calm.copyOf()
	discard(calm, deleting)
	if diff := cmp.Diff(given, calm.Names()); diff != "" {
		t.Fatalf("a calm deletion leaves something (-want +got):\n%s", diff)
	}
	creation, deletion := creating.Calls(), deleting.Calls()
	t.Logf("creation takes %d calls, deletion %d", len(creation), len(deletion))
	suite.Each(t, faults, func(x fault) string { return x.name }, func(t *testing.T, x fault) {
		w := newWorld(t)
		w.Create(surroundings)
		atCreation, atDeletion := x.among(creation), x.among(deletion)
		for i := range max(len(atCreation), len(atDeletion)) {
			k := nth(atCreation, i)
			w.machine(subject, subjectSpec)
			hit := x.during(w, k)
			if diff := cmp.Diff(want, w.State()); diff != "" {
				t.Errorf("%s, at %q, call %d of the creation (-calm +after):\n%s", x.reason, hit, k, diff)
			}
			k = nth(atDeletion, i)
			w.Remove(kinds.Machines, subject)
			hit = x.during(w, k)
			w.release()
			if diff := cmp.Diff(given, w.Names()); diff != "" {
				t.Fatalf("%s, at %q, call %d of the deletion (-want +left):\n%s", x.reason, hit, k, diff)
			}
		}
	})
}

// among are the numbers, from 1, of those calls that are to fail like this.
func (x fault) among(calls []kubetest.Request) []int {
	var ways []string
	for _, other := range faults {
		if !other.writes {
			ways = append(ways, other.name)
		}
	}
	var at []int
	for i, c := range calls {
		if c.Write() || (!x.writes && (suite.Exhaustive() || ways[i%len(ways)] == x.name)) {
			at = append(at, i+1)
		}
	}
	return at
}

// nth is the i-th number, or 0, which is no call's.
func nth(numbers []int, i int) int {
	if i < len(numbers) {
		return numbers[i]
	}
	return 0
}

// during lets a new copy handle an event about the subject and fails its k-th call.
// It returns which that was.
func (x fault) during(w *world, k int) string {
	w.t.Helper()
	hit, f := x.at(w, k)
	f.Insist(w.machineEvent(subject))
	if x.after != nil {
		// A write whose answer was lost gives an event like any other.
		f.Insist(w.machineEvent(subject))
	}
	return *hit
}

// at makes a copy whose k-th call meets the fault, and tells which that was.
func (x fault) at(w *world, k int) (*string, *suite.Copy) {
	hit := "none"
	if x.before != nil {
		return &hit, w.copyOf(suite.WithTap(func(c suite.Call) (*http.Response, error) {
			if c.N != k || (x.writes && !c.Write()) {
				return nil, nil
			}
			hit = c.String()
			return x.before(c.HTTP)
		}))
	}
	return &hit, w.copyOf(suite.WithAfter(func(c suite.Call) error {
		if c.N != k || (x.writes && !c.Write()) {
			return nil
		}
		hit = c.String()
		return x.after
	}))
}

// cutOff makes a copy that dies before its n-th call.
func (w *world) cutOff(n int) *suite.Copy {
	w.t.Helper()
	return w.copyOf(suite.WithTap(func(c suite.Call) (*http.Response, error) {
		if c.N >= n {
			return nil, errKilled
		}
		return nil, nil
	}))
}

// TestWhatIsCutOffAnywhereIsTakenUpAgain kills a copy before each of its writes, and
// before its first read; a new copy goes on.
func TestWhatIsCutOffAnywhereIsTakenUpAgain(t *testing.T) {
	calm := newSubject(t)
	creating, deleting := calm.copyOf(), calm.copyOf()
	converged(calm, creating)
	want := calm.State()
	discard(calm, deleting)
	creation, deletion := creating.Calls(), deleting.Calls()
	at := []int{1}
	for n := 2; n <= max(len(creation), len(deletion)); n++ {
		if isWrite(creation, n) || isWrite(deletion, n) {
			at = append(at, n)
		}
	}
	suite.Each(t, at, func(n int) string { return fmt.Sprintf("AtCall%d", n) }, func(t *testing.T, n int) {
		w := newSubject(t)
		w.mustRetry(w.cutOff(n), n <= len(creation))
		w.copyOf().Insist(w.machineEvent(subject))
		if diff := cmp.Diff(want, w.State()); diff != "" {
			t.Errorf("a creation that was cut off (-calm +taken up):\n%s", diff)
		}
		w.Remove(kinds.Machines, subject)
		w.mustRetry(w.cutOff(n), n <= len(deletion))
		w.copyOf().Insist(w.machineEvent(subject))
		w.release()
		if diff := cmp.Diff(given, w.Names()); diff != "" {
			t.Errorf("a deletion that was cut off (-want +left):\n%s", diff)
		}
	})
}

func isWrite(calls []kubetest.Request, n int) bool { return n <= len(calls) && calls[n-1].Write() }

// mustRetry sends a copy that dies the event: somebody has to send it again.
func (w *world) mustRetry(f *suite.Copy, dies bool) {
	w.t.Helper()
	got := f.Send(w.machineEvent(subject))
	last := f.Calls()
	// An Event that cannot be recorded holds nothing up.
	if dies && got != http.StatusServiceUnavailable && last[len(last)-1].Resource != kind.Events.Plural {
		w.t.Errorf("cut off at %q the event was answered %d, so that nobody sends it again", last[len(last)-1], got)
	}
}
