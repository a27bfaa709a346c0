package runtime

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/google/go-cmp/cmp"
	function2 "knative.dev/func-go/cloudevents"

	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/serve"
	"github.com/slipway-dev/slipway/test/suite"
)

func TestAnUnchangedObjectCostsOnlyReads(t *testing.T) {
	w := newWorld(t)
	w.widget("a", `{parts: 2, color: red, token: s3cret-token}`)
	h := w.copyOf(nil, false)
	if got := h.Send(w.changed("a")); got != http.StatusNoContent {
		t.Fatalf("the event was answered %d", got)
	}
	want := []string{"ConfigMap/a-0", "ConfigMap/a-1", "ConfigMap/a-s", "Widget/a"}
	if diff := cmp.Diff(want, w.Names()); diff != "" {
		t.Fatalf("after the first event (-want +got):\n%s", diff)
	}
	if state := w.State(); !strings.Contains(state["ConfigMap/a-s"], "s3cret-token") || !strings.Contains(state["Widget/a"], "message: ok") {
		t.Errorf("the applier must open what was sealed, and the status must be there: %v", state)
	}
	h.Asked()
	h.Insist(w.changed("a"))
	reads, writes := h.Asked()
	if len(writes) != 0 {
		t.Errorf("writes at the fixpoint: %v", writes)
	}
	t.Logf("an unchanged Widget costs %d reads", len(reads))
	h.Rests(w.changed("a"))
}

func TestAChangeIsCarriedOutAndPruned(t *testing.T) {
	w := newWorld(t)
	h := w.copyOf(nil, false)
	w.widget("a", `{parts: 3, color: red}`)
	h.Send(w.changed("a"))
	w.patch("a", `{"spec":{"parts":1,"color":"blue"}}`)
	h.Send(w.changed("a"))
	if diff := cmp.Diff([]string{"ConfigMap/a-0", "ConfigMap/a-s", "Widget/a"}, w.Names()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := w.State()["ConfigMap/a-s"]; !strings.Contains(s, "blue") {
		t.Errorf("the colour did not change: %s", s)
	}
	w.remove("a")
	if got := h.Send(w.changed("a")); got != http.StatusNoContent {
		t.Errorf("the deletion was answered %d", got)
	}
	if left := w.Names(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if got := h.Send(w.changed("a")); got != http.StatusNoContent {
		t.Errorf("an event whose object is gone was answered %d", got)
	}
}

func TestModesWriteNothing(t *testing.T) {
	for _, mode := range []string{"plan", "observe", "unmanaged", "nonsense"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			w.widget("a", `{parts: 2}`)
			w.patch("a", `{"metadata":{"annotations":{"slipway.dev/mode":"`+mode+`"}}}`)
			h := w.copyOf(func(c suite.Call) (*http.Response, error) {
				if c.Write() {
					t.Errorf("%s", c)
				}
				return nil, nil
			}, false)
			if got := h.Send(w.changed("a")); got != http.StatusNoContent {
				t.Errorf("answered %d", got)
			}
			if would := strings.Contains(h.Log.String(), "would create configmaps"); would != (mode != "unmanaged") {
				t.Errorf("the log tells what would be written: %v\n%s", would, h.Log)
			}
		})
	}
}

func TestNoSecretReachesTheLog(t *testing.T) {
	const canary = "canary-5c1d-do-not-log"
	w := newWorld(t)
	w.widget("a", `{parts: 1, token: `+canary+`}`)
	h := w.copyOf(func(c suite.Call) (*http.Response, error) {
		if c.HTTP.Method == http.MethodPost {
			return nil, errors.New("admission says: token " + canary + " is too short")
		}
		return nil, nil
	}, false)
	h.Send(w.changed("a"))
	if text := h.Log.String(); strings.Contains(text, canary) || !strings.Contains(text, "[secret]") {
		t.Errorf("want the error text with the secret scrubbed, got:\n%s", text)
	}
}

// TestTheServerAnswersWhatIsNoEventOfOurs goes through Knative's middleware.
func TestTheServerAnswersWhatIsNoEventOfOurs(t *testing.T) {
	w := newWorld(t)
	w.widget("a", `{parts: 1}`)
	h := w.copyOf(nil, false)
	server := httptest.NewServer(serve.Middleware(function2.New(h.Host).Handler))
	defer server.Close()
	headers := func(kindName string) map[string]string {
		return map[string]string{
			"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "https://test", "Ce-Type": "dev.knative.apiserver.ref.add",
			"Ce-Apiversion": "demo.slipway.dev/v1", "Ce-Kind": kindName, "Ce-Namespace": w.NS, "Ce-Name": "a",
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
		"Structured":   {"structured mode is as good as binary mode", map[string]string{"Content-Type": "application/cloudevents+json"}, `{"specversion":"1.0","id":"1","source":"s","type":"dev.knative.apiserver.ref.add","apiversion":"demo.slipway.dev/v1","kind":"Widget","namespace":"` + w.NS + `","name":"a"}`, http.StatusNoContent},
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
	if _, err := h.Handle(t.Context(), suite.Changed("update", "demo.slipway.dev/v1", "Widget", "n", "a")); !cloudevents.ResultIs(err, cehttp.NewResult(http.StatusServiceUnavailable, "")) {
		t.Errorf("an event before the end was answered %v", err)
	}
}
