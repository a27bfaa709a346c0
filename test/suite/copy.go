package suite

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/serve"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

// Call is one request of a copy, counted from 1.
type Call struct {
	N int
	kubetest.Request
	HTTP *http.Request
}

// Tap sees every request of one copy before it is sent; it may answer instead of
// the server.
type Tap func(Call) (*http.Response, error)

// Copy is one copy of a function, as a process of its own would be, under the
// function's own account.
type Copy struct {
	*reconcile.Host
	// Log is what the copy has logged.
	Log *Buffer

	tb       testing.TB
	suite    *Suite
	evidence *evidence
	taps     []Tap
	after    func(Call) error
	// provoked: the test wants refusals, so they are no evidence.
	provoked bool
	// ns is the namespace that a look at all namespaces is kept to.
	ns      string
	config  *rest.Config
	options []func(*reconcile.Options)

	mu sync.Mutex
	// requests are those answered since the last look, calls all that were made.
	requests, calls []kubetest.Request
}

// Option changes how a copy is made.
type Option func(*Copy)

// WithTap lets a test see, hold, refuse or fail each request. Nil does nothing.
func WithTap(do Tap) Option {
	return func(c *Copy) {
		if do != nil {
			c.taps = append(c.taps, do)
		}
	}
}

// WithAfter sees each answer of the server and may lose it.
func WithAfter(do func(Call) error) Option { return func(c *Copy) { c.after = do } }

// WithConfig gives the copy another account, whose refusals are wanted.
func WithConfig(other *rest.Config) Option {
	return func(c *Copy) { c.config, c.provoked = other, true }
}

// WithOptions changes what the copy's host is given.
func WithOptions(do func(*reconcile.Options)) Option {
	return func(c *Copy) { c.options = append(c.options, do) }
}

// Everywhere lets the copy see the namespaces of other tests too. All others are
// kept to their own, since those may be in the middle of something.
func Everywhere(c *Copy) { c.ns = "" }

// Run starts a copy of a function.
func Run[In any](w *World, fn reconcile.Function[In], options ...Option) *Copy {
	w.TB.Helper()
	return w.Host(fn.Spec.Name, func(o reconcile.Options) *reconcile.Host { return reconcile.New(fn, o) }, options...)
}

// Host starts a copy of the function of that name, which the suite's Specs must
// hold; start makes its host.
func (w *World) Host(name string, start func(reconcile.Options) *reconcile.Host, options ...Option) *Copy {
	w.TB.Helper()
	s := w.suite
	c := &Copy{tb: w.TB, suite: s, evidence: s.evidence[name], Log: &Buffer{}, ns: w.NS}
	if c.evidence == nil {
		w.TB.Fatalf("the suite has no function %q: add its declaration to Options.Specs", name)
	}
	s.mu.Lock()
	c.config = s.accounts[name]
	s.mu.Unlock()
	for _, option := range options {
		option(c)
	}
	config := rest.CopyConfig(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return wire{next: next, c: c} })
	opts := reconcile.Options{Config: config, Log: serve.Logger(c.Log, "debug")}
	for _, change := range c.options {
		change(&opts)
	}
	s.prove(w.TB, name, &opts, func() *reconcile.Host { return c.Host })
	c.Host = start(opts)
	return c
}

// Calls are all requests that the copy has made, whatever came of them.
func (c *Copy) Calls() []kubetest.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// Asked are the requests that the server has answered since the last time, as
// reads and writes.
func (c *Copy) Asked() (reads, writes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range c.requests {
		if request.Write() {
			writes = append(writes, request.String())
			continue
		}
		reads = append(reads, request.String())
	}
	c.requests = nil
	return reads, writes
}

// Send hands the copy an event and returns the HTTP status of its answer. The
// event outlives the test's context, as one that is being handled does.
func (c *Copy) Send(ce cloudevents.Event) int {
	reply, err := c.Handle(context.WithoutCancel(c.tb.Context()), ce)
	return status(reply, err)
}

func status(reply *cloudevents.Event, err error) int {
	if reply != nil {
		return http.StatusOK
	}
	var result *cehttp.Result
	if !errors.As(err, &result) {
		return 0
	}
	return result.StatusCode
}

// Insist sends an event again as long as the answer asks for it, as a broker does.
func (c *Copy) Insist(ce cloudevents.Event) {
	c.tb.Helper()
	for try := 0; ; try++ {
		got := c.Send(ce)
		if got == http.StatusNoContent {
			return
		}
		if got != http.StatusServiceUnavailable || try == 5 {
			c.tb.Fatalf("%s %s was answered %d at try %d; the log:\n%s", ce.Extensions()["kind"], ce.Extensions()["name"], got, try, c.Log)
		}
	}
}

// Resync plays PingSource and broker: it sends the pages that the function answers
// with until the last, which must be answered with 204, and tells how many there
// were.
func (c *Copy) Resync() (pages int) {
	c.tb.Helper()
	code, pages := c.TryResync()
	if code != http.StatusNoContent {
		c.tb.Errorf("the resync was answered %d; the log:\n%s", code, c.Log)
	}
	return pages
}

