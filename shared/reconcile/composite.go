package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/serve"
	"github.com/slipway-dev/slipway/shared/telemetry"
)

// Composite is several functions as one: the small-cluster mode. Each event
// goes to every function that it wakes, as Triggers would send it, and they
// share the listener for probes and metrics. It implements the same signature
// of kn func as a Host.
type Composite struct {
	hosts  []*Host
	mu     sync.Mutex
	health *serve.Health
}

// Many makes one function of several.
func Many(hosts ...*Host) *Composite { return &Composite{hosts: slices.Clone(hosts)} }

// Specs are the declarations of the hosted functions.
func (c *Composite) Specs() []Spec {
	specs := make([]Spec, 0, len(c.hosts))
	for _, h := range c.hosts {
		specs = append(specs, h.spec)
	}
	return specs
}

// Start opens the one listener for probes and metrics. An error stops the
// process: it tells what is wrong with each of the functions.
func (c *Composite) Start(context.Context, map[string]string) error {
	var broken []error
	var metrics []*telemetry.Metrics
	for _, h := range c.hosts {
		if err := h.problem(); err != nil {
			h.log.Error("cannot start", "error", err.Error())
			broken = append(broken, fmt.Errorf("cannot start function %s: %w", h.spec.Name, err))
			continue
		}
		metrics = append(metrics, h.metrics)
	}
	if len(broken) > 0 {
		return errors.Join(broken...)
	}
	serve.KeepToMemoryLimit()
	health, err := serve.StartHealth(c.Ready, telemetry.Joint(metrics...))
	if err != nil {
		return fmt.Errorf("cannot start the functions: %w", err)
	}
	c.mu.Lock()
	c.health = health
	c.mu.Unlock()
	for _, h := range c.hosts {
		h.log.Info("started", "health", health.Addresses())
	}
	return nil
}

// Stop flushes what no function has sent, side by side, and ends the listener.
func (c *Composite) Stop(ctx context.Context) error {
	errs := make([]error, len(c.hosts)+1)
	c.each(func(i int, h *Host) { errs[i] = h.Stop(ctx) })
	c.mu.Lock()
	health := c.health
	c.mu.Unlock()
	if health != nil {
		errs[len(c.hosts)] = health.Stop(ctx)
	}
	return errors.Join(errs...)
}

// Ready reports whether every function is ready.
func (c *Composite) Ready(ctx context.Context) (bool, error) {
	ready, errs := make([]bool, len(c.hosts)), make([]error, len(c.hosts))
	c.each(func(i int, h *Host) { ready[i], errs[i] = h.Ready(ctx) })
	return !slices.Contains(ready, false), errors.Join(errs...)
}

// Alive reports whether the process works at all.
func (c *Composite) Alive(context.Context) (bool, error) { return true, nil }

// each does something with every function at once.
func (c *Composite) each(do func(i int, h *Host)) {
	var wg sync.WaitGroup
	for i, h := range c.hosts {
		wg.Go(func() { do(i, h) })
	}
	wg.Wait()
}

// outcome is what one function answered.
type outcome struct {
	host  *Host
	reply *cloudevents.Event
	err   error
}

// status is the HTTP status of the answer.
func (o outcome) status() int {
	var coded *cehttp.Result
	switch {
	case errors.As(o.err, &coded):
		return coded.StatusCode
	case o.err != nil:
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// Handle gives the event to every function that it wakes, at once. The worst of
// their answers is the answer: an event that one of them needs again comes to
// all of them again, which costs the others some reads. What none of them is
// woken by is invalid.
func (c *Composite) Handle(ctx context.Context, ce cloudevents.Event) (*cloudevents.Event, error) {
	e, err := event.Decode(ce)
	if err != nil {
		c.refuse(ce, err)
		return nil, invalid(err)
	}
	var outcomes []outcome
	for _, h := range c.hosts {
		if h.wokenBy(e) {
			outcomes = append(outcomes, outcome{host: h})
		}
	}
	if len(outcomes) == 0 {
		err := fmt.Errorf("%w: no function is woken by %s", errInvalid, about(e))
		c.refuse(ce, err)
		return nil, invalid(err)
	}
	var wg sync.WaitGroup
	for i := range outcomes {
		o := &outcomes[i]
		wg.Go(func() { o.reply, o.err = o.host.Handle(ctx, ce.Clone()) })
	}
	wg.Wait()
	return c.join(ctx, outcomes)
}

// wokenBy tells whether a Trigger for the function would let an event through.
func (h *Host) wokenBy(e event.Event) bool {
	switch {
	case e.Resync != nil:
		return e.Resync.Function == h.spec.Name
	case e.Type == event.TypeConnected || e.Type == event.TypeDisconnected:
		return h.spec.Connected != nil
	}
	return slices.ContainsFunc(h.spec.Watches, func(w Watch) bool { return w.Resource.Is(e.APIVersion, e.Kind) })
}

// about is what an event is about, for people.
func about(e event.Event) string {
	switch {
	case e.Resync != nil:
		return fmt.Sprintf("a resync of %q", e.Resync.Function)
	case e.Kind != "":
		return e.APIVersion + " " + e.Kind
	}
	return e.Type
}

func (c *Composite) refuse(ce cloudevents.Event, err error) {
	if len(c.hosts) > 0 {
		c.hosts[0].log.Warn("event refused", "event_id", ce.ID(), "event_type", ce.Type(), "event_source", ce.Source(), "error", err.Error())
	}
}

// join makes one answer of several. Only one event can travel with it, so the
// next page of a second function is sent to the broker. With a bad answer none
// travels: the whole event comes again, and brings the pages with it.
func (c *Composite) join(ctx context.Context, outcomes []outcome) (*cloudevents.Event, error) {
	worst := slices.MaxFunc(outcomes, func(a, b outcome) int { return a.status() - b.status() })
	if worst.status() >= http.StatusBadRequest {
		return nil, cehttp.NewResult(worst.status(), "%s", messages(outcomes, worst.status()))
	}
	var reply *cloudevents.Event
	for _, o := range outcomes {
		if o.reply == nil {
			continue
		}
		if reply == nil {
			reply = o.reply
			continue
		}
		if _, err := o.host.send(ctx, *o.reply, chainLimit, o.host.log); (outcome{err: err}).status() >= http.StatusBadRequest {
			return nil, err
		}
	}
	if reply != nil {
		return reply, nil
	}
	return nil, cehttp.NewResult(http.StatusNoContent, "")
}

// messages are what those said who gave an answer of the worst kind.
func messages(outcomes []outcome, status int) string {
	var list []string
	for _, o := range outcomes {
		if o.status() == status {
			list = append(list, o.host.spec.Name+": "+o.err.Error())
		}
	}
	return strings.Join(list, "; ")
}
