package reconcile

import (
	"context"
	"sync"
	"time"
)

// coalescer lets one call per key run at a time. Calls that arrive while one
// runs share a single later call: it starts after they arrived, so it sees
// whatever made them come.
type coalescer[R any] struct {
	// time is what a shared call gets.
	time    time.Duration
	mu      sync.Mutex
	flights map[string]*flight[R]
}

type flight[R any] struct {
	// next is the call that follows the running one, if anybody waits for it.
	next *call[R]
}

type call[R any] struct {
	// turn is closed when the call may start, done when its result is there.
	turn, done chan struct{}
	result     R
	err        error
}

// do runs fn for a key, or waits for a call that starts later than now and
// takes its result. The error is that of the context.
func (c *coalescer[R]) do(ctx context.Context, key string, fn func(context.Context) R) (R, error) {
	c.mu.Lock()
	if c.flights == nil {
		c.flights = map[string]*flight[R]{}
	}
	f, running := c.flights[key]
	if !running {
		f = &flight[R]{}
		c.flights[key] = f
		c.mu.Unlock()
		defer c.finish(key, f)
		return fn(ctx), nil
	}
	if mine := f.next; mine != nil {
		c.mu.Unlock()
		result, err := await(ctx, mine)
		if err != nil && ctx.Err() == nil {
			return c.do(ctx, key, fn) // its leader ran out of time, not we
		}
		return result, err
	}
	mine := &call[R]{turn: make(chan struct{}), done: make(chan struct{})}
	f.next = mine
	c.mu.Unlock()

	select {
	case <-mine.turn:
	case <-ctx.Done():
		return c.abandon(ctx, key, f, mine)
	}
	defer c.finish(key, f)
	defer close(mine.done)
	// Others wait for this run: it gets the time of a call of its own.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.time)
	defer cancel()
	mine.result = fn(ctx)
	return mine.result, nil
}

func await[R any](ctx context.Context, other *call[R]) (R, error) {
	select {
	case <-other.done:
		return other.result, other.err
	case <-ctx.Done():
		var none R
		return none, ctx.Err()
	}
}

// abandon gives up a call whose leader ran out of time, together with those
// who wait for it; its turn may have come at that very moment.
func (c *coalescer[R]) abandon(ctx context.Context, key string, f *flight[R], mine *call[R]) (R, error) {
	c.mu.Lock()
	hasTurn := f.next != mine
	if !hasTurn {
		f.next = nil
	}
	c.mu.Unlock()
	if hasTurn {
		c.finish(key, f)
	}
	mine.err = ctx.Err()
	close(mine.done)
	return mine.result, mine.err
}

// finish passes the turn on, or forgets the key.
func (c *coalescer[R]) finish(key string, f *flight[R]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.next == nil {
		delete(c.flights, key)
		return
	}
	next := f.next
	f.next = nil
	close(next.turn)
}
