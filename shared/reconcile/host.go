package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/caller"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/record"
	"github.com/slipway-dev/slipway/shared/serve"
	"github.com/slipway-dev/slipway/shared/telemetry"
	"github.com/slipway-dev/slipway/shared/vault"
)

const (
	// deadline bounds one call. It lies below the delivery timeout of the
	// Triggers (30 s): a longer call would be cut and doubled.
	deadline = 25 * time.Second
	// spare is the time that one reconcile may need: with less left of a call,
	// none is begun.
	spare = 8 * time.Second
	// maxFanOut is how many objects one event reconciles; an event that
	// concerns more becomes a resync, page by page.
	maxFanOut = 50
	// defaultParallel is how many objects of one event or page are reconciled
	// at once.
	defaultParallel = 5
)

// Options are what a function's host can be given; the zero value takes
// everything from the environment.
type Options struct {
	// Config is the management cluster; nil finds it (package cluster).
	Config *rest.Config
	// Log receives the log; nil writes JSON to standard error.
	Log *slog.Logger
	// Now is the clock; nil is the real one.
	Now func() time.Time
	// Parallel is how many objects of one event are reconciled at once; 0
	// takes MAX_CONCURRENT_RECONCILES, else 5.
	Parallel int
	// RemoteTimeout bounds one request to a target cluster; 0 is 10 s.
	RemoteTimeout time.Duration
	// RemoteAnswer bounds the size of one answer of a target cluster, in bytes,
	// for functions whose target clusters are not to be trusted; 0 is no bound.
	RemoteAnswer int64
	// Broker is the URL that a resync goes on through when its chain of
	// replies is used up; empty takes K_SINK.
	Broker string
	// Recorder keeps reconciles; nil takes what the environment says (package record).
	Recorder *record.Recorder
}

// Host is a function as Knative runs it: it takes CloudEvents and answers by
// the class of what came of them. It implements the instanced signature of
// kn func, with Start, Stop, Ready and Alive.
type Host struct {
	spec     Spec
	log      *slog.Logger
	metrics  *telemetry.Metrics
	clusters *cluster.Set
	parallel int
	mode     Mode
	broker   string
	now      func() time.Time
	health   atomic.Pointer[serve.Health]
	calls    coalescer[result]
	one      func(ctx context.Context, key Key, log *slog.Logger) result
	recorder *record.Recorder
	// broken is why the function cannot run; Start reports it. unconnected is why it
	// has no management cluster.
	broken, unconnected error
	// guarded tells that events need a sender that is known (package caller).
	guarded  bool
	stopping atomic.Bool
}

// New makes the host of a function. What is wrong with its environment is
// reported by Start, as kn func's signature of New has no error.
func New[In any](fn Function[In], opts Options) *Host {
	h := &Host{spec: fn.Spec, calls: coalescer[result]{time: deadline}, log: opts.Log, now: opts.Now, parallel: opts.Parallel, broker: opts.Broker}
	if h.log == nil {
		h.log = serve.Logger(os.Stderr, os.Getenv("LOG_LEVEL"))
	}
	h.log = h.log.With("function", fn.Spec.Name, "controller", fn.Spec.Reconciles.Kind)
	if h.now == nil {
		h.now = time.Now
	}
	if h.broker == "" {
		h.broker = os.Getenv("K_SINK")
	}
	h.guarded = caller.Required(os.Getenv)
	h.broken = h.equip(opts)
	h.unconnected = h.connect(opts)
	if err := serve.CheckLevel(os.Getenv("LOG_LEVEL")); err != nil {
		h.broken = errors.Join(h.broken, fmt.Errorf("environment variable LOG_LEVEL: %w", err))
	}
	mode, err := ParseMode(os.Getenv("SLIPWAY_MODE"))
	if err != nil {
		h.broken = errors.Join(h.broken, fmt.Errorf("environment variable SLIPWAY_MODE: %w", err))
	}
	h.mode = mode
	e := &engine[In]{fn: fn, clusters: h.clusters, mode: mode, now: h.now, metrics: h.metrics, recorder: h.recorder}
	h.one = e.reconcile
	return h
}

// Broken makes a host that cannot run: Start reports why. For functions whose
// own settings are wrong.
func Broken(spec Spec, err error) *Host {
	return &Host{spec: spec, log: serve.Logger(os.Stderr, os.Getenv("LOG_LEVEL")), broken: err}
}

// equip gives the host what it needs besides clusters.
func (h *Host) equip(opts Options) error {
	h.clusters = cluster.NewSet(nil)
	h.clusters.RemoteTimeout, h.clusters.RemoteAnswer = opts.RemoteTimeout, opts.RemoteAnswer
	if h.parallel == 0 {
		h.parallel = defaultParallel
		if text := os.Getenv("MAX_CONCURRENT_RECONCILES"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return fmt.Errorf("environment variable MAX_CONCURRENT_RECONCILES is %q: use a number from 1", text)
			}
			h.parallel = n
		}
	}
	var err error
	if h.metrics, err = telemetry.New(context.Background(), h.spec.Name); err != nil {
		return err
	}
	if err = h.metrics.Declare(h.spec.Reconciles.Kind, h.spec.Metrics...); err != nil {
		return err
	}
	if h.recorder = opts.Recorder; h.recorder == nil {
		if h.recorder, err = record.FromEnvironment(h.spec.Name, os.LookupEnv, h.log); err != nil {
			return err
		}
	}
	if h.recorder != nil && h.recorder.Count == nil {
		h.recorder.Count = h.metrics.Recorded
	}
	return nil
}

