package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
)

func resource(kindName, plural string) kind.Resource {
	return kind.Resource{Group: "demo.slipway.dev", Versions: []string{"v1"}, Kind: kindName, Plural: plural, Namespaced: true}
}

var (
	widgets = resource("Widget", "widgets")
	gadgets = resource("Gadget", "gadgets")
	screws  = resource("Screw", "screws")
)

// stage is an API server that knows every object it is asked for, and what the
// functions on it have done.
type stage struct {
	config *rest.Config
	// many is how long lists are.
	many int

	mu   sync.Mutex
	seen []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		object := func(plural, name string) map[string]any {
			return map[string]any{
				"apiVersion": "demo.slipway.dev/v1", "kind": plural,
				"metadata": map[string]any{"namespace": "a", "name": name, "resourceVersion": "1", "uid": "u"},
			}
		}
		var answer any
		switch {
		case r.URL.Path == "/readyz":
			_, _ = io.WriteString(w, "ok")
			return
		case len(parts) == 4: // a list of all namespaces
			items := []any{}
			for i := range s.many {
				items = append(items, object(parts[3], "x"+string(rune('a'+i/26))+string(rune('a'+i%26))))
			}
			answer = map[string]any{"apiVersion": "demo.slipway.dev/v1", "kind": "List", "metadata": map[string]any{"resourceVersion": "1", "continue": "more"}, "items": items}
		default:
			answer = object(parts[5], parts[6])
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	s.config = &rest.Config{Host: server.URL}
	return s
}

// host is a function that notes what it reconciles and comes to a class.
func (s *stage) host(name string, reconciles kind.Resource, class plan.Class, edit ...func(*Spec)) *Host {
	spec := Spec{Name: name, Reconciles: reconciles, Watches: []Watch{{Resource: reconciles}}}
	for _, do := range edit {
		do(&spec)
	}
	type in struct{ root *unstructured.Unstructured }
	return New(Function[in]{
		Spec: spec,
		Gather: func(_ context.Context, _ *read.Reader, root *unstructured.Unstructured) (in, error) {
			return in{root}, nil
		},
		Decide: func(time.Time, in, plan.Answers) plan.Decision { return plan.Decision{} },
		Conclude: func(_ time.Time, i in, _ plan.Answers, _ plan.Outcomes) plan.Conclusion {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seen = append(s.seen, name+" "+i.root.GetName())
			return plan.Conclusion{Class: class, Message: "because of " + name}
		},
	}, Options{Config: s.config, Log: slog.New(slog.DiscardHandler)})
}

func (s *stage) saw() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	saw := map[string]bool{}
	for _, line := range s.seen {
		saw[line] = true
	}
	s.seen = nil
	return saw
}

func happened(kindName string) cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetID("test")
	ce.SetSource("https://test")
	ce.SetType("dev.knative.apiserver.ref.update")
	for key, value := range map[string]string{"apiversion": "demo.slipway.dev/v1", "kind": kindName, "namespace": "a", "name": "one"} {
		ce.SetExtension(key, value)
	}
	return ce
}

func ofCluster(eventType string) cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetID("test")
	ce.SetSource("https://test")
	ce.SetType(eventType)
	ce.SetExtension(event.ExtCluster, "east")
	return ce
}

func asked(function string) cloudevents.Event {
	return event.Next(event.Resync{Function: function}, "test", time.Unix(0, 0))
}

