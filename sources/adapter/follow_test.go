package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"knative.dev/eventing/pkg/adapter/apiserver"
)

// world is a cluster's discovery and the receive adapters that run on it.
type world struct {
	mu     sync.Mutex
	served map[string][]metav1.APIResource
	broken bool
	// running counts the adapters by what they watch; history tells what they did.
	running map[string]int
	history []string
	fail    map[string]bool
	started time.Time
}

func newWorld() *world {
	return &world{
		served: map[string][]metav1.APIResource{}, running: map[string]int{}, fail: map[string]bool{}, started: time.Now(),
	}
}

func (w *world) serve(groupVersion string, resources ...metav1.APIResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.served[groupVersion] = resources
}

func resource(name, kind string) metav1.APIResource {
	return metav1.APIResource{Name: name, Kind: kind, Verbs: metav1.Verbs{"get", "list", "watch"}}
}

// ServerResourcesForGroupVersion implements discoverer.
func (w *world) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return nil, errors.New("the API server is away")
	}
	resources, found := w.served[groupVersion]
	if !found {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, groupVersion)
	}
	return &metav1.APIResourceList{APIResources: resources}, nil
}

func (w *world) receive(ctx context.Context, _ unit, watches []apiserver.ResourceWatch, watching func()) error {
	var what string
	for _, watch := range watches {
		what += watch.GVR.Resource + "." + watch.GVR.Version + " "
	}
	note := func(verb string, change int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running[what] += change
		w.history = append(w.history, fmt.Sprintf("%s %sat %s", verb, what, time.Since(w.started)))
	}
	note("start", 1)
	defer note("end", -1)
	w.mu.Lock()
	fail := w.fail[what]
	w.fail[what] = false
	w.mu.Unlock()
	if fail {
		return errors.New("the group is gone")
	}
	// Lists take their time.
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(time.Second):
	}
	watching()
	<-ctx.Done()
	return nil
}

func (w *world) watched() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	watched := map[string]int{}
	for what, count := range w.running {
		if count != 0 {
			watched[what] = count
		}
	}
	return watched
}

var testConfig = Config{
	Sink: "http://sink", Namespace: "ns",
	Resources: []Resource{
		{Group: "a.io", Versions: []string{"v2", "v1"}, Resource: "things", Kind: "Thing", Mode: "Reference"},
		{Group: "a.io", Versions: []string{"v1"}, Resource: "others", Kind: "Other", Mode: "Reference"},
		{Group: "b.io", Versions: []string{"v1"}, Resource: "lots", Kind: "Lot", Mode: "Reference"},
	},
}

var silentLog = slog.New(slog.NewTextHandler(io.Discard, nil))

// follow runs a follower in a bubble of its own.
func follow(t *testing.T, test func(t *testing.T, w *world, f *follower)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ctx, cancel := context.WithCancel(t.Context())
		f := newFollower(testConfig.Resources, w, w.receive, silentLog)
		done := make(chan struct{})
		go func() { defer close(done); f.run(ctx) }()
		test(t, w, f)
		cancel()
		<-done
		if left := w.watched(); len(left) > 0 {
			t.Errorf("adapters outlived the follower: %v", left)
		}
	})
}

func (w *world) expect(t *testing.T, reason string, want map[string]int) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, w.watched()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", reason, diff)
	}
}

func TestOneAdapterPerGroupWatchesTheFirstServedVersion(t *testing.T) {
	follow(t, func(t *testing.T, w *world, f *follower) {
		w.expect(t, "nothing is served, so nothing is watched", map[string]int{})
		w.serve("a.io/v1", resource("things", "Thing"), resource("others", "Other"))
		f.notify("a.io")
		w.expect(t, "both resources of the group are watched by one adapter", map[string]int{"things.v1 others.v1 ": 1})

		w.serve("a.io/v2", resource("things", "Thing"))
		f.notify("a.io")
		w.expect(t, "the predecessor runs until its successor watches", map[string]int{"things.v1 others.v1 ": 1, "things.v2 others.v1 ": 1})
		time.Sleep(1100 * time.Millisecond)
		w.expect(t, "the preferred version is watched as soon as it is served", map[string]int{"things.v2 others.v1 ": 1})

		w.mu.Lock()
		clear(w.served)
		w.mu.Unlock()
		f.notify("a.io")
		w.expect(t, "a group that is gone is not watched", map[string]int{})
	})
}

