package function

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/deploy/local/eventing/report"
)

// renewal is how often the credentials of a running process are looked at.
const renewal = 5 * time.Minute

// Options are what an Activator needs.
type Options struct {
	// Environ is the environment of a function's process, but for its addresses.
	Environ func(ctx context.Context, spec Spec) ([]string, error)
	// Renew looks after the credentials of a running process; nil for none.
	Renew func(ctx context.Context, spec Spec) error
	// Idle is how long a process without requests is kept.
	Idle   time.Duration
	Report *report.Reporter
	Log    *slog.Logger
}

// Activator hands requests to functions, whose processes it starts and stops.
type Activator struct {
	options   Options
	transport *http.Transport

	mu        sync.Mutex
	functions map[types.NamespacedName]*function
	stopped   bool
	wait      sync.WaitGroup
}

// function is one function and its process, if there is one.
type function struct {
	activator *Activator

	mu      sync.Mutex
	spec    Spec
	current *running
	// slots limits the requests in flight; nil for no limit.
	slots   chan struct{}
	removed bool
}

// running is a process with what is needed to use it.
type running struct {
	process     *process
	proxy       *httputil.ReverseProxy
	fingerprint string
	inFlight    int
	idle        *time.Timer
	// retired processes get no more requests.
	retired bool
}

// Errors of requests that reach no function.
var (
	errDisabled = errors.New("the function is disabled by its annotation " + AnnotationDisabled)
	errShutdown = errors.New("functions are being stopped")
)

// NewActivator makes an Activator without functions.
func NewActivator(options Options) *Activator {
	return &Activator{
		options: options,
		// Not the default transport: that one knows the cluster's names only.
		transport: &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute},
		functions: map[types.NamespacedName]*function{},
	}
}

// Set makes a function known, or changes it. A process of the former kind
// finishes its requests and is stopped.
func (a *Activator) Set(spec Spec) {
	a.mu.Lock()
	f := a.functions[spec.NamespacedName]
	if f == nil {
		f = &function{activator: a}
		a.functions[spec.NamespacedName] = f
	}
	a.mu.Unlock()
	f.set(spec)
}

// Remove forgets a function and stops its process.
func (a *Activator) Remove(name types.NamespacedName) {
	a.mu.Lock()
	f := a.functions[name]
	delete(a.functions, name)
	a.mu.Unlock()
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed = true
	f.retire()
}

// Concurrency is how many requests the function takes at once; 0 if it is not
// known or unlimited.
func (a *Activator) Concurrency(name types.NamespacedName) int {
	f := a.get(name)
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spec.Concurrency
}

// Stop stops all processes and waits for them.
func (a *Activator) Stop() {
	a.mu.Lock()
	a.stopped = true
	var all []*function
	for _, f := range a.functions {
		all = append(all, f)
	}
	a.mu.Unlock()
	for _, f := range all {
		f.mu.Lock()
		f.removed = true
		if f.current != nil {
			// Requests in flight have been given their time before.
			f.current.inFlight = 0
		}
		f.retire()
		f.mu.Unlock()
	}
	a.wait.Wait()
}

func (a *Activator) get(name types.NamespacedName) *function {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.functions[name]
}

// Handler answers requests for the named function.
func (a *Activator) Handler(name types.NamespacedName) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := a.get(name)
		if f == nil {
			http.Error(w, fmt.Sprintf("there is no function %q", name), http.StatusNotFound)
			return
		}
		release, err := f.slot(r.Context())
		if err != nil {
			http.Error(w, fmt.Sprintf("function %q is busy: %v", name, err), http.StatusServiceUnavailable)
			return
		}
		defer release()
		use, err := f.acquire(r.Context())
		if err != nil {
			http.Error(w, fmt.Sprintf("function %q: %v", name, err), http.StatusServiceUnavailable)
			return
		}
		defer f.release(use)
		use.proxy.ServeHTTP(w, r)
	})
}

