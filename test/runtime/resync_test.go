package runtime

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

func TestLostDoubledAndReorderedEventsEndTheSameAfterOneResync(t *testing.T) {
	play := func(mangle func([]cloudevents.Event) []cloudevents.Event) map[string]string {
		w := newWorld(t)
		h := w.copyOf(nil, false)
		var events []cloudevents.Event
		for i := range 6 {
			name := fmt.Sprintf("w%d", i)
			w.widget(name, fmt.Sprintf(`{parts: %d, color: red}`, i%3+1))
			events = append(events, w.changed(name))
		}
		for i := range 6 {
			if i%2 == 0 {
				for _, e := range mangle(events[i : i+1]) {
					h.Send(e)
				}
			}
			name := fmt.Sprintf("w%d", i)
			if i < 4 {
				w.patch(name, fmt.Sprintf(`{"spec":{"parts":%d,"color":"blue"}}`, i))
			} else {
				w.remove(name)
			}
			events = append(events, w.changed(name))
		}
		for _, e := range mangle(events) {
			h.Send(e)
		}
		if status, _ := h.TryResync(); status != http.StatusNoContent {
			t.Errorf("the resync was answered %d", status)
		}
		return w.State()
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
					"metadata": map[string]any{"namespace": w.NS, "name": fmt.Sprintf("w%04d", i)}, "spec": map[string]any{},
				}}
				if _, err := w.Client.Resource(widgets.GVR()).Namespace(w.NS).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	// The neighbours' resyncs go through all Widgets of the server.
	t.Cleanup(func() {
		if err := w.Client.Resource(widgets.GVR()).Namespace(w.NS).DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	})
	var seen sync.Map
	h := w.copyOf(func(c suite.Call) (*http.Response, error) {
		timer := time.NewTimer(latency)
		<-timer.C
		seen.Store(c.HTTP.URL.Path, true)
		return nil, nil
	}, true)
	status, pages := h.TryResync()
	if status != http.StatusNoContent {
		t.Errorf("the resync was answered %d", status)
	}
	for i := range objects {
		if _, ok := seen.Load(fmt.Sprintf("/apis/demo.slipway.dev/v1/namespaces/%s/widgets/w%04d", w.NS, i)); !ok {
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
	h := w.copyOf(func(c suite.Call) (*http.Response, error) {
		if c.HTTP.URL.Query().Get("continue") != "" && !expired {
			expired = true
			return suite.Answer(c.HTTP, http.StatusGone), nil
		}
		seen.Store(c.HTTP.URL.Path, true)
		return nil, nil
	}, true)
	if status, _ := h.TryResync(); status != http.StatusNoContent {
		t.Errorf("the resync was answered %d", status)
	}
	if _, ok := seen.Load(fmt.Sprintf("/apis/demo.slipway.dev/v1/namespaces/%s/widgets/w59", w.NS)); !ok || !expired {
		t.Errorf("the last object was not reached (token expired: %v)", expired)
	}
}

func TestAResyncOfAKindThatIsNotInstalledIsDone(t *testing.T) {
	for name, versions := range map[string][]string{"one version": {"v1"}, "several versions": {"v2", "v1"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			fn := function(true)
			fn.Spec.Reconciles = kind.Resource{Group: "absent.slipway.dev", Versions: versions, Kind: "Gadget", Plural: "gadgets", Namespaced: true}
			h := suite.Run(w.World, fn, suite.WithConfig(w.Env.Config))
			if status, _ := h.TryResync(); status != http.StatusNoContent {
				t.Errorf("it was answered %d: a broker would send it again, and again with every resync; the log:\n%s", status, h.Log)
			}
		})
	}
}

func TestAResyncRemovesOrphansOfThisInstallationOnly(t *testing.T) {
	w := newWorld(t)
	h := w.copyOf(nil, false)
	w.widget("a", `{parts: 1}`)
	h.Send(w.changed("a"))
	mine, err := w.Client.Resource(configMaps.GVR()).Namespace(w.NS).Get(t.Context(), "a-0", metav1.GetOptions{})
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
		obj.SetNamespace(w.NS)
		obj.SetName(name)
		obj.SetLabels(map[string]string{label: "gone"})
		obj.SetAnnotations(marks)
		if _, err := w.Client.Resource(configMaps.GVR()).Namespace(w.NS).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if status, _ := h.TryResync(); status != http.StatusNoContent {
		t.Errorf("the resync was answered %d", status)
	}
	want := []string{"ConfigMap/a-0", "ConfigMap/a-s", "ConfigMap/elsewhere", "ConfigMap/namesake", "ConfigMap/unmarked", "Widget/a"}
	if diff := cmp.Diff(want, w.Names()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
