package runtime

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/test/suite"
)

// TestTwoCopiesOneOnAStaleReadNeverUndoEachOther pauses one copy at every single
// API call it makes, lets a second copy meanwhile carry out a change or a
// deletion, and lets the first go on with what it had read.
func TestTwoCopiesOneOnAStaleReadNeverUndoEachOther(t *testing.T) {
	w := newWorld(t)
	meanwhile := map[string]struct {
		change func(name string)
		want   func(name string) []string
	}{
		"Change": {
			func(name string) { w.patch(name, `{"spec":{"parts":1,"color":"blue"}}`) },
			func(name string) []string {
				return []string{"ConfigMap/" + name + "-0", "ConfigMap/" + name + "-s", "Widget/" + name}
			},
		},
		"Delete": {func(name string) { w.remove(name) }, func(string) []string { return nil }},
	}
	for title, tc := range meanwhile {
		t.Run(title, func(t *testing.T) {
			for n := 1; ; n++ {
				name := fmt.Sprintf("%s-%d", strings.ToLower(title[:1]), n)
				w.widget(name, `{parts: 3, color: red}`)
				g := suite.NewGate(n)
				slow := w.copyOf(g.Tap, false)
				fast := w.copyOf(nil, false)
				finish, held := g.Begin(slow, w.changed(name))
				if !held {
					if n < 8 {
						t.Fatalf("the copy ended with %d after fewer than %d calls", finish(), n)
					}
					w.remove(name)
					fast.Send(w.changed(name))
					return
				}
				tc.change(name)
				if got := fast.Send(w.changed(name)); got != http.StatusNoContent {
					t.Errorf("call %d: the second copy answered %d", n, got)
				}
				if got := finish(); got != http.StatusNoContent {
					t.Errorf("call %d: the paused copy answered %d", n, got)
				}
				// What the second copy saw of a deletion depends on how far the
				// first had come; the events of its own writes finish it.
				fast.Send(w.changed(name))
				if diff := cmp.Diff(tc.want(name), w.Names()); diff != "" {
					t.Fatalf("paused at call %d (-want +got):\n%s", n, diff)
				}
				if s := w.State()["ConfigMap/"+name+"-s"]; title == "Change" && !strings.Contains(s, "blue") {
					t.Fatalf("paused at call %d: the stale copy undid the change: %s", n, s)
				}
				if title == "Change" {
					w.remove(name)
					fast.Send(w.changed(name))
				}
			}
		})
	}
}

func TestAFailureOfAnyCallIsRetriedToTheSameEnd(t *testing.T) {
	faults := map[string]func(*http.Request) (*http.Response, error){
		"409":   suite.Status(http.StatusConflict),
		"429":   suite.Status(http.StatusTooManyRequests),
		"500":   suite.Status(http.StatusInternalServerError),
		"503":   suite.Status(http.StatusServiceUnavailable),
		"reset": func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset by peer") },
	}
	for title, fault := range faults {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t)
			for k := 1; ; k++ {
				name := fmt.Sprintf("f%s-%d", title, k)
				w.widget(name, `{parts: 2, color: red}`)
				hit := false
				h := w.copyOf(func(c suite.Call) (*http.Response, error) {
					if c.N == k {
						hit = true
						return fault(c.HTTP)
					}
					return nil, nil
				}, false)
				h.Insist(w.changed(name))
				want := []string{"ConfigMap/" + name + "-0", "ConfigMap/" + name + "-1", "ConfigMap/" + name + "-s", "Widget/" + name}
				if diff := cmp.Diff(want, w.Names()); diff != "" {
					t.Fatalf("call %d failed (-want +got):\n%s", k, diff)
				}
				w.remove(name)
				h.Insist(w.changed(name))
				if left := w.Names(); len(left) != 0 {
					t.Fatalf("call %d failed, left behind: %v", k, left)
				}
				if !hit {
					return
				}
			}
		})
	}
}

func TestAnOutageOfTheAPIServerIsAnsweredToBeSentAgain(t *testing.T) {
	w := newWorld(t)
	w.widget("a", `{parts: 1}`)
	h := w.copyOf(func(suite.Call) (*http.Response, error) { return nil, errors.New("no route to host") }, false)
	if got := h.Send(w.changed("a")); got != http.StatusServiceUnavailable {
		t.Errorf("an event was answered %d", got)
	}
	if got, _ := h.TryResync(); got != http.StatusServiceUnavailable {
		t.Errorf("a resync was answered %d", got)
	}
	if ready, err := h.Ready(t.Context()); ready || err != nil {
		t.Errorf("ready without an API server: %v, %v", ready, err)
	}
}

func TestARefusedWriteEndsInTheStatusAndStopsLaterStages(t *testing.T) {
	w := newWorld(t)
	w.widget("a", `{parts: 2}`)
	posts := 0
	h := w.copyOf(func(c suite.Call) (*http.Response, error) {
		if c.HTTP.Method != http.MethodPost || !strings.HasSuffix(c.HTTP.URL.Path, "/configmaps") {
			return nil, nil
		}
		if posts++; posts == 1 {
			return suite.Answer(c.HTTP, http.StatusForbidden), nil
		}
		return nil, nil
	}, false)
	if got := h.Send(w.changed("a")); got != http.StatusNoContent {
		t.Errorf("what cannot work must not be sent again, answered %d", got)
	}
	state := w.State()
	if !strings.Contains(state["Widget/a"], "injected") {
		t.Errorf("the status does not say why: %s", state["Widget/a"])
	}
	if _, ok := state["ConfigMap/a-1"]; !ok {
		t.Error("one refused entry stopped its neighbours of the same stage")
	}
}