func (h *Host) connect(opts Options) error {
	config := opts.Config
	if config == nil {
		var err error
		if config, err = cluster.Config(); err != nil {
			return err
		}
	}
	return h.Connect(config)
}

// Connect gives the host another management cluster.
func (h *Host) Connect(config *rest.Config) error {
	management, err := cluster.New(cluster.Management, "slipway/"+h.spec.Name, config)
	if err != nil {
		return err
	}
	h.clusters.Manage(management)
	h.unconnected = nil
	return nil
}

// problem is why no event can be handled.
func (h *Host) problem() error { return errors.Join(h.broken, h.unconnected) }

// Start opens the listener for probes and metrics. An error stops the process
// with its message.
func (h *Host) Start(context.Context, map[string]string) error {
	if err := h.problem(); err != nil {
		h.log.Error("cannot start", "error", err.Error())
		return fmt.Errorf("cannot start function %s: %w", h.spec.Name, err)
	}
	serve.KeepToMemoryLimit()
	health, err := serve.StartHealth(h.Ready, h.metrics.Handler())
	if err != nil {
		return fmt.Errorf("cannot start function %s: %w", h.spec.Name, err)
	}
	h.health.Store(health)
	h.log.Info("started", "health", health.Addresses())
	return nil
}

// Metrics serves the function's metrics in the Prometheus text format, as the
// listener for probes does.
func (h *Host) Metrics() http.Handler {
	if h.metrics == nil {
		return http.NotFoundHandler()
	}
	return h.metrics.Handler()
}

// Stop flushes what has not been sent.
func (h *Host) Stop(ctx context.Context) error {
	h.stopping.Store(true)
	h.recorder.Close(ctx)
	if h.metrics == nil {
		return nil
	}
	if err := h.metrics.Flush(ctx); err != nil {
		h.log.Warn("the last metrics and traces are lost", "error", err.Error())
	}
	if health := h.health.Load(); health != nil {
		if err := health.Stop(ctx); err != nil {
			h.log.Warn("probes were not stopped in order", "error", err.Error())
		}
	}
	h.log.Info("stopped")
	return nil
}

// Ready reports whether events can be handled: the management cluster answers.
func (h *Host) Ready(ctx context.Context) (bool, error) {
	if err := h.problem(); err != nil {
		return false, err
	}
	if h.stopping.Load() {
		return false, nil
	}
	client, err := h.clusters.Client(cluster.Management)
	if err != nil {
		return false, err
	}
	return client.Alive(ctx) == nil, nil
}

// Alive reports whether the process works at all.
func (h *Host) Alive(context.Context) (bool, error) { return true, nil }

// Spec is the declaration of the hosted function.
func (h *Host) Spec() Spec { return h.spec }

