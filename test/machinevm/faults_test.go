package machinevm

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

var errKilled = errors.New("the process is gone")

// fault is what happens to one call.
type fault struct {
	reason string
	before func(*http.Request) (*http.Response, error)
	after  error
}

func status(code int) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) { return answer(req, code), nil }
}

var faults = map[string]fault{
	"409":      {reason: "somebody was faster", before: status(http.StatusConflict)},
	"429":      {reason: "the server has too much to do", before: status(http.StatusTooManyRequests)},
	"500":      {reason: "the server fails", before: status(http.StatusInternalServerError)},
	"503":      {reason: "the server is not there", before: status(http.StatusServiceUnavailable)},
	"Reset":    {reason: "the connection breaks before the call", before: func(*http.Request) (*http.Response, error) { return nil, kubetest.ErrNoAnswer }},
	"NoAnswer": {reason: "the connection breaks after the call was carried out", after: kubetest.ErrNoAnswer},
}

// TestAFailureOfAnyCallIsRetriedToTheSameEnd fails the k-th call, for every k of a
// creation and of a deletion.
func TestAFailureOfAnyCallIsRetriedToTheSameEnd(t *testing.T) {
	calm := newSubject(t)
	counting := calm.copyOf()
	converged(calm, counting)
	want, creation := calm.state(), counting.called()
	discard(calm, counting)
	deletion := counting.called() - creation
	if diff := cmp.Diff(given, calm.names()); diff != "" {
		t.Fatalf("a calm deletion leaves something (-want +got):\n%s", diff)
	}
	t.Logf("creation takes %d calls, deletion %d", creation, deletion)
	for title, fault := range faults {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.create(surroundings)
			for k := 1; k <= max(creation, deletion); k++ {
				w.machine(subject, subjectSpec)
				hit := fault.during(w, k)
				if diff := cmp.Diff(want, w.state()); diff != "" {
					t.Errorf("%s, at %q, call %d of the creation (-calm +after):\n%s", fault.reason, hit, k, diff)
				}
				w.remove(kinds.Machines, subject)
				hit = fault.during(w, k)
				w.release()
				if diff := cmp.Diff(given, w.names()); diff != "" {
					t.Fatalf("%s, at %q, call %d of the deletion (-want +left):\n%s", fault.reason, hit, k, diff)
				}
			}
		})
	}
}

// during lets a new copy handle an event about the subject and fails its k-th call.
// It returns which that was.
func (x fault) during(w *world, k int) string {
	w.t.Helper()
	hit, f := x.at(w, k)
	f.insist(w.machineEvent(subject))
	if x.after != nil {
		// A write whose answer was lost gives an event like any other.
		f.insist(w.machineEvent(subject))
	}
	return *hit
}

// at makes a copy whose k-th call meets the fault, and tells which that was.
func (x fault) at(w *world, k int) (*string, *function) {
	hit := "none"
	if x.before != nil {
		return &hit, w.copyOf(withTap(func(c call) (*http.Response, error) {
			if c.n != k {
				return nil, nil
			}
			hit = c.String()
			return x.before(c.req)
		}))
	}
	return &hit, w.copyOf(withAfter(func(c call) error {
		if c.n != k {
			return nil
		}
		hit = c.String()
		return x.after
	}))
}

// TestADeletionThatIsCutOffAnywhereIsTakenUpAgain kills the copy at each of its
// calls; a new one goes on.
func TestADeletionThatIsCutOffAnywhereIsTakenUpAgain(t *testing.T) {
	calm := newSubject(t)
	counting := calm.copyOf()
	converged(calm, counting)
	creation := counting.called()
	discard(calm, counting)
	for n := 1; n <= counting.called()-creation; n++ {
		w := newSubject(t)
		converged(w, w.copyOf())
		w.remove(kinds.Machines, subject)
		cut := w.copyOf(withTap(func(c call) (*http.Response, error) {
			if c.n >= n {
				return nil, errKilled
			}
			return nil, nil
		}))
		if got := cut.send(w.machineEvent(subject)); got != http.StatusServiceUnavailable {
			t.Errorf("cut off at call %d the event was answered %d, so that nobody sends it again", n, got)
		}
		w.copyOf().insist(w.machineEvent(subject))
		w.release()
		if diff := cmp.Diff(given, w.names()); diff != "" {
			t.Errorf("cut off at call %d (-want +left):\n%s", n, diff)
		}
	}
}

// TestACreationThatIsCutOffAnywhereIsTakenUpAgain does the same to a creation.
func TestACreationThatIsCutOffAnywhereIsTakenUpAgain(t *testing.T) {
	calm := newSubject(t)
	counting := calm.copyOf()
	converged(calm, counting)
	want := calm.state()
	for n := 1; n <= counting.called(); n++ {
		w := newSubject(t)
		cut := w.copyOf(withTap(func(c call) (*http.Response, error) {
			if c.n >= n {
				return nil, errKilled
			}
			return nil, nil
		}))
		cut.send(w.machineEvent(subject))
		w.copyOf().insist(w.machineEvent(subject))
		if diff := cmp.Diff(want, w.state()); diff != "" {
			t.Errorf("cut off at call %d (-calm +taken up):\n%s", n, diff)
		}
	}
}
