package runtime

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/vault"
)

// TestOfMetadataNothingElseIsAskedFor: what is listed for its metadata alone does not cross
// the network whole, and is told from a whole object by nothing but what it lacks.
func TestOfMetadataNothingElseIsAskedFor(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.widget(name, `{parts: 1, color: red}`)
	}
	heard := &listener{}
	config := rest.CopyConfig(w.Env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { heard.next = next; return heard })
	client, err := cluster.New(cluster.Management, "test", config)
	if err != nil {
		t.Fatal(err)
	}
	bare := widgets.Metadata("metadata.managedFields")
	// A page for each object.
	lists := map[string][]unstructured.Unstructured{}
	for name, res := range map[string]plan.Need{
		"Whole": {Resource: widgets.Without("metadata.managedFields", "spec", "status"), Namespace: w.NS},
		"Bare":  {Resource: bare, Namespace: w.NS},
	} {
		heard.take()
		r := read.New(cluster.NewSet(client), vault.New())
		items, err := r.Find(t.Context(), res)
		if err != nil {
			t.Fatal(err)
		}
		lists[name] = items
		if text := heard.take(); bytes.Contains(text, []byte(`"color"`)) != (name == "Whole") {
			t.Errorf("%s: the server's answers are\n%s", name, text)
		}
	}
	if diff := cmp.Diff(lists["Whole"], lists["Bare"]); diff != "" || len(lists["Bare"]) != 3 {
		t.Errorf("what is read by its metadata differs (-whole +bare):\n%s", diff)
	}
	obj, err := read.New(cluster.NewSet(client), vault.New()).Get(t.Context(), cluster.Management, bare, w.NS, "b")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lists["Bare"][1], *obj); diff != "" {
		t.Errorf("one that is read by its name differs (-list +get):\n%s", diff)
	}
}

// listener keeps the answers of a server.
type listener struct {
	next http.RoundTripper
	mu   sync.Mutex
	text bytes.Buffer
}

// RoundTrip implements http.RoundTripper.
func (l *listener) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

func (l *listener) take() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := bytes.Clone(l.text.Bytes())
	l.text.Reset()
	return text
}
