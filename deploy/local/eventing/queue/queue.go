package queue

import (
	"context"
	"sync"
	"time"
)

// Handler makes one try at an item. Tries are counted from 1.
type Handler[T any] func(ctx context.Context, item T, try int) Result

// Result is what one try came to.
type Result struct {
	// Again asks for another try after the given time.
	Again bool
	After time.Duration
	// Finally runs when there is no other try: the item is done with when it
	// returns. It holds back the item's key but takes no place of the limit.
	Finally func(ctx context.Context)
}

// Queue holds items by key. The zero value is of no use; see New.
type Queue[T any] struct {
	handle   Handler[T]
	capacity int

	// ctx ends when the queue is stopped for good.
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	limit int
	// lanes are the keys that have items.
	lanes map[string]*lane[T]
	// ready are the lanes whose first item may be tried now, in turn.
	ready []*lane[T]
	// held counts the items, running those being tried, busy the goroutines.
	held, running, busy int
	stopping            bool
	// idle is closed when the queue is stopping and nothing more will happen.
	idle chan struct{}
}

// lane is one key's items.
type lane[T any] struct {
	key   string
	items []T
	tries int
	timer *time.Timer
}

// New makes a queue of at most capacity items, limit of which are tried at once.
func New[T any](capacity, limit int, handle Handler[T]) *Queue[T] {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:gosec // Stop cancels it
	return &Queue[T]{
		handle: handle, capacity: capacity, limit: max(limit, 1),
		ctx: ctx, cancel: cancel,
		lanes: map[string]*lane[T]{}, idle: make(chan struct{}),
	}
}

// SetLimit changes how many items are tried at once.
func (q *Queue[T]) SetLimit(limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = max(limit, 1)
	q.dispatch()
}

// Len is the number of items that are not done with.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held
}

// Offer is an item for one of several queues.
type Offer[T any] struct {
	Queue *Queue[T]
	Key   string
	Item  T
}

// Put puts every offer into its queue, or none if one of the queues is full or
// stopped, and tells which of the two it did. No queue may be named twice.
func Put[T any](offers []Offer[T]) bool {
	for i, offer := range offers {
		if offer.Queue.reserve() {
			continue
		}
		for _, reserved := range offers[:i] {
			reserved.Queue.unreserve()
		}
		return false
	}
	for _, offer := range offers {
		offer.Queue.add(offer.Key, offer.Item)
	}
	return true
}

// reserve takes a place for one item.
func (q *Queue[T]) reserve() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopping || q.held >= q.capacity {
		return false
	}
	q.held++
	return true
}

func (q *Queue[T]) unreserve() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held--
	q.settle()
}

// add puts an item into the place that was reserved for it.
func (q *Queue[T]) add(key string, item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l, waiting := q.lanes[key]
	if !waiting {
		l = &lane[T]{key: key}
		q.lanes[key] = l
		q.ready = append(q.ready, l)
	}
	l.items = append(l.items, item)
	q.dispatch()
}

// dispatch starts tries while the limit allows. The lock is held.
func (q *Queue[T]) dispatch() {
	for q.running < q.limit && len(q.ready) > 0 && q.ctx.Err() == nil {
		l := q.ready[0]
		q.ready = q.ready[1:]
		l.tries++
		q.running++
		q.busy++
		go q.try(l, l.items[0], l.tries)
	}
	q.settle()
}

// try makes one try at the first item of the lane.
func (q *Queue[T]) try(l *lane[T], item T, try int) {
	result := q.handle(q.ctx, item, try)

	q.mu.Lock()
	q.running--
	if result.Again && q.ctx.Err() == nil {
		q.busy--
		q.later(l, result.After)
		q.dispatch()
		q.mu.Unlock()
		return
	}
	q.dispatch()
	q.mu.Unlock()

	if result.Finally != nil && !result.Again {
		result.Finally(q.ctx)
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	q.advance(l)
	q.dispatch()
}

// later makes the lane ready again after a while. The lock is held.
func (q *Queue[T]) later(l *lane[T], after time.Duration) {
	l.timer = time.AfterFunc(after, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		l.timer = nil
		q.ready = append(q.ready, l)
		q.dispatch()
	})
}

// advance drops the lane's first item. The lock is held.
func (q *Queue[T]) advance(l *lane[T]) {
	q.held--
	l.tries = 0
	l.items = l.items[1:]
	if len(l.items) == 0 {
		delete(q.lanes, l.key)
		return
	}
	q.ready = append(q.ready, l)
}

// settle tells whoever stops the queue that nothing more will happen. The lock
// is held.
func (q *Queue[T]) settle() {
	if !q.stopping || (q.held > 0 && q.ctx.Err() == nil) || q.busy > 0 {
		return
	}
	select {
	case <-q.idle:
	default:
		close(q.idle)
	}
}

// Stop takes no more items and waits until all are done with, or ctx is done;
// then it gives the rest up and returns how many there were.
func (q *Queue[T]) Stop(ctx context.Context) int {
	q.mu.Lock()
	q.stopping = true
	q.settle()
	q.mu.Unlock()

	select {
	case <-q.idle:
	case <-ctx.Done():
	}
	q.mu.Lock()
	left := q.held
	q.cancel()
	for _, l := range q.lanes {
		if l.timer != nil {
			l.timer.Stop()
		}
	}
	q.settle()
	q.mu.Unlock()
	<-q.idle
	return left
}