// TryResync is Resync with the last answer's HTTP status.
func (c *Copy) TryResync() (code, pages int) {
	ce := event.Next(event.Resync{Function: c.Spec().Name}, "resync", time.Now())
	for {
		pages++
		reply, err := c.Handle(context.WithoutCancel(c.tb.Context()), ce)
		if reply == nil {
			return status(reply, err), pages
		}
		ce = *reply
	}
}

// Rests wants three passes of events and a resync to write nothing at all.
func (c *Copy) Rests(events ...cloudevents.Event) {
	c.tb.Helper()
	c.Asked()
	for range 3 {
		for _, ce := range events {
			c.Insist(ce)
		}
	}
	c.Resync()
	if _, writes := c.Asked(); len(writes) > 0 {
		c.tb.Errorf("%d events, three times, and a resync should write nothing, and have written: %s", len(events), strings.Join(writes, "; "))
	}
}

// Metrics is what the copy serves at /metrics.
func (c *Copy) Metrics() string {
	page := httptest.NewRecorder()
	c.Host.Metrics().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return page.Body.String()
}

// wire is the connection of a copy to the API server.
type wire struct {
	next http.RoundTripper
	c    *Copy
}

func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	c := w.c
	c.mu.Lock()
	call := Call{N: len(c.calls) + 1, Request: kubetest.ParseRequest(req), HTTP: req}
	c.calls = append(c.calls, call.Request)
	c.mu.Unlock()
	for _, tap := range c.taps {
		if resp, err := tap(call); resp != nil || err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return resp, err
		}
	}
	resp, err := w.next.RoundTrip(strict(scopedTo(c.ns, c.suite.opts.Kinds, req), call.Request))
	if err != nil {
		return resp, err
	}
	call.Status = resp.StatusCode
	c.mu.Lock()
	c.requests = append(c.requests, call.Request)
	c.mu.Unlock()
	if !c.provoked {
		c.evidence.note(c.tb.Name(), call.Request)
		c.examine(call.Request, resp)
	}
	if c.after != nil {
		if err := c.after(call); err != nil {
			resp.Body.Close()
			return nil, err
		}
	}
	return resp, nil
}

// examine shows the suite what the server stored.
func (c *Copy) examine(req kubetest.Request, resp *http.Response) {
	if c.suite.opts.Stored == nil || !req.Write() || req.Verb == "delete" || resp.StatusCode >= http.StatusBadRequest {
		return
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	obj := &unstructured.Unstructured{}
	if err = errors.Join(err, obj.UnmarshalJSON(body)); err != nil {
		c.tb.Errorf("cannot read the answer to %s: %v", req, err)
		return
	}
	c.suite.opts.Stored(c.tb, req, obj)
}

// WrappedRoundTripper lets client-go find the transport below, to cancel requests.
func (w wire) WrappedRoundTripper() http.RoundTripper { return w.next }

// strict has the server refuse fields that it does not know.
func strict(req *http.Request, asked kubetest.Request) *http.Request {
	if !asked.Write() || asked.Verb == "delete" {
		return req
	}
	req = req.Clone(req.Context())
	query := req.URL.Query()
	query.Set("fieldValidation", metav1.FieldValidationStrict)
	req.URL.RawQuery = query.Encode()
	return req
}

// scopedTo keeps a look at all namespaces to one.
func scopedTo(ns string, kinds []kind.Resource, req *http.Request) *http.Request {
	asked := kubetest.ParseRequest(req)
	if ns == "" || asked.Namespace != "" || asked.Name != "" || !slices.ContainsFunc(kinds, func(res kind.Resource) bool {
		return res.Namespaced && res.Group == asked.Group && res.Plural == asked.Resource
	}) {
		return req
	}
	all := "/" + asked.Resource
	req = req.Clone(req.Context())
	req.URL.Path = strings.TrimSuffix(req.URL.Path, all) + "/namespaces/" + ns + all
	return req
}

// Scoped is a configuration whose looks at all namespaces are kept to the world's: for
// controllers that play a part in one test.
func (w *World) Scoped(cfg *rest.Config) *rest.Config {
	config := rest.CopyConfig(cfg)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return scoped{next: next, ns: w.NS, kinds: w.suite.opts.Kinds}
	})
	return config
}

type scoped struct {
	next  http.RoundTripper
	ns    string
	kinds []kind.Resource
}

func (s scoped) RoundTrip(req *http.Request) (*http.Response, error) {
	return s.next.RoundTrip(scopedTo(s.ns, s.kinds, req))
}

// WrappedRoundTripper lets client-go find the transport below, to cancel requests.
func (s scoped) WrappedRoundTripper() http.RoundTripper { return s.next }

// Buffer is a log that tests can read while it is written.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends to the log.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is the log so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
