package reconcile

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestCallsThatArriveDuringARunShareOneLaterRun(t *testing.T) {
	c := coalescer[int]{time: time.Minute}
	var runs atomic.Int32
	inside, release := make(chan struct{}), make(chan struct{})
	work := func(context.Context) int {
		n := runs.Add(1)
		if n == 1 {
			close(inside)
			<-release
		}
		return int(n)
	}
	results := make([]int, 20)
	var wg sync.WaitGroup
	wg.Go(func() { results[0], _ = c.do(t.Context(), "k", work) })
	<-inside
	for i := 1; i < len(results); i++ {
		wg.Go(func() { results[i], _ = c.do(t.Context(), "k", work) })
	}
	waitFor(t, "all callers to queue up", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.flights["k"] != nil && c.flights["k"].next != nil
	})
	close(release)
	wg.Wait()
	if results[0] != 1 {
		t.Errorf("the first caller got run %d", results[0])
	}
	for i, got := range results[1:] {
		if got < 2 {
			t.Errorf("caller %d arrived during run 1 and must see a later one, got %d", i+1, got)
		}
	}
	if len(c.flights) != 0 {
		t.Errorf("%d keys are remembered after all calls ended", len(c.flights))
	}
}

func TestOneKeyRunsOneCallAtATimeAndOthersInParallel(t *testing.T) {
	c := coalescer[bool]{time: time.Minute}
	var mu sync.Mutex
	running := map[string]int{}
	both := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	for i := range 40 {
		key := []string{"a", "b"}[i%2]
		wg.Go(func() {
			_, _ = c.do(t.Context(), key, func(context.Context) bool {
				mu.Lock()
				running[key]++
				if running[key] > 1 {
					t.Errorf("key %q runs twice at once", key)
				}
				if running["a"] == 1 && running["b"] == 1 {
					once.Do(func() { close(both) })
				}
				mu.Unlock()
				select {
				case <-both:
				case <-t.Context().Done():
				}
				mu.Lock()
				running[key]--
				mu.Unlock()
				return true
			})
		})
	}
	wg.Wait()
}

func TestACallerWhoseTimeIsUpLeavesAndTheKeyStaysUsable(t *testing.T) {
	c := coalescer[int]{time: time.Minute}
	inside, release := make(chan struct{}), make(chan struct{})
	first := make(chan struct{})
	go func() {
		defer close(first)
		_, _ = c.do(t.Context(), "k", func(context.Context) int { close(inside); <-release; return 1 })
	}()
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.do(ctx, "k", func(context.Context) int { return 2 }); !errors.Is(err, context.Canceled) {
		t.Errorf("want the context's error, got %v", err)
	}
	close(release)
	<-first
	got, err := c.do(t.Context(), "k", func(context.Context) int { return 3 })
	if got != 3 || err != nil {
		t.Errorf("the key is stuck: got %d, %v", got, err)
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
