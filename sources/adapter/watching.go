package adapter

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"knative.dev/eventing/pkg/adapter/apiserver"
)

// witness sees in the requests of a receive adapter when it has begun to watch, and
// when a watch had to start over: the adapter itself does not say, and what changes
// before the one, or in the gap of the other, gives no event.
type witness struct {
	// begun calls when every watch has begun, once; again when one has started
	// over.
	begun, again func()

	mu      sync.Mutex
	watches map[string]bool // true: its objects were listed once more
	want    int
}

// newWitness makes a witness of the watches that the adapter's configuration asks
// for.
func newWitness(env Environment, begun, again func()) (*witness, error) {
	var config apiserver.Config
	if err := json.Unmarshal([]byte(env["K_SOURCE_CONFIG"]), &config); err != nil {
		return nil, fmt.Errorf("cannot read K_SOURCE_CONFIG: %w", err)
	}
	want := len(config.Resources)
	if !config.AllNamespaces {
		want *= len(config.Namespaces)
	}
	return &witness{begun: begun, again: again, watches: map[string]bool{}, want: want}, nil
}

// client lets the witness see the requests that the client makes.
//
// A watch that begins with what exists already does not tell in its requests where
// the one ends and the other begins, and what changes before that gives no event. So
// such a request is answered as by an API server that does not know it, and the
// adapter lists first: from then on nothing is missed.
func (w *witness) client(next *http.Client) *http.Client {
	client := *next
	transport := next.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	client.Transport = roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.URL.Query().Get("sendInitialEvents") == "true" {
			return unknown(request), nil
		}
		response, err := transport.RoundTrip(request)
		if err == nil && response.StatusCode == http.StatusOK {
			w.saw(request.URL)
		}
		return response, err
	})
	return &client
}

// unknown is the answer of an API server that does not know what is asked for.
func unknown(request *http.Request) *http.Response {
	const status = `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Invalid","code":422}`
	return &http.Response{
		Status: "422 Unprocessable Entity", StatusCode: http.StatusUnprocessableEntity,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(status)), ContentLength: int64(len(status)), Request: request,
	}
}

func (w *witness) saw(answered *url.URL) {
	query := answered.Query()
	path := answered.Path + "?" + query.Get("labelSelector")
	w.mu.Lock()
	defer w.mu.Unlock()
	listed, known := w.watches[path]
	if query.Get("watch") != "true" {
		if known {
			w.watches[path] = true
		}
		return
	}
	w.watches[path] = false
	switch {
	case !known:
		if len(w.watches) == w.want {
			w.begun()
		}
	case listed:
		w.again()
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
