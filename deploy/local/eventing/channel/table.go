package channel

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/eventing/pkg/eventfilter"
	"knative.dev/eventing/pkg/eventfilter/attributes"
	"knative.dev/eventing/pkg/eventfilter/subscriptionsapi"
	"knative.dev/eventing/pkg/kncloudevents"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/slipway-dev/slipway/deploy/local/eventing/names"
	"github.com/slipway-dev/slipway/deploy/local/eventing/queue"
	"github.com/slipway-dev/slipway/deploy/local/eventing/report"
)

// Errors of Receive.
var (
	// ErrFull says that a queue has no room.
	ErrFull = errors.New("a queue is full")
	// ErrUnknown says that there is no such channel.
	ErrUnknown = errors.New("no such channel")
	// ErrStarting says that it is not yet known who subscribed.
	ErrStarting = errors.New("not every subscription has been read yet")
)

// Defaults of Options.
const (
	DefaultCapacity    = 4096
	DefaultConcurrency = 10
)

// Options are what a Table needs.
type Options struct {
	// Dispatcher sends events.
	Dispatcher *kncloudevents.Dispatcher
	// Trigger reads a Trigger.
	Trigger func(name types.NamespacedName) (*eventingv1.Trigger, error)
	// Concurrency is how many requests a function takes at once; 0 if that is
	// not known.
	Concurrency func(function types.NamespacedName) int
	// Capacity is how many events may wait for one Trigger.
	Capacity int
	Report   *report.Reporter
	Log      *zap.Logger
}

// Delivery is where a subscription's events go, and how.
type Delivery struct {
	Target     duckv1.Addressable
	Reply      *duckv1.Addressable
	DeadLetter *duckv1.Addressable
	Retry      kncloudevents.RetryConfig
}

// Table knows every channel's subscribers.
type Table struct {
	options Options

	mu       sync.RWMutex
	channels map[types.NamespacedName]*state
	// awaited are subscriptions that have not been looked at yet: an event that
	// was taken now might be wanted by one of them. settled is closed when there
	// are none.
	awaited map[types.NamespacedName]bool
	settled chan struct{}
}

// state is a channel. It may have subscribers before it is open, and keeps them
// when it is closed: a Broker that is created anew finds its Triggers subscribed.
type state struct {
	open        bool
	subscribers map[types.NamespacedName]*subscriber
}

// subscriber is a Trigger's end of a channel.
type subscriber struct {
	trigger  types.NamespacedName
	uid      types.UID
	delivery atomic.Pointer[Delivery]
	queue    *queue.Queue[*item]

	mu         sync.Mutex
	generation int64
	filter     eventfilter.Filter
	limit      int
	function   types.NamespacedName
}

// item is one event for one subscriber.
type item struct {
	event    cloudevents.Event
	headers  http.Header
	function string
}

// NewTable makes an empty Table.
func NewTable(options Options) *Table {
	if options.Capacity <= 0 {
		options.Capacity = DefaultCapacity
	}
	return &Table{
		options: options, channels: map[types.NamespacedName]*state{},
		awaited: map[types.NamespacedName]bool{}, settled: make(chan struct{}),
	}
}

// Await takes no events until each of the given subscriptions has been looked
// at. It must be called once.
func (t *Table) Await(subscriptions []types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range subscriptions {
		t.awaited[name] = true
	}
	if len(t.awaited) == 0 {
		close(t.settled)
	}
}

// Settled is closed when events are taken.
func (t *Table) Settled() <-chan struct{} { return t.settled }

// Looked notes that a subscription has been looked at.
func (t *Table) Looked(subscription types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.awaited[subscription] {
		return
	}
	delete(t.awaited, subscription)
	if len(t.awaited) == 0 {
		close(t.settled)
	}
}

// Open makes the channel known.
func (t *Table) Open(channel types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.channel(channel).open = true
}

// Close takes no more events for the channel.
func (t *Table) Close(channel types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.channel(channel).open = false
}

// channel is the named channel, made if need be. The lock is held.
func (t *Table) channel(name types.NamespacedName) *state {
	if t.channels[name] == nil {
		t.channels[name] = &state{subscribers: map[types.NamespacedName]*subscriber{}}
	}
	return t.channels[name]
}

// Subscribe adds a subscription to the channel, or changes how its events are
// delivered. What waits already is delivered in the new way.
func (t *Table) Subscribe(channel, subscription, trigger types.NamespacedName, uid types.UID, delivery Delivery) {
	t.mu.Lock()
	defer t.mu.Unlock()
	subscribers := t.channel(channel).subscribers
	s := subscribers[subscription]
	if s == nil || s.uid != uid {
		if s != nil {
			go s.queue.Stop(over())
		}
		s = &subscriber{trigger: trigger, uid: uid, limit: DefaultConcurrency, generation: -1}
		s.queue = queue.New(t.options.Capacity, s.limit, func(ctx context.Context, i *item, try int) queue.Result {
			return t.try(ctx, s, i, try)
		})
		subscribers[subscription] = s
	}
	s.delivery.Store(&delivery)
}

