package small

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// watched are what a Release depends on.
var watched = []kind.Resource{
	dockyards.DataVolumes, dockyards.DataSources, dockyards.Roles, dockyards.RoleBindings, dockyards.NodePools,
}

// scene is a moment of a Release's life at which a copy is held, and what another one
// does meanwhile.
type scene struct {
	name, reason string
	// before brings the world to the moment at which the held copy begins.
	before func(w *world, f *suite.Copy)
	// meanwhile is what happens while it is held.
	meanwhile func(w *world, f *suite.Copy)
	// reads holds the copy at its reads too: all of them go side by side, so one
	// scene shows what there is to see.
	reads bool
}

// moments are the calls of a copy that handles the subject after before, from 1:
// all of them, or its writes.
func moments(t *testing.T, before func(*world, *suite.Copy), reads bool) []int {
	t.Helper()
	w := newWorld(t)
	before(w, w.importer())
	slow := w.importer()
	slow.Insist(w.Event(dockyards.Releases, subject))
	var at []int
	for i, call := range slow.Calls() {
		if reads || call.Write() {
			at = append(at, i+1)
		}
	}
	if len(at) == 0 {
		t.Fatal("the copy had nothing to do")
	}
	return at
}

func began(w *world, _ *suite.Copy) {
	w.pool("a-worker")
	w.release("v1.12.0", address("v1.12.0"))
}

// renewed is a world in which the second image has just been imported.
func renewed(w *world, f *suite.Copy) {
	began(w, f)
	f.Insist(w.Event(dockyards.Releases, subject))
	w.imported("talos-v1.12.0", "Succeeded")
	f.Insist(w.Event(dockyards.DataVolumes, "talos-v1.12.0"))
	w.released("v1.12.1", address("v1.12.1"))
	f.Insist(w.Event(dockyards.Releases, subject))
	w.imported("talos-v1.12.1", "Succeeded")
}

// imported is one in which the first image has just been imported.
func imported(w *world, f *suite.Copy) {
	began(w, f)
	f.Insist(w.Event(dockyards.Releases, subject))
	w.imported("talos-v1.12.0", "Succeeded")
}

// superseded is one in which the first image can be removed.
func superseded(w *world, f *suite.Copy) {
	renewed(w, f)
	f.Insist(w.Event(dockyards.Releases, subject))
}

// finished carries a Release to its end state, whatever has happened.
func finished(w *world, f *suite.Copy) {
	for range 2 {
		f.Insist(w.Event(dockyards.Releases, subject))
		for _, image := range w.images() {
			w.imported(image, "Succeeded")
		}
		f.Insist(w.Event(dockyards.Releases, subject))
	}
}

var scenes = []scene{
	{"NothingDuringCreation", "two copies make the same objects", began, finished, true},
	{"NewVersionDuringCreation", "the version moves while the image is made", began, func(w *world, f *suite.Copy) {
		w.released("v1.12.1", address("v1.12.1"))
		finished(w, f)
	}, false},
	{"RepointingTwice", "both point at the same image", renewed, finished, false},
	{"BackDuringRepointing", "the version goes back while the data source is pointed", renewed, func(w *world, f *suite.Copy) {
		w.released("v1.12.0", address("v1.12.0"))
		finished(w, f)
	}, false},
	{"BackDuringRemoval", "the image that is being removed is wanted again", superseded, func(w *world, f *suite.Copy) {
		w.released("v1.12.0", address("v1.12.0"))
		finished(w, f)
	}, false},
	{"PoolDuringCreation", "a namespace loses its pools", began, func(w *world, f *suite.Copy) {
		w.Remove(dockyards.NodePools, "a-worker")
		finished(w, f)
	}, false},
}

