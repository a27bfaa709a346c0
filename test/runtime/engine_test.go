package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	function2 "knative.dev/func-go/cloudevents"

	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/serve"
)

func TestAnUnchangedObjectCostsOnlyReads(t *testing.T) {
	w := newWorld(t)
	w.widget("a", `{parts: 2, color: red, token: s3cret-token}`)
	var writes atomic.Int32
	h, calls := w.copyOf(func(c call) (*http.Response, error) {
		if isWrite(c.req) {
			writes.Add(1)
		}
		return nil, nil
	}, false)
	if got := send(t.Context(), h, changed(w.ns, "a")); got != http.StatusNoContent {
		t.Fatalf("the event was answered %d", got)
	}
	want := []string{"ConfigMap/a-0", "ConfigMap/a-1", "ConfigMap/a-s", "Widget/a"}
	if diff := cmp.Diff(want, w.names()); diff != "" {
		t.Fatalf("after the first event (-want +got):\n%s", diff)
	}
	if state := w.state(); !strings.Contains(state["ConfigMap/a-s"], "s3cret-token") || !strings.Contains(state["Widget/a"], "message:ok") {
		t.Errorf("the applier must open what was sealed, and the status must be there: %v", state)
	}
	writes.Store(0)
	calls.Store(0)
	if got := send(t.Context(), h, changed(w.ns, "a")); got != http.StatusNoContent {
		t.Fatalf("the second event was answered %d", got)
	}
	if n := writes.Load(); n != 0 {
		t.Errorf("%d writes at the fixpoint", n)
	}
	t.Logf("an unchanged Widget costs %d reads", calls.Load())
}

func TestAChangeIsCarriedOutAndPruned(t *testing.T) {
	w := newWorld(t)
	h, _ := w.copyOf(nil, false)
	w.widget("a", `{parts: 3, color: red}`)
	send(t.Context(), h, changed(w.ns, "a"))
	w.patch("a", `{"spec":{"parts":1,"color":"blue"}}`)
	send(t.Context(), h, changed(w.ns, "a"))
	if diff := cmp.Diff([]string{"ConfigMap/a-0", "ConfigMap/a-s", "Widget/a"}, w.names()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := w.state()["ConfigMap/a-s"]; !strings.Contains(s, "blue") {
		t.Errorf("the colour did not change: %s", s)
	}
	w.remove("a")
	if got := send(t.Context(), h, changed(w.ns, "a")); got != http.StatusNoContent {
		t.Errorf("the deletion was answered %d", got)
	}
	if left := w.names(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if got := send(t.Context(), h, changed(w.ns, "a")); got != http.StatusNoContent {
		t.Errorf("an event whose object is gone was answered %d", got)
	}
}

// gate lets a copy run up to its n-th call and holds it there.
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
				g := newGate(n)
				slow, _ := w.copyOf(g.tap, false)
				fast, _ := w.copyOf(nil, false)
				done := make(chan int)
				go func() { done <- send(context.WithoutCancel(t.Context()), slow, changed(w.ns, name)) }()
				select {
				case <-g.reached:
				case got := <-done:
					if n < 8 {
						t.Fatalf("the copy ended with %d after fewer than %d calls", got, n)
					}
					w.remove(name)
					send(t.Context(), fast, changed(w.ns, name))
					return
				}
				tc.change(name)
				if got := send(t.Context(), fast, changed(w.ns, name)); got != http.StatusNoContent {
					t.Errorf("call %d: the second copy answered %d", n, got)
				}
				close(g.release)
				if got := <-done; got != http.StatusNoContent {
					t.Errorf("call %d: the paused copy answered %d", n, got)
				}
				// What the second copy saw of a deletion depends on how far the
				// first had come; the events of its own writes finish it.
				send(t.Context(), fast, changed(w.ns, name))
				if diff := cmp.Diff(tc.want(name), w.names()); diff != "" {
					t.Fatalf("paused at call %d (-want +got):\n%s", n, diff)
				}
				if s := w.state()["ConfigMap/"+name+"-s"]; title == "Change" && !strings.Contains(s, "blue") {
					t.Fatalf("paused at call %d: the stale copy undid the change: %s", n, s)
				}
				if title == "Change" {
					w.remove(name)
					send(t.Context(), fast, changed(w.ns, name))
				}
			}
		})
	}
}