// Unsubscribe forgets a subscription and what waits for it.
func (t *Table) Unsubscribe(subscription types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, channel := range t.channels {
		if s := channel.subscribers[subscription]; s != nil {
			delete(channel.subscribers, subscription)
			go s.queue.Stop(over())
		}
	}
}

// Receive queues the event for every Trigger of the channel that wants it.
func (t *Table) Receive(ctx context.Context, channel types.NamespacedName, event cloudevents.Event, headers http.Header) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.awaited) > 0 {
		return ErrStarting
	}
	known := t.channels[channel]
	if known == nil || !known.open {
		return ErrUnknown
	}
	key := Key(event)
	var offers []queue.Offer[*item]
	for _, s := range known.subscribers {
		function, wanted := t.wants(ctx, s, event)
		if !wanted {
			continue
		}
		offers = append(offers, queue.Offer[*item]{
			Queue: s.queue, Key: key, Item: &item{event: event, headers: headers, function: function.Name},
		})
	}
	if !queue.Put(offers) {
		return ErrFull
	}
	return nil
}

// wants tells whether the subscriber's Trigger lets the event through, and to
// which function.
func (t *Table) wants(ctx context.Context, s *subscriber, event cloudevents.Event) (types.NamespacedName, bool) {
	trigger, err := t.options.Trigger(s.trigger)
	if err != nil || trigger.UID != s.uid {
		return types.NamespacedName{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation != trigger.Generation {
		s.generation = trigger.Generation
		s.filter = compile(t.options.Log, trigger)
	}
	s.function = functionOf(trigger)
	t.adjust(s)
	return s.function, s.filter.Filter(ctx, event) != eventfilter.FailFilter
}

// adjust lets the subscriber try as many events at once as its function takes.
// The subscriber's lock is held.
func (t *Table) adjust(s *subscriber) {
	limit := t.options.Concurrency(s.function)
	if limit <= 0 {
		limit = DefaultConcurrency
	}
	if limit != s.limit {
		s.limit = limit
		s.queue.SetLimit(limit)
	}
}

// compile makes the filter that Knative's filter would apply.
func compile(log *zap.Logger, trigger *eventingv1.Trigger) eventfilter.Filter {
	switch {
	case len(trigger.Spec.Filters) > 0:
		return subscriptionsapi.CreateSubscriptionsAPIFilters(log, trigger.Spec.Filters)
	case trigger.Spec.Filter != nil:
		return attributes.NewAttributesFilter(trigger.Spec.Filter.Attributes)
	default:
		return subscriptionsapi.NewNoFilter()
	}
}

// functionOf is the service that the Trigger's subscriber resolved to.
func functionOf(trigger *eventingv1.Trigger) types.NamespacedName {
	uri := trigger.Status.SubscriberURI
	if uri == nil {
		return types.NamespacedName{}
	}
	host := names.Parse(uri.Host)
	if host.Role != names.Service {
		return types.NamespacedName{Name: uri.Host}
	}
	return types.NamespacedName{Namespace: host.Namespace, Name: host.Name}
}

// Stop lets the queues drain until ctx is done and returns how many events were
// given up.
func (t *Table) Stop(ctx context.Context) int {
	t.mu.Lock()
	var all []*subscriber
	for _, channel := range t.channels {
		for _, s := range channel.subscribers {
			all = append(all, s)
		}
	}
	t.channels = map[types.NamespacedName]*state{}
	t.mu.Unlock()

	var left atomic.Int64
	var wait sync.WaitGroup
	for _, s := range all {
		wait.Go(func() { left.Add(int64(s.queue.Stop(ctx))) })
	}
	wait.Wait()
	return int(left.Load())
}

// over is a context that is over: it stops a queue without waiting for it.
func over() context.Context {
	ctx, cancel := context.WithDeadline(context.Background(), time.Time{})
	cancel()
	return ctx
}

// Key names the object that the event is about, whatever the version it was
// watched in; events of no object go by source and subject.
func Key(event cloudevents.Event) string {
	text := func(name string) string {
		value, _ := event.Extensions()[name].(string)
		return value
	}
	if text("kind") == "" || text("name") == "" {
		return "event|" + event.Source() + "|" + event.Subject()
	}
	return "object|" + text("cluster") + "|" + text("kind") + "|" + text("namespace") + "|" + text("name")
}
