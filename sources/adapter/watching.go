package adapter

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
	"knative.dev/eventing/pkg/adapter/apiserver"
)

// witness sees in the requests of a receive adapter when it has begun to watch:
// the adapter itself does not say, and what changes before gives no event.
type witness struct {
	mu    sync.Mutex
	begun map[string]bool
	want  int
	done  func()
}

// newWitness makes a witness that calls done, once, when every watch that the
// adapter's configuration asks for has begun.
func newWitness(env Environment, done func()) (*witness, error) {
	var config apiserver.Config
	if err := json.Unmarshal([]byte(env["K_SOURCE_CONFIG"]), &config); err != nil {
		return nil, fmt.Errorf("cannot read K_SOURCE_CONFIG: %w", err)
	}
	want := len(config.Resources)
	if !config.AllNamespaces {
		want *= len(config.Namespaces)
	}
	return &witness{begun: map[string]bool{}, want: want, done: done}, nil
}

// wrap lets the witness see the requests made with the configuration.
func (w *witness) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && response.StatusCode == http.StatusOK && request.URL.Query().Get("watch") == "true" {
				w.saw(request.URL.Path)
			}
			return response, err
		})
	})
	return config
}

func (w *witness) saw(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun[path] {
		return
	}
	w.begun[path] = true
	if len(w.begun) == w.want {
		w.done()
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
