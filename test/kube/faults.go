package kubetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// ErrNoAnswer is what a fault may use for a connection that breaks.
var ErrNoAnswer = errors.New("connection reset by peer")

// Faults stands between clients and the API server and does to their requests what
// a test wants. The zero value is ready for use and does nothing.
type Faults struct {
	mu     sync.Mutex
	before func(*http.Request) (*http.Response, error)
	after  func(*http.Request, *http.Response, error) (*http.Response, error)
}

// Config returns a copy of cfg whose clients have their requests pass here.
func (f *Faults) Config(cfg *rest.Config) *rest.Config {
	config := rest.CopyConfig(cfg)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return faulty{next: next, faults: f} })
	return config
}

// Before sets what is done with each request before it is sent: an answer or an
// error goes to the client and the server never hears of the request; with neither
// the request goes on. It may wait, which pauses the client, but should heed the
// request's context. Nil does nothing.
func (f *Faults) Before(do func(*http.Request) (*http.Response, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = do
}

// After sets what is done with each answer of the server: what it returns is what
// the client gets. An error in place of an answer is a write that was done and
// whose client does not know. Nil does nothing.
func (f *Faults) After(do func(*http.Request, *http.Response, error) (*http.Response, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after = do
}

type faulty struct {
	next   http.RoundTripper
	faults *Faults
}

func (t faulty) RoundTrip(req *http.Request) (*http.Response, error) {
	t.faults.mu.Lock()
	before, after := t.faults.before, t.faults.after
	t.faults.mu.Unlock()
	if before != nil {
		if resp, err := before(req); resp != nil || err != nil {
			// A transport owes it to the client to close what it was given.
			if req.Body != nil {
				req.Body.Close()
			}
			return resp, err
		}
	}
	resp, err := t.next.RoundTrip(req)
	if after == nil {
		return resp, err
	}
	changed, err := after(req, resp, err)
	if resp != nil && resp != changed {
		resp.Body.Close()
	}
	return changed, err
}

// WrappedRoundTripper lets client-go find the transport below, to cancel requests.
func (t faulty) WrappedRoundTripper() http.RoundTripper { return t.next }

// Answer is what an API server says when it refuses a request.
func Answer(req *http.Request, code int, reason metav1.StatusReason, message string) *http.Response {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     int32(code), //nolint:gosec // HTTP codes have three digits
		Reason:   reason,
		Message:  message,
	}
	body, err := json.Marshal(status)
	if err != nil {
		panic(fmt.Sprintf("cannot encode a Status: %v", err))
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", code, http.StatusText(code)),
		StatusCode:    code,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       req,
	}
}