func TestLostDoubledAndReorderedEventsEndTheSameAfterOneResync(t *testing.T) {
	play := func(mangle func([]cloudevents.Event) []cloudevents.Event) map[string]string {
		w := newWorld(t)
		h, _ := w.copyOf(nil, false)
		var events []cloudevents.Event
		for i := range 6 {
			name := fmt.Sprintf("w%d", i)
			w.widget(name, fmt.Sprintf(`{parts: %d, color: red}`, i%3+1))
			events = append(events, changed(w.ns, name))
		}
		for i := range 6 {
			if i%2 == 0 {
				for _, e := range mangle(events[i : i+1]) {
					send(t.Context(), h, e)
				}
			}
			name := fmt.Sprintf("w%d", i)
			if i < 4 {
				w.patch(name, fmt.Sprintf(`{"spec":{"parts":%d,"color":"blue"}}`, i))
			} else {
				w.remove(name)
			}
			events = append(events, changed(w.ns, name))
		}
		for _, e := range mangle(events) {
			send(t.Context(), h, e)
		}
		if status, _ := resync(t.Context(), h); status != http.StatusNoContent {
			t.Errorf("the resync was answered %d", status)
		}
		return w.state()
	}
	want := play(func(events []cloudevents.Event) []cloudevents.Event { return events })
	for seed := range uint64(6) {
		chance := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a reproducible shuffle, no secret
		got := play(func(events []cloudevents.Event) []cloudevents.Event {
			var out []cloudevents.Event
			for _, e := range events {
				for range chance.IntN(3) {
					out = append(out, e)
				}
			}
			chance.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
			return out
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seed %d (-calm +mangled):\n%s", seed, diff)
		}
	}
}

func TestAFailureOfAnyCallIsRetriedToTheSameEnd(t *testing.T) {
	faults := map[string]func() (*http.Response, error){
		"409":   func() (*http.Response, error) { return failure(http.StatusConflict), nil },
		"429":   func() (*http.Response, error) { return failure(http.StatusTooManyRequests), nil },
		"500":   func() (*http.Response, error) { return failure(http.StatusInternalServerError), nil },
		"503":   func() (*http.Response, error) { return failure(http.StatusServiceUnavailable), nil },
		"reset": func() (*http.Response, error) { return nil, errors.New("connection reset by peer") },
	}
	for title, fault := range faults {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t)
			for k := 1; ; k++ {
				name := fmt.Sprintf("f%s-%d", title, k)
				w.widget(name, `{parts: 2, color: red}`)
				hit := false
				h, _ := w.copyOf(func(c call) (*http.Response, error) {
					if c.n == k {
						hit = true
						return fault()
					}
					return nil, nil
				}, false)
				w.insist(h, name)
				want := []string{"ConfigMap/" + name + "-0", "ConfigMap/" + name + "-1", "ConfigMap/" + name + "-s", "Widget/" + name}
				if diff := cmp.Diff(want, w.names()); diff != "" {
					t.Fatalf("call %d failed (-want +got):\n%s", k, diff)
				}
				w.remove(name)
				w.insist(h, name)
				if left := w.names(); len(left) != 0 {
					t.Fatalf("call %d failed, left behind: %v", k, left)
				}
				if !hit {
					return
				}
			}
		})
	}
}

// insist sends an event again as long as the answer asks for it, as a broker
// does.
func (w *world) insist(h *reconcile.Host, name string) {
	w.t.Helper()
	for try := 0; ; try++ {
		got := send(w.t.Context(), h, changed(w.ns, name))
		if got == http.StatusNoContent {
			return
		}
		if got != http.StatusServiceUnavailable || try > 3 {
			w.t.Fatalf("%s: answered %d at try %d", name, got, try)
		}
	}
}

func TestOneResyncReachesTheLastOfManyObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const objects, latency = 5000, 20 * time.Millisecond
	w := newWorld(t)
	var wg sync.WaitGroup
	for part := range 16 {
		wg.Go(func() {
			for i := part; i < objects; i += 16 {
				obj := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "demo.slipway.dev/v1", "kind": "Widget",
					"metadata": map[string]any{"namespace": w.ns, "name": fmt.Sprintf("w%04d", i)}, "spec": map[string]any{},
				}}
				if _, err := w.client.Resource(widgets.GVR()).Namespace(w.ns).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	// The neighbours' resyncs go through all Widgets of the server.
	t.Cleanup(func() {
		if err := w.client.Resource(widgets.GVR()).Namespace(w.ns).DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	})
	var seen sync.Map
	h, _ := w.copyOf(func(c call) (*http.Response, error) {
		timer := time.NewTimer(latency)
		<-timer.C
		seen.Store(c.req.URL.Path, true)
		return nil, nil
	}, true)
	status, pages := resync(t.Context(), h)
	if status != http.StatusNoContent {
		t.Errorf("the resync was answered %d", status)
	}
	for i := range objects {
		if _, ok := seen.Load(fmt.Sprintf("/apis/demo.slipway.dev/v1/namespaces/%s/widgets/w%04d", w.ns, i)); !ok {
			t.Fatalf("object %d of %d was never reached (%d pages)", i, objects, pages)
		}
	}
	if pages < objects/50 {
		t.Errorf("%d objects in %d pages: a page holds more than 50", objects, pages)
	}
}

func TestAnExpiredPageTokenGoesOnBehindTheLastName(t *testing.T) {
	w := newWorld(t)
	for i := range 60 {
		w.widget(fmt.Sprintf("w%02d", i), `{}`)
	}
	expired := false
	var seen sync.Map
	h, _ := w.copyOf(func(c call) (*http.Response, error) {
		if c.req.URL.Query().Get("continue") != "" && !expired {
			expired = true
			return failure(http.StatusGone), nil
		}
		seen.Store(c.req.URL.Path, true)
		return nil, nil
	}, true)
	if status, _ := resync(t.Context(), h); status != http.StatusNoContent {
		t.Errorf("the resync was answered %d", status)
	}
	if _, ok := seen.Load(fmt.Sprintf("/apis/demo.slipway.dev/v1/namespaces/%s/widgets/w59", w.ns)); !ok || !expired {
		t.Errorf("the last object was not reached (token expired: %v)", expired)
	}
}

func TestAResyncRemovesOrphansOfThisInstallationOnly(t *testing.T) {
	w := newWorld(t)
	h, _ := w.copyOf(nil, false)
	w.widget("a", `{parts: 1}`)
	send(t.Context(), h, changed(w.ns, "a"))
	mine, err := w.client.Resource(configMaps.GVR()).Namespace(w.ns).Get(t.Context(), "a-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	site := mine.GetAnnotations()[reconcile.AnnotationInstallation]
	for name, marks := range map[string]map[string]string{
		"orphan":    {ownerName: "gone", ownerUID: "1", reconcile.AnnotationInstallation: site},
		"elsewhere": {ownerName: "gone", ownerUID: "1", reconcile.AnnotationInstallation: "another"},
		"unmarked":  {},
		"namesake":  {ownerName: "a", ownerUID: "an-older-life", reconcile.AnnotationInstallation: site},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		obj.SetNamespace(w.ns)
		obj.SetName(name)
		obj.SetLabels(map[string]string{label: "gone"})
		obj.SetAnnotations(marks)
		if _, err := w.client.Resource(configMaps.GVR()).Namespace(w.ns).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if status, _ := resync(t.Context(), h); status != http.StatusNoContent {
		t.Errorf("the resync was answered %d", status)
	}
	want := []string{"ConfigMap/a-0", "ConfigMap/a-s", "ConfigMap/elsewhere", "ConfigMap/namesake", "ConfigMap/unmarked", "Widget/a"}
	if diff := cmp.Diff(want, w.names()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnOutageOfTheAPIServerIsAnsweredToBeSentAgain(t *testing.T) {
	w := newWorld(t)
	w.widget("a", `{parts: 1}`)
	h, _ := w.copyOf(func(call) (*http.Response, error) { return nil, errors.New("no route to host") }, false)
	if got := send(t.Context(), h, changed(w.ns, "a")); got != http.StatusServiceUnavailable {
		t.Errorf("an event was answered %d", got)
	}
	if got, _ := resync(t.Context(), h); got != http.StatusServiceUnavailable {
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
	h, _ := w.copyOf(func(c call) (*http.Response, error) {
		if c.req.Method != http.MethodPost || !strings.HasSuffix(c.req.URL.Path, "/configmaps") {
			return nil, nil
		}
		if posts++; posts == 1 {
			return failure(http.StatusForbidden), nil
		}
		return nil, nil
	}, false)
	if got := send(t.Context(), h, changed(w.ns, "a")); got != http.StatusNoContent {
		t.Errorf("what cannot work must not be sent again, answered %d", got)
	}
	state := w.state()
	if !strings.Contains(state["Widget/a"], "injected") {
		t.Errorf("the status does not say why: %s", state["Widget/a"])
	}
	if _, ok := state["ConfigMap/a-1"]; !ok {
		t.Error("one refused entry stopped its neighbours of the same stage")
	}
}

func TestModesWriteNothing(t *testing.T) {
	for _, mode := range []string{"plan", "observe", "unmanaged", "nonsense"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			w.widget("a", `{parts: 2}`)
			w.patch("a", `{"metadata":{"annotations":{"slipway.dev/mode":"`+mode+`"}}}`)
			log := &buffer{}
			config := rest.CopyConfig(w.env.Config)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return &tapped{next: next, count: &atomic.Int32{}, tap: func(c call) (*http.Response, error) {
					if isWrite(c.req) && c.req.URL.Query().Get("dryRun") == "" {
						t.Errorf("%s %s", c.req.Method, c.req.URL)
					}
					return nil, nil
				}}
			})
			h := reconcile.New(function(false), reconcile.Options{Config: config, Log: serve.Logger(log, "info")})
			if got := send(t.Context(), h, changed(w.ns, "a")); got != http.StatusNoContent {
				t.Errorf("answered %d", got)
			}
			if would := strings.Contains(log.String(), "would create configmaps"); would != (mode != "unmanaged") {
				t.Errorf("the log tells what would be written: %v\n%s", would, log.String())
			}
		})
	}
}

func TestNoSecretReachesTheLog(t *testing.T) {
	const canary = "canary-5c1d-do-not-log"
	w := newWorld(t)
	w.widget("a", `{parts: 1, token: `+canary+`}`)
	log := &buffer{}
	config := rest.CopyConfig(w.env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &tapped{next: next, count: &atomic.Int32{}, tap: func(c call) (*http.Response, error) {
			if c.req.Method == http.MethodPost {
				resp := failure(http.StatusUnprocessableEntity)
				resp.Body = http.NoBody
				return nil, errors.New("admission says: token " + canary + " is too short")
			}
			return nil, nil
		}}
	})
	h := reconcile.New(function(false), reconcile.Options{Config: config, Log: serve.Logger(log, "debug")})
	send(t.Context(), h, changed(w.ns, "a"))
	if text := log.String(); strings.Contains(text, canary) || !strings.Contains(text, "[secret]") {
		t.Errorf("want the error text with the secret scrubbed, got:\n%s", text)
	}
}

// TestTheServerAnswersWhatIsNoEventOfOurs goes through Knative's middleware.
func TestTheServerAnswersWhatIsNoEventOfOurs(t *testing.T) {
	w := newWorld(t)
	w.widget("a", `{parts: 1}`)
	h, _ := w.copyOf(nil, false)
	server := httptest.NewServer(serve.Middleware(function2.New(h).Handler))
	defer server.Close()
	headers := func(kindName string) map[string]string {
		return map[string]string{
			"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "https://test", "Ce-Type": "dev.knative.apiserver.ref.add",
			"Ce-Apiversion": "demo.slipway.dev/v1", "Ce-Kind": kindName, "Ce-Namespace": w.ns, "Ce-Name": "a",
		}
	}
	cases := map[string]struct {
		reason  string
		headers map[string]string
		body    string
		want    int
	}{
		"Event":        {"an event is done, with an empty body: a broker takes text for a failure", headers("Widget"), "", http.StatusNoContent},
		"NoCloudEvent": {"a body that is no CloudEvent goes to the dead letters at once", nil, "hello", http.StatusBadRequest},
		"UnknownKind":  {"a kind that the function does not know is a wiring error", headers("Gadget"), "", http.StatusBadRequest},
		"Structured":   {"structured mode is as good as binary mode", map[string]string{"Content-Type": "application/cloudevents+json"}, `{"specversion":"1.0","id":"1","source":"s","type":"dev.knative.apiserver.ref.add","apiversion":"demo.slipway.dev/v1","kind":"Widget","namespace":"` + w.ns + `","name":"a"}`, http.StatusNoContent},
		"BrokenJSON":   {"a structured event that cannot be decoded is invalid", map[string]string{"Content-Type": "application/cloudevents+json"}, `{"specversion":`, http.StatusBadRequest},
		"OtherResync":  {"another function's resync is not ours", map[string]string{"Content-Type": "application/cloudevents+json"}, `{"specversion":"1.0","id":"1","source":"s","type":"dev.slipway.resync","function":"other"}`, http.StatusBadRequest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			for key, value := range tc.headers {
				req.Header.Set(key, value)
			}
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			if resp.StatusCode != tc.want || (tc.want == http.StatusNoContent && resp.ContentLength > 0) {
				t.Errorf("%s: want %d, got %s with %d bytes", tc.reason, tc.want, resp.Status, resp.ContentLength)
			}
		})
	}
}

func TestAFunctionWithoutAClusterSaysSoAtTheStart(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/missing")
	h := reconcile.New(function(false), reconcile.Options{Log: slog.New(slog.DiscardHandler)})
	err := h.Start(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "KUBECONFIG") {
		t.Errorf("want an error that names KUBECONFIG, got %v", err)
	}
	if got := send(t.Context(), h, changed("n", "a")); got != http.StatusServiceUnavailable {
		t.Errorf("an event before the end was answered %d", got)
	}
}