func TestAnEventGoesToEveryFunctionThatItWakes(t *testing.T) {
	s := newStage(t)
	alsoScrews := func(spec *Spec) { spec.Watches = append(spec.Watches, Watch{Resource: screws}) }
	clusters := func(spec *Spec) {
		spec.Connected = func(_ context.Context, _ *read.Reader, cluster string) ([]Key, error) {
			return []Key{{Namespace: "a", Name: cluster}}, nil
		}
	}
	many := Many(
		s.host("widget", widgets, plan.Done, alsoScrews),
		s.host("gadget", gadgets, plan.Waiting, alsoScrews, clusters),
		s.host("broken", resource("Doohickey", "doohickeys"), plan.Retry),
	)
	s.many = 1
	cases := map[string]struct {
		reason string
		event  cloudevents.Event
		status int
		want   map[string]bool
	}{
		"OneKindOfOneFunction":  {"the others have nothing to do with it", happened("Widget"), 204, map[string]bool{"widget one": true}},
		"OneKindOfTwo":          {"both are woken by it", happened("Screw"), 204, map[string]bool{"widget one": true, "gadget one": true}},
		"AFailure":              {"its answer is the answer", happened("Doohickey"), 503, map[string]bool{"broken one": true}},
		"AClusterThatCame":      {"it goes to those that ask for it", ofCluster(event.TypeConnected), 204, map[string]bool{"gadget east": true}},
		"AClusterThatWent":      {"so does this", ofCluster(event.TypeDisconnected), 204, map[string]bool{"gadget east": true}},
		"AKindOfNobody":         {"nobody can ever handle it", happened("Nut"), 400, map[string]bool{}},
		"AResyncOfNobody":       {"nobody can ever handle it", asked("nobody"), 400, map[string]bool{}},
		"NoEventOfOurs":         {"nobody can ever handle it", func() cloudevents.Event { ce := ofCluster("what.ever"); return ce }(), 400, map[string]bool{}},
		"AResyncIsForOneOfThem": {"and its next page goes back", asked("widget"), 200, map[string]bool{"widget xaa": true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reply, err := many.Handle(t.Context(), tc.event)
			got := outcome{reply: reply, err: err}
			if got.status() != tc.status {
				t.Errorf("%s: answered %d, %v", tc.reason, got.status(), err)
			}
			if (tc.status == http.StatusOK) != (reply != nil) {
				t.Errorf("%s: the event that goes back is %v", tc.reason, reply)
			}
			if diff := cmp.Diff(tc.want, s.saw()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTheWorstAnswerCountsAndSaysWhose(t *testing.T) {
	s := newStage(t)
	many := Many(s.host("good", widgets, plan.Done), s.host("bad", widgets, plan.Retry), s.host("patient", widgets, plan.Waiting))
	reply, err := many.Handle(t.Context(), happened("Widget"))
	if got := (outcome{reply: reply, err: err}); got.status() != http.StatusServiceUnavailable || !strings.Contains(err.Error(), "bad: ") ||
		!strings.Contains(err.Error(), "because of bad") || strings.Contains(err.Error(), "good") {
		t.Errorf("answered %d: %v", got.status(), err)
	}
}

// TestTwoPagesAtOnce: an event that concerns very many objects of two functions
// becomes a resync of both, but one event only can go back.
func TestTwoPagesAtOnce(t *testing.T) {
	s := newStage(t)
	s.many = maxFanOut
	var mu sync.Mutex
	var sent []string
	broker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.Header.Get("Ce-Function"))
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(broker.Close)
	t.Setenv("K_SINK", broker.URL)
	all := func(spec *Spec) {
		spec.Watches = append(spec.Watches, Watch{Resource: screws, Keys: func(context.Context, *read.Reader, event.Event) ([]Key, error) {
			var keys []Key
			for i := range maxFanOut + 1 {
				keys = append(keys, Key{Name: strings.Repeat("x", i+1)})
			}
			return keys, nil
		}})
	}
	many := Many(s.host("widget", widgets, plan.Done, all), s.host("gadget", gadgets, plan.Done, all))
	reply, err := many.Handle(t.Context(), happened("Screw"))
	if err != nil || reply == nil || reply.Extensions()[event.ExtFunction] != "widget" {
		t.Fatalf("what goes back is %v, %v", reply, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"gadget"}, sent); diff != "" {
		t.Errorf("the other page goes to the broker (-want +got):\n%s", diff)
	}
}

func TestOneListenerServesAllFunctions(t *testing.T) {
	t.Setenv("HEALTH_LISTEN_ADDRESS", "127.0.0.1:0")
	s := newStage(t)
	many := Many(s.host("widget", widgets, plan.Done), s.host("gadget", gadgets, plan.Done))
	if err := many.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, kindName := range []string{"Widget", "Gadget"} {
		if _, err := many.Handle(t.Context(), happened(kindName)); err == nil || !strings.Contains(err.Error(), "204") {
			t.Errorf("the event of a %s: %v", kindName, err)
		}
	}
	page := get(t, "http://"+many.health.Addresses()[0]+"/metrics")
	for _, part := range []string{`slipway_events_total{function="widget"`, `slipway_events_total{function="gadget"`} {
		if !strings.Contains(page, part) {
			t.Errorf("/metrics lacks %s:\n%s", part, page)
		}
	}
	if ready, err := many.Ready(t.Context()); !ready || err != nil {
		t.Errorf("ready: %v, %v", ready, err)
	}
	if alive, err := many.Alive(t.Context()); !alive || err != nil {
		t.Errorf("alive: %v, %v", alive, err)
	}
	if err := many.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if ready, _ := many.Ready(t.Context()); ready {
		t.Error("a stopped function is ready")
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestWhatIsWrongWithAnyFunctionStopsTheStart(t *testing.T) {
	s := newStage(t)
	many := Many(s.host("widget", widgets, plan.Done),
		Broken(Spec{Name: "gadget"}, errors.New("its setting")), Broken(Spec{Name: "screw"}, errors.New("another setting")))
	err := many.Start(t.Context(), nil)
	if err == nil {
		t.Fatal("it starts")
	}
	for _, part := range []string{"gadget", "its setting", "screw", "another setting"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message %q lacks %q", err, part)
		}
	}
	if ready, _ := many.Ready(t.Context()); ready {
		t.Error("it is ready all the same")
	}
}