// Handle takes one CloudEvent. The error is always an HTTP result of the
// CloudEvents SDK, which decides the answer; the event, if any, is the next
// page of a resync.
func (h *Host) Handle(ctx context.Context, ce cloudevents.Event) (*cloudevents.Event, error) {
	if h.problem() != nil {
		return nil, answer(plan.Retry, "the function is not configured, see its log")
	}
	if h.guarded && !caller.Admitted(ctx) {
		return nil, cehttp.NewResult(http.StatusUnauthorized, "%s", "nothing checks who sent the event: with EVENT_AUDIENCE set, the function has to run under its own main program, not under one that kn func generated")
	}
	if h.recorder != nil {
		ctx = withEvent(ctx, &ce)
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	ctx = cluster.WithMemory(serve.TraceParent(ctx, ce))
	ctx, span := h.metrics.Span(ctx, h.spec.Name+" "+ce.Type(), ce.Subject())
	defer span.End()

	log := h.log.With("event_id", ce.ID(), "event_type", ce.Type(), "event_source", ce.Source())
	if id := span.SpanContext().TraceID(); id.IsValid() {
		log = log.With("trace_id", id.String())
	}
	reply, result := h.handle(ctx, ce, log)
	status := http.StatusOK
	var coded *cehttp.Result
	if errors.As(result, &coded) {
		status = coded.StatusCode
	}
	h.metrics.Received(ctx, ce.Type(), status)
	return reply, result
}

func (h *Host) handle(ctx context.Context, ce cloudevents.Event, log *slog.Logger) (*cloudevents.Event, error) {
	e, err := event.Decode(ce)
	if err != nil {
		log.Warn("event refused", "error", err.Error())
		return nil, invalid(err)
	}
	if e.Resync != nil {
		return h.resync(ctx, *e.Resync, log)
	}
	e = e.At(h.now())
	keys, err := h.keys(ctx, e)
	if errors.Is(err, errInvalid) {
		log.Warn("event refused", "error", err.Error())
		return nil, invalid(err)
	}
	if err != nil {
		log.Warn("cannot map the event to objects", "error", err.Error())
		return nil, answer(plan.Retry, err.Error())
	}
	if len(keys) > maxFanOut {
		return h.resync(ctx, event.Resync{Function: h.spec.Name}, log)
	}
	if w := eventBehind(ctx); w != nil {
		w.keys = keys
	}
	log.Debug("event", "kind", e.Kind, "of", Key{Namespace: e.Namespace, Name: e.Name}.String(), "keys", len(keys))
	done, class, message := h.all(ctx, keys, log)
	if done < len(keys) {
		class, message = plan.Retry, fmt.Sprintf("%d of %d objects were reached in time", done, len(keys))
	}
	return nil, answer(class, message)
}

// keys maps an event to the objects it concerns, each time with a reader of its own.
func (h *Host) keys(ctx context.Context, e event.Event) ([]Key, error) {
	keys, known, err := h.concerned(ctx, e, func(ask mapping) ([]Key, error) { return h.mapping(ctx, ask) })
	if err == nil && !known {
		err = fmt.Errorf("%w: function %s is not woken by %s %s", errInvalid, h.spec.Name, e.APIVersion, e.Kind)
	}
	return keys, err
}

// mapping finds the objects that an event concerns.
type mapping func(r *read.Reader) ([]Key, error)

// concerned are the objects that an event concerns, each once, through the watches that
// name its kind. with gives a mapping the reader that it asks. known tells whether the
// event can wake the function at all.
func (h *Host) concerned(ctx context.Context, e event.Event, with func(ask mapping) ([]Key, error)) (keys []Key, known bool, err error) {
	if h.spec.Connected != nil && (e.Type == event.TypeConnected || e.Type == event.TypeDisconnected) {
		keys, err := with(func(r *read.Reader) ([]Key, error) { return h.spec.Connected(ctx, r, e.Cluster) })
		if err != nil {
			return nil, true, fmt.Errorf("cannot tell which objects lie on cluster %q: %w", e.Cluster, err)
		}
		return keys, true, nil
	}
	seen := map[Key]bool{}
	for _, watch := range h.spec.Watches {
		if !watch.Resource.Is(e.APIVersion, e.Kind) {
			continue
		}
		known = true
		mapped := []Key{{Namespace: e.Namespace, Name: e.Name}}
		if watch.Keys != nil {
			if mapped, err = with(func(r *read.Reader) ([]Key, error) { return watch.Keys(ctx, r, e) }); err != nil {
				return nil, true, fmt.Errorf("cannot tell which objects %s %s/%s concerns: %w", e.Kind, e.Namespace, e.Name, err)
			}
		}
		for _, key := range mapped {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	return keys, known, nil
}

// mapping asks which objects an event concerns, with a reader of its own.
func (h *Host) mapping(ctx context.Context, ask mapping) ([]Key, error) {
	v := vault.New()
	reader := read.New(h.clusters.View(), v)
	keys, err := ask(reader)
	if w := eventBehind(ctx); w != nil {
		w.mapping = append(w.mapping, mapped{reader.Everything(), v})
	}
	return keys, err
}

// all reconciles keys, a few at once; the worst class counts. When little time
// is left, no further key is begun: done tells how many were.
func (h *Host) all(ctx context.Context, keys []Key, log *slog.Logger) (done int, worst plan.Class, message string) {
	results := make([]result, len(keys))
	slots := make(chan struct{}, h.parallel)
	var wg sync.WaitGroup
	for i, key := range keys {
		slots <- struct{}{}
		if ends, ok := ctx.Deadline(); i > 0 && ok && time.Until(ends) < spare {
			<-slots
			break
		}
		done++
		wg.Go(func() {
			defer func() { <-slots }()
			results[i] = h.reconcile(ctx, key, log)
		})
	}
	wg.Wait()
	worst = plan.Done
	for i, res := range results[:done] {
		if class := worse(worst, res.class); class != worst {
			worst, message = class, keys[i].String()+": "+res.message
		}
	}
	return done, worst, message
}

func (h *Host) reconcile(ctx context.Context, key Key, log *slog.Logger) result {
	log = log.With("namespace", key.Namespace, objectField(h.spec.Reconciles.Kind), key.Name)
	res, err := h.calls.do(ctx, key.String(), func(ctx context.Context) result {
		res := h.one(ctx, key, log)
		if res.class == plan.Done && res.reason == reasonAbsent {
			res = h.bereaved(ctx, key, res, log)
		}
		return res
	})
	if err != nil {
		return retry("another call for the object took all the time")
	}
	return res
}

// management is the client of the management cluster, as a fault if there is
// none.
func (h *Host) management() (*cluster.Client, error) {
	client, err := h.clusters.Client(cluster.Management)
	if err != nil {
		return nil, &fault.Fault{Class: fault.Unavailable, Call: "connect", Message: err.Error()}
	}
	return client, nil
}
