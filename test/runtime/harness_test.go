package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is a namespace of the real API server with a client of its own.
type world struct {
	t      *testing.T
	env    *kubetest.Env
	ns     string
	client dynamic.Interface
}

func newWorld(t *testing.T) *world {
	t.Helper()
	env := kubetest.Start(t, kubetest.Options{Objects: []*unstructured.Unstructured{definition(t)}})
	client, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, env: env, ns: env.Namespace(t), client: client}
}

func definition(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	obj := map[string]any{}
	if err := yaml.Unmarshal([]byte(crd), &obj); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: obj}
}

// call is one request of a function's copy, counted from 1.
type call struct {
	n   int
	req *http.Request
}

// tap sees every request of one copy; it may answer instead of the server.
type tap func(c call) (*http.Response, error)

type tapped struct {
	next  http.RoundTripper
	count *atomic.Int32
	tap   tap
}

func (t *tapped) RoundTrip(req *http.Request) (*http.Response, error) {
	n := int(t.count.Add(1))
	if t.tap != nil {
		if resp, err := t.tap(call{n: n, req: req}); resp != nil || err != nil {
			return resp, err
		}
	}
	return t.next.RoundTrip(req)
}

// copyOf is one copy of the function, as a process would run it.
func (w *world) copyOf(tap tap, light bool) (*reconcile.Host, *atomic.Int32) {
	w.t.Helper()
	config := rest.CopyConfig(w.env.Config)
	count := &atomic.Int32{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &tapped{next: next, count: count, tap: tap}
	})
	return reconcile.New(function(light), reconcile.Options{Config: config, Log: slog.New(slog.DiscardHandler)}), count
}

func (w *world) widget(name, specYAML string) *unstructured.Unstructured {
	w.t.Helper()
	spec := map[string]any{}
	if err := yaml.Unmarshal([]byte(specYAML), &spec); err != nil {
		w.t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "demo.slipway.dev/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": w.ns, "name": name}, "spec": ints(spec),
	}}
	created, err := w.client.Resource(widgets.GVR()).Namespace(w.ns).Create(w.t.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return created
}

func ints(spec map[string]any) map[string]any {
	for key, value := range spec {
		if f, ok := value.(float64); ok {
			spec[key] = int64(f)
		}
	}
	return spec
}

func (w *world) patch(name, body string) {
	w.t.Helper()
	_, err := w.client.Resource(widgets.GVR()).Namespace(w.ns).Patch(w.t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := w.client.Resource(widgets.GVR()).Namespace(w.ns).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// state is what the namespace holds, without what differs from run to run.
func (w *world) state() map[string]string {
	w.t.Helper()
	state := map[string]string{}
	for _, res := range []kind.Resource{widgets, configMaps} {
		list, err := w.client.Resource(res.GVR()).Namespace(w.ns).List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, item := range list.Items {
			if item.GetName() == "kube-root-ca.crt" {
				continue
			}
			state[res.Kind+"/"+item.GetName()] = fmt.Sprint(item.GetFinalizers(), item.Object["data"], item.Object["spec"], item.Object["status"])
		}
	}
	return state
}

func (w *world) names() []string {
	return slices.Sorted(maps.Keys(w.state()))
}

func changed(ns, name string) cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetID("test")
	ce.SetSource("https://test")
	ce.SetType("dev.knative.apiserver.ref.update")
	ce.SetExtension("apiversion", "demo.slipway.dev/v1")
	ce.SetExtension("kind", "Widget")
	ce.SetExtension("namespace", ns)
	ce.SetExtension("name", name)
	return ce
}

// send hands a host an event and returns the HTTP status of its answer.
func send(ctx context.Context, h *reconcile.Host, ce cloudevents.Event) int {
	reply, err := h.Handle(ctx, ce)
	if reply != nil {
		return http.StatusOK
	}
	var result *cehttp.Result
	if !errors.As(err, &result) {
		return 0
	}
	return result.StatusCode
}

// resync plays the broker: it sends the pages that the function answers with.
// It returns the last answer and the number of pages.
func resync(ctx context.Context, h *reconcile.Host) (status, pages int) {
	ce := event.Next(event.Resync{Function: "widget"}, "resync", time.Unix(0, 0))
	for {
		pages++
		reply, err := h.Handle(ctx, ce)
		if reply == nil {
			var result *cehttp.Result
			_ = errors.As(err, &result)
			return result.StatusCode, pages
		}
		ce = *reply
	}
}

func isWrite(req *http.Request) bool { return req.Method != http.MethodGet }

// failure is an answer of a broken API server.
func failure(code int) *http.Response {
	reasons := map[int]string{http.StatusGone: "Expired", http.StatusConflict: "Conflict", http.StatusForbidden: "Forbidden", http.StatusTooManyRequests: "TooManyRequests"}
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected","reason":%q,"code":%d}`, reasons[code], code)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

// buffer is a log that tests can read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