// TestTwoCopiesOneOnAStaleReadNeverUndoEachOther holds a copy at every single call,
// lets another carry out what happens meanwhile, and lets the first go on with what
// it had read. The end is the same as if it had never been there.
func TestTwoCopiesOneOnAStaleReadNeverUndoEachOther(t *testing.T) {
	for _, sc := range scenes {
		t.Run(sc.name, func(t *testing.T) {
			calm := newWorld(t)
			f := calm.importer()
			sc.before(calm, f)
			sc.meanwhile(calm, f)
			finished(calm, f)
			want := calm.State()
			suite.Each(t, moments(t, sc.before, sc.reads), func(n int) string { return fmt.Sprintf("HeldAtCall%d", n) }, func(t *testing.T, n int) {
				w := newWorld(t)
				fast := w.importer()
				sc.before(w, fast)
				gate := suite.NewGate(n)
				finish, held := gate.Begin(w.importer(suite.WithTap(gate.Tap)), w.Event(dockyards.Releases, subject))
				if held {
					sc.meanwhile(w, fast)
				}
				finish()
				if !held {
					return
				}
				finished(w, fast)
				if diff := cmp.Diff(want, w.State()); diff != "" {
					t.Errorf("%s (-calm +held):\n%s", sc.reason, diff)
				}
			})
		})
	}
}

// TestAReleaseThatGoesWhileItIsImportedLeavesNothing: what a copy has made for a
// Release that went is removed by that copy.
func TestAReleaseThatGoesWhileItIsImportedLeavesNothing(t *testing.T) {
	for name, before := range map[string]func(*world, *suite.Copy){"Creation": began, "Offer": imported} {
		t.Run(name, func(t *testing.T) {
			suite.Each(t, moments(t, before, true), func(n int) string { return fmt.Sprintf("HeldAtCall%d", n) }, func(t *testing.T, n int) {
				w := newWorld(t)
				before(w, w.importer())
				given := w.Lives()
				gate := suite.NewGate(n)
				finish, _ := gate.Begin(w.importer(suite.WithTap(gate.Tap)), w.Event(dockyards.Releases, subject))
				uid := w.Must(dockyards.Releases, subject).GetUID()
				w.Remove(dockyards.Releases, subject)
				finish()
				// What was made while the Release was still seen to be there goes by its
				// owner reference, which no collector follows here.
				for key, obj := range w.Objects() {
					if given[key] == "" && (len(obj.GetOwnerReferences()) != 1 || obj.GetOwnerReferences()[0].UID != uid) {
						t.Errorf("%s is left behind, and its owners are %v", key, obj.GetOwnerReferences())
					}
				}
			})
		})
	}
}

func TestManyCopiesAtOnceImportOneImage(t *testing.T) {
	w := newWorld(t)
	began(w, nil)
	var all sync.WaitGroup
	for range 6 {
		f := w.importer()
		all.Go(func() {
			for range 3 {
				f.Send(w.Event(dockyards.Releases, subject))
			}
		})
	}
	all.Wait()
	f := w.importer()
	finished(w, f)
	if got := w.images(); len(got) != 1 || w.leadsTo() != got[0] {
		t.Errorf("there are %v, and the data source leads to %q", got, w.leadsTo())
	}
	f.Rests(w.events()...)
}

// TestEveryCallMayFailOnce fails the n-th call in several ways; the broker sends the
// event again.
func TestEveryCallMayFailOnce(t *testing.T) {
	for name, before := range map[string]func(*world, *suite.Copy){"Creation": began, "Repointing": renewed, "Removal": superseded} {
		t.Run(name, func(t *testing.T) {
			calm := newWorld(t)
			f := calm.importer()
			before(calm, f)
			finished(calm, f)
			want := calm.State()
			type failure struct {
				at, code int
			}
			var failures []failure
			for _, n := range moments(t, before, name == "Creation") {
				for _, code := range []int{http.StatusConflict, http.StatusInternalServerError} {
					failures = append(failures, failure{n, code})
				}
			}
			suite.Each(t, failures, func(f failure) string { return fmt.Sprintf("Call%dAnswers%d", f.at, f.code) }, func(t *testing.T, fail failure) {
				w := newWorld(t)
				before(w, w.importer())
				f := w.importer(suite.WithTap(func(c suite.Call) (*http.Response, error) {
					if c.N == fail.at {
						return suite.Answer(c.HTTP, fail.code), nil
					}
					return nil, nil
				}))
				f.Insist(w.Event(dockyards.Releases, subject))
				finished(w, f)
				if diff := cmp.Diff(want, w.State()); diff != "" {
					t.Errorf("(-calm +failed):\n%s", diff)
				}
			})
		})
	}
}