func TestDiscoveryIsReadUntilItHasSettled(t *testing.T) {
	follow(t, func(t *testing.T, w *world, f *follower) {
		f.notify("b.io")
		synctest.Wait()
		// The API server serves the new API a while after its definition says so.
		time.Sleep(500 * time.Millisecond)
		w.serve("b.io/v1", resource("lots", "Lot"))
		time.Sleep(3 * time.Second)
		w.expect(t, "a late API is found without another notice", map[string]int{"lots.v1 ": 1})
	})
}

func TestAnAPIThatNobodyTellsOfIsFoundWithinAMinute(t *testing.T) {
	follow(t, func(t *testing.T, w *world, _ *follower) {
		time.Sleep(time.Hour)
		w.serve("b.io/v1", resource("lots", "Lot"))
		time.Sleep(rediscovery)
		w.expect(t, "an aggregated API is found", map[string]int{"lots.v1 ": 1})
	})
}

func TestWhatRunsGoesOnWhileDiscoveryFails(t *testing.T) {
	follow(t, func(t *testing.T, w *world, f *follower) {
		w.serve("b.io/v1", resource("lots", "Lot"))
		f.notify("b.io")
		w.expect(t, "it is watched", map[string]int{"lots.v1 ": 1})
		w.mu.Lock()
		w.broken = true
		w.mu.Unlock()
		f.notify("b.io")
		time.Sleep(time.Hour)
		w.expect(t, "an API server that does not answer says nothing about what it serves", map[string]int{"lots.v1 ": 1})
	})
}

func TestAnAdapterThatEndsIsStartedAgain(t *testing.T) {
	follow(t, func(t *testing.T, w *world, f *follower) {
		w.mu.Lock()
		w.fail["lots.v1 "] = true
		w.mu.Unlock()
		w.serve("b.io/v1", resource("lots", "Lot"))
		f.notify("b.io")
		time.Sleep(time.Second)
		w.expect(t, "it runs again", map[string]int{"lots.v1 ": 1})
		if starts := slices.DeleteFunc(w.history, func(line string) bool { return line[:3] == "end" }); len(starts) != 2 {
			t.Errorf("it was started %d times, want 2: %v", len(starts), w.history)
		}
	})
}