// set changes the function.
func (f *function) set(spec Spec) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.slots == nil || f.spec.Concurrency != spec.Concurrency {
		// Requests that hold an old slot give it back to where they got it.
		f.slots = nil
		if spec.Concurrency > 0 {
			f.slots = make(chan struct{}, spec.Concurrency)
		}
	}
	f.spec = spec
	if f.current != nil && (spec.Disabled || f.current.fingerprint != spec.fingerprint()) {
		f.retire()
	}
}

// slot waits until one more request may be in flight.
func (f *function) slot(ctx context.Context) (func(), error) {
	f.mu.Lock()
	slots := f.slots
	f.mu.Unlock()
	if slots == nil {
		return func() {}, nil
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// acquire returns the function's process once it is ready, and starts it if
// there is none.
func (f *function) acquire(ctx context.Context) (*running, error) {
	use, err := f.use(ctx)
	if err != nil {
		return nil, err
	}
	if err := use.process.await(ctx); err != nil {
		f.release(use)
		return nil, err
	}
	return use, nil
}

// use counts one more request on the function's process.
func (f *function) use(ctx context.Context) (*running, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil || f.current.process.gone() {
		if err := f.launch(ctx); err != nil {
			return nil, err
		}
	}
	use := f.current
	use.inFlight++
	if use.idle != nil {
		use.idle.Stop()
		use.idle = nil
	}
	return use, nil
}

// launch starts a process. The lock is held.
func (f *function) launch(ctx context.Context) error {
	switch {
	case f.removed:
		return errShutdown
	case f.spec.Disabled:
		return errDisabled
	}
	if err := f.spec.Present(); err != nil {
		return err
	}
	environ, err := f.activator.options.Environ(ctx, f.spec)
	if err != nil {
		return err
	}
	process, err := start(f.spec, environ, f.activator.options.Report)
	if err != nil {
		return err
	}
	f.current = &running{
		process: process, fingerprint: f.spec.fingerprint(),
		proxy: f.activator.proxy(f.spec.NamespacedName, process),
	}
	f.activator.wait.Go(func() { <-process.exited })
	// The process outlives the request that started it.
	go f.activator.renew(f.spec, process) //nolint:gosec // the request's context would end too early
	return nil
}

// Present tells whether there is something to run.
func (s Spec) Present() error {
	_, err := os.Stat(s.Binary)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no file %q: build the function into that folder", s.Binary)
	}
	return err
}

// release ends a request; the last one starts the idle time.
func (f *function) release(use *running) {
	f.mu.Lock()
	defer f.mu.Unlock()
	use.inFlight--
	if use.inFlight > 0 {
		return
	}
	if use.retired {
		go use.process.stop()
		return
	}
	use.idle = time.AfterFunc(f.activator.options.Idle, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if use.inFlight == 0 && f.current == use {
			f.retire()
		}
	})
}

// retire gives no more requests to the present process, and stops it when it
// has none. The lock is held.
func (f *function) retire() {
	use := f.current
	if use == nil {
		return
	}
	f.current = nil
	use.retired = true
	if use.idle != nil {
		use.idle.Stop()
		use.idle = nil
	}
	if use.inFlight <= 0 {
		go use.process.stop()
	}
}

// proxy sends requests to a process.
func (a *Activator) proxy(name types.NamespacedName, process *process) *httputil.ReverseProxy {
	target := &url.URL{Scheme: "http", Host: process.address}
	return &httputil.ReverseProxy{
		Transport: a.transport,
		Rewrite: func(request *httputil.ProxyRequest) {
			request.Out.URL.Scheme = target.Scheme
			request.Out.URL.Host = target.Host
			request.Out.Host = request.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				a.options.Log.Warn("a function did not answer", "function", name.String(), "error", err)
				process.settle()
			}
			http.Error(w, fmt.Sprintf("function %q did not answer: %v", name, err), http.StatusBadGateway)
		},
	}
}

// renew looks after the credentials of a process while it lives.
func (a *Activator) renew(spec Spec, process *process) {
	if a.options.Renew == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ticker := time.NewTicker(renewal)
	defer ticker.Stop()
	for {
		select {
		case <-process.exited:
			return
		case <-ticker.C:
		}
		if err := a.options.Renew(ctx, spec); err != nil {
			a.options.Log.Warn("cannot renew a token", "function", spec.String(), "error", err)
		}
	}
}
