package perturb

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"

	kubetest "github.com/slipway-dev/slipway/test/kube"
	"github.com/slipway-dev/slipway/test/suite"
)

// wire is the connection of one copy to its API servers. It counts calls, lets some of
// them meet with mischief, and shows what was written to the feed.
type wire struct {
	next     http.RoundTripper
	feed     *feed
	mischief *mischief
	alone    bool

	mu            sync.Mutex
	reads, writes []kubetest.Request
	all           int
}

// mischief is what happens to calls. Each may be nil.
type mischief struct {
	// before may answer a call instead of the server, after may lose an answer.
	before func(call) (*http.Response, error)
	after  func(call) error
	// stale serves reads from what the server said earlier.
	stale *memory
}

// call is one call of a copy.
type call struct {
	kubetest.Request
	http *http.Request
	// n is its number among the copy's reads or writes, all its number among both.
	n, all int
	// there: it goes to a workload cluster.
	there bool
}

func (w *wire) wrap(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return w
	})
}

func (w *wire) count(req *http.Request) call {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := call{Request: kubetest.ParseRequest(req), http: req}
	w.all++
	c.all = w.all
	if c.Write() {
		w.writes = append(w.writes, c.Request)
		c.n = len(w.writes)
		return c
	}
	w.reads = append(w.reads, c.Request)
	c.n = len(w.reads)
	return c
}

// counted are the numbers of reads, writes and both so far.
func (w *wire) counted() (reads, writes, all int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.reads), len(w.writes), w.all
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if !w.alone {
		req = w.ours(req)
	}
	c := w.count(req)
	m := w.mischief
	if m == nil {
		m = &mischief{}
	}
	if m.before != nil {
		if resp, err := m.before(c); resp != nil || err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return resp, err
		}
	}
	if m.stale != nil && !c.Write() {
		if resp := m.stale.answer(req); resp != nil {
			return resp, nil
		}
	}
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.feed.answered(c.Request, resp), m.stale.learn(c, resp)); err != nil {
		return nil, err
	}
	if m.after != nil {
		if err := m.after(c); err != nil {
			resp.Body.Close()
			return nil, err
		}
	}
	return resp, nil
}

// WrappedRoundTripper lets client-go find the transport below, to cancel requests.
func (w *wire) WrappedRoundTripper() http.RoundTripper { return w.next }

// there is a call to a workload cluster, before it goes on.
func (w *wire) there(req *http.Request) (*http.Response, error) {
	if w.feed == nil {
		return nil, nil
	}
	c := w.count(req)
	c.there = true
	if m := w.mischief; m != nil && m.before != nil {
		if resp, err := m.before(c); resp != nil || err != nil {
			return resp, err
		}
	}
	if c.Write() {
		w.feed.wrote(c.Request, nil)
	}
	return nil, nil
}

// ours keeps a look at all objects without a namespace to those of the world.
func (w *wire) ours(req *http.Request) *http.Request {
	asked := kubetest.ParseRequest(req)
	if asked.Verb != "list" || asked.Namespace != "" || !slices.Contains([]string{"organizations", "kubevirtconfigs"}, asked.Resource) {
		return req
	}
	req = req.Clone(req.Context())
	query := req.URL.Query()
	query.Set("labelSelector", label+"="+w.feed.ns)
	req.URL.RawQuery = query.Encode()
	return req
}

// memory is what a server said of reads, by URL.
type memory struct {
	mu   sync.Mutex
	said map[string][]byte
	// old is what is served while the memory is used.
	old map[string][]byte
	// served is how many reads it has answered.
	served int
}

func newMemory() *memory { return &memory{said: map[string][]byte{}} }

// use serves what was said until now; not use serves nothing.
func (m *memory) use(use bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.old = nil; use {
		m.old = m.said
		m.said = map[string][]byte{}
		for url, body := range m.old {
			m.said[url] = body
		}
	}
}

func (m *memory) answer(req *http.Request) *http.Response {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, known := m.old[req.URL.RequestURI()]
	if !known {
		return nil
	}
	m.served++
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}

// learn keeps the answer to a read. A nil memory keeps nothing.
func (m *memory) learn(c call, resp *http.Response) error {
	if m == nil || c.Write() || c.Path != "" || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" {
		return nil
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said[c.http.URL.RequestURI()] = body
	return nil
}

// timeout is what a client says when nobody has answered.
type timeout struct{}

func (timeout) Error() string { return "net/http: timeout awaiting response headers" }
func (timeout) Timeout() bool { return true }

// Temporary is what net.Error wants besides.
func (timeout) Temporary() bool { return true }

var (
	errReset  = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	errKilled = errors.New("the process is gone")
)

// fault is a way in which a call fails.
type fault struct {
	name string
	// code is what the server answers; else err is what becomes of the connection.
	code int
	err  error
	// after: the call is carried out, and its answer is lost.
	after bool
	// reads: a read can fail like this too.
	reads bool
}

var faults = []fault{
	{name: "409", code: http.StatusConflict},
	{name: "429", code: http.StatusTooManyRequests, reads: true},
	{name: "500", code: http.StatusInternalServerError, reads: true},
	{name: "503", code: http.StatusServiceUnavailable, reads: true},
	{name: "Timeout", err: timeout{}, reads: true},
	{name: "Reset", err: errReset, reads: true},
	{name: "AnswerLost", err: errReset, after: true},
	{name: "TimeoutAfter", err: timeout{}, after: true},
}

func (x fault) answer(req *http.Request) (*http.Response, error) {
	if x.code != 0 {
		return suite.Answer(req, x.code), nil
	}
	return nil, x.err
}