func TestResourcesThatCannotBeWatchedAreLeftAlone(t *testing.T) {
	cases := map[string]struct {
		reason string
		found  metav1.APIResource
	}{
		"Kind":  {"another kind of the same plural is not ours", resource("lots", "Parcel")},
		"Verbs": {"what cannot be watched is not", metav1.APIResource{Name: "lots", Kind: "Lot", Verbs: metav1.Verbs{"create"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.serve("b.io/v1", tc.found)
			got, err := served(w, testConfig.Resources, "b.io")
			if err != nil || len(got) > 0 {
				t.Errorf("%s: got %v, %v", tc.reason, got, err)
			}
		})
	}
}

func TestModesHaveAdaptersOfTheirOwn(t *testing.T) {
	w := newWorld()
	w.serve("a.io/v1", resource("things", "Thing"), resource("others", "Other"))
	resources := slices.Clone(testConfig.Resources)
	resources[1].Mode = "Resource"
	got, err := served(w, resources, "a.io")
	if err != nil {
		t.Fatal(err)
	}
	gvr := func(resource string) []apiserver.ResourceWatch {
		return []apiserver.ResourceWatch{{GVR: schema.GroupVersionResource{Group: "a.io", Version: "v1", Resource: resource}}}
	}
	want := map[unit][]apiserver.ResourceWatch{
		{group: "a.io", mode: "Reference"}: gvr("things"), {group: "a.io", mode: "Resource"}: gvr("others"),
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(unit{})); diff != "" {
		t.Errorf("wrong units (-want +got):\n%s", diff)
	}
}

func TestNamespacesAndNamesHaveAdaptersOfTheirOwn(t *testing.T) {
	w := newWorld()
	w.serve("v1", resource("configmaps", "ConfigMap"))
	all := Resource{Versions: []string{"v1"}, Resource: "configmaps", Kind: "ConfigMap", Mode: "Reference", Selector: "slipway.dev/watch"}
	one := all
	one.Selector, one.Namespace, one.Name = "", "platform", "settings"
	got, err := served(w, []Resource{all, one}, "")
	if err != nil {
		t.Fatal(err)
	}
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	want := map[unit][]apiserver.ResourceWatch{
		{mode: "Reference"}: {{GVR: gvr, LabelSelector: "slipway.dev/watch"}},
		{mode: "Reference", namespace: "platform", name: "settings"}: {{GVR: gvr}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(unit{})); diff != "" {
		t.Errorf("wrong units (-want +got):\n%s", diff)
	}
	for key, scope := range map[unit]string{{}: `"namespaces":[],"allNamespaces":true`, {namespace: "platform"}: `"namespaces":["platform"],"allNamespaces":false`} {
		env, err := testConfig.environment("", key, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(env["K_SOURCE_CONFIG"], scope) {
			t.Errorf("namespace %q: %s has no %s", key.namespace, env["K_SOURCE_CONFIG"], scope)
		}
	}
}

func TestAFollowerTellsWhenEverythingIsWatched(t *testing.T) {
	follow(t, func(t *testing.T, w *world, f *follower) {
		<-f.begun // nothing is served, so nothing is awaited
		if took := time.Since(w.started); took != 0 {
			t.Errorf("that took %s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.serve("b.io/v1", resource("lots", "Lot"))
		w.serve("a.io/v1", resource("others", "Other"))
		ctx, cancel := context.WithCancel(t.Context())
		f := newFollower(testConfig.Resources, w, w.receive, silentLog)
		done := make(chan struct{})
		go func() { defer close(done); f.run(ctx) }()
		<-f.begun
		if took := time.Since(w.started); took != time.Second {
			t.Errorf("it took %s, want the second that a list takes", took)
		}
		cancel()
		<-done
	})
}

func TestGroupOf(t *testing.T) {
	for name, want := range map[string]string{"things.a.io": "a.io", "lots.b.io": "b.io", "things.b.io": "", "foreign.c.io": ""} {
		if got, _ := resources(testConfig.Resources).groupOf(name); got != want {
			t.Errorf("the definition %q belongs to group %q, want %q", name, got, want)
		}
	}
}

func TestEventsOfARemoteClusterCarryItsName(t *testing.T) {
	config := testConfig
	config.CEOverrides = Overrides{Extensions: map[string]string{"site": "north"}}
	for cluster, want := range map[string]string{
		"":         `{"extensions":{"site":"north"}}`,
		"workload": `{"extensions":{"cluster":"workload","site":"north"}}`,
	} {
		env, err := config.environment(cluster, unit{mode: "Reference"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := env["K_CE_OVERRIDES"]; got != want {
			t.Errorf("cluster %q: the overrides are %s, want %s", cluster, got, want)
		}
	}
	event := config.clusterEvent(TypeConnected, Cluster{Name: "workload", Config: &rest.Config{Host: "https://remote:6443"}})
	if event.Subject() != "workload" || event.Source() != "https://remote:6443" || event.Extensions()["cluster"] != "workload" {
		t.Errorf("wrong announcement: %s", event)
	}
	if err := event.Validate(); err != nil {
		t.Error(err)
	}
}

func TestAnnouncementsReachTheSink(t *testing.T) {
	got := make(chan cloudevents.Event, 1)
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		event, err := cloudevents.NewEventFromHTTPRequest(r)
		if err != nil {
			t.Error(err)
			return
		}
		got <- *event
		w.WriteHeader(http.StatusAccepted)
	}))
	defer sink.Close()
	config := testConfig
	config.Sink = sink.URL
	send, err := newSender(config)
	if err != nil {
		t.Fatal(err)
	}
	cluster := Cluster{Name: "workload", Config: &rest.Config{Host: "https://remote:6443"}}
	if err := send(t.Context(), config.clusterEvent(TypeConnected, cluster)); err != nil {
		t.Fatal(err)
	}
	if event := <-got; event.Type() != TypeConnected || event.Extensions()["cluster"] != "workload" {
		t.Errorf("the sink got %s", event)
	}
}

func TestTheProcessEnvironmentIsLeftAsItWas(t *testing.T) {
	t.Setenv("K_SINK", "http://before")
	env, err := testConfig.environment("", unit{mode: "Reference"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := env.parse()
	if err != nil {
		t.Fatal(err)
	}
	if got := settings.GetSink(); got != "http://sink" {
		t.Errorf("the adapter sends to %q", got)
	}
	if got := settings.GetSinktimeout(); got != 30 {
		t.Errorf("the adapter waits %d seconds for its sink, want 30", got)
	}
	if got := lookup("K_SINK"); got != "http://before" {
		t.Errorf("K_SINK is %q afterwards", got)
	}
	if got := lookup("K_SOURCE_CONFIG"); got != "unset" {
		t.Errorf("K_SOURCE_CONFIG is %q afterwards", got)
	}
}

func lookup(name string) string {
	value, set := os.LookupEnv(name)
	if !set {
		return "unset"
	}
	return value
}
