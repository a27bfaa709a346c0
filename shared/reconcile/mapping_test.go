package reconcile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/record"
)

// joined finds the objects that an event concerns among those of its namespace.
func joined(prefix string) func(context.Context, *read.Reader, event.Event) ([]Key, error) {
	return func(ctx context.Context, r *read.Reader, e event.Event) ([]Key, error) {
		var keys []Key
		err := r.Within(ctx, "", kind.ConfigMaps, e.Namespace, func(obj *unstructured.Unstructured) bool {
			if !strings.HasPrefix(obj.GetName(), prefix) {
				return false
			}
			keys = append(keys, Key{Namespace: obj.GetNamespace(), Name: obj.GetName()})
			return true
		})
		return keys, err
	}
}

// crowd answers as answers does, and lists; its namespace says what it says.
type crowd struct {
	answers
	of   string
	asks *[]string
}

func (c crowd) RoundTrip(req *http.Request) (*http.Response, error) {
	*c.asks = append(*c.asks, req.URL.Path)
	if strings.HasSuffix(req.URL.Path, "/configmaps") || strings.HasSuffix(req.URL.Path, "/namespaces/a") {
		body := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "annotations": {"slipway.dev/record": %q}}}`, c.of)
		if strings.HasSuffix(req.URL.Path, "/configmaps") {
			item := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %q, "namespace": "a"}}`
			body = fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {}, "items": [`+item+`,`+item+`,`+item+`]}`, "root", "room", "else")
		}
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req, Body: io.NopCloser(bytes.NewBufferString(body)),
		}, nil
	}
	return c.answers.RoundTrip(req)
}

// crowded runs the demo function on an event, and returns what is recorded.
func crowded(t *testing.T, settings map[string]string, annotation, of string) (recordings []*record.Recording, asks []string) {
	t.Helper()
	policy, err := record.ParsePolicy(func(name string) (string, bool) { value, ok := settings[name]; return value, ok })
	if err != nil {
		t.Fatal(err)
	}
	kept := nowhere{texts: make(chan []byte, 10)}
	recorder := record.New(policy, slog.New(slog.DiscardHandler), kept)
	h := New(demoFunction(), Options{
		Config: &rest.Config{Host: "http://api.invalid", Transport: crowd{answers{annotation}, of, &asks}}, Log: slog.New(slog.DiscardHandler), Recorder: recorder, Parallel: 1,
	})
	h.spec.Watches = []Watch{{Resource: kind.ConfigMaps, Keys: joined("roo")}}
	if _, err := h.Handle(t.Context(), changed1()); statusOf(err) != http.StatusNoContent {
		t.Fatal(err)
	}
	recorder.Close(t.Context())
	close(kept.texts)
	for text := range kept.texts {
		r, err := record.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		recordings = append(recordings, r)
	}
	return recordings, asks
}

func TestAReplayJudgesWhatTheEventConcerned(t *testing.T) {
	recordings, _ := crowded(t, nil, "true", "")
	if len(recordings) != 2 {
		t.Fatalf("%d recordings are kept, want one for each object", len(recordings))
	}
	r := recordings[0]
	if diff := cmp.Diff([]string{"a/room", "a/root"}, r.Event.Concerns); diff != "" {
		t.Errorf("concerned (-want +got):\n%s", diff)
	}
	if len(r.Mapping) != 1 || len(r.Mapping[0].Items) != 2 {
		t.Errorf("of the mapping is kept %+v", r.Mapping)
	}
	for prefix, want := range map[string][]string{"roo": nil, "room": {"- a/root"}} {
		h := demoHost(t, "", nil)
		h.spec.Watches = []Watch{{Resource: kind.ConfigMaps, Keys: joined(prefix)}}
		for _, r := range recordings {
			replayed, err := h.Replay(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, replayed.Concerns); diff != "" || replayed.Unmapped != (prefix == "room" && r.Header.Name == "root") {
				t.Errorf("%s of %s: unmapped %v (-want +got):\n%s", prefix, r.Header.Name, replayed.Unmapped, diff)
			}
		}
	}
}

func TestANamespacesAnnotationIsReadOnlyWhereTheSettingSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		mode, annotation, of string
		kept, reads          int
	}{
		"asked for by the namespace":            {"namespaces", "", "true", 2, 2},
		"not asked for":                         {"namespaces", "", "", 0, 2},
		"the object decides, nothing is read":   {"namespaces", "true", "false", 2, 0},
		"without the setting nothing is read":   {"annotated", "", "true", 0, 0},
		"everything is asked for, nothing read": {"all", "", "false", 2, 0},
	} {
		recordings, asks := crowded(t, map[string]string{"SLIPWAY_RECORD": c.mode}, c.annotation, c.of)
		reads := 0
		for _, path := range asks {
			if path == "/api/v1/namespaces/a" {
				reads++
			}
		}
		if len(recordings) != c.kept || reads != c.reads {
			t.Errorf("%s: %d are kept, %d reads of the Namespace; want %d and %d", name, len(recordings), reads, c.kept, c.reads)
		}
	}
}
