package queue_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/deploy/local/eventing/queue"
)

// recorder notes what a handler saw.
type recorder struct {
	mu            sync.Mutex
	seen          []string
	inFlight, max int
}

func (r *recorder) enter(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, what)
	r.inFlight++
	r.max = max(r.max, r.inFlight)
}

func (r *recorder) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight--
}

func put(t *testing.T, q *queue.Queue[string], key, item string) {
	t.Helper()
	if !queue.Put([]queue.Offer[string]{{Queue: q, Key: key, Item: item}}) {
		t.Fatalf("the queue refused item %q of key %q", item, key)
	}
}

func TestItemsOfOneKeyAreHandledOneAtATimeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		q := queue.New(100, 10, func(_ context.Context, item string, _ int) queue.Result {
			r.enter(item)
			defer r.leave()
			time.Sleep(time.Second)
			return queue.Result{}
		})
		var want []string
		for i := range 20 {
			item := fmt.Sprint(i)
			want = append(want, item)
			put(t, q, "key", item)
		}
		if left := q.Stop(t.Context()); left != 0 {
			t.Errorf("%d items were given up", left)
		}
		if diff := cmp.Diff(want, r.seen); diff != "" {
			t.Errorf("wrong order (-want +got):\n%s", diff)
		}
		if r.max != 1 {
			t.Errorf("%d items of one key were in flight at once", r.max)
		}
	})
}

func TestDifferentKeysRunSideBySideUpToTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		q := queue.New(100, 4, func(_ context.Context, item string, _ int) queue.Result {
			r.enter(item)
			defer r.leave()
			time.Sleep(time.Second)
			return queue.Result{}
		})
		start := time.Now()
		for i := range 20 {
			put(t, q, fmt.Sprint(i), "")
		}
		q.Stop(t.Context())
		if r.max != 4 {
			t.Errorf("%d items were in flight at once, want 4", r.max)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("20 items of one second took %s at 4 a time", took)
		}
	})
}

func TestRaisingTheLimitStartsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		q := queue.New(100, 1, func(_ context.Context, item string, _ int) queue.Result {
			r.enter(item)
			defer r.leave()
			time.Sleep(time.Second)
			return queue.Result{}
		})
		for i := range 6 {
			put(t, q, fmt.Sprint(i), "")
		}
		q.SetLimit(6)
		synctest.Wait()
		if r.max != 6 {
			t.Errorf("%d items were in flight at once, want 6", r.max)
		}
		q.Stop(t.Context())
	})
}

func TestAWaitingRetryHoldsBackOnlyItsOwnKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		done := map[string]time.Duration{}
		q := queue.New(100, 1, func(_ context.Context, item string, try int) queue.Result {
			if item == "broken" && try < 4 {
				return queue.Result{Again: true, After: time.Second << (try - 1)}
			}
			mu.Lock()
			defer mu.Unlock()
			done[item] = time.Since(start)
			return queue.Result{}
		})
		put(t, q, "a", "broken")
		put(t, q, "a", "behind it")
		put(t, q, "b", "other")
		q.Stop(t.Context())
		want := map[string]time.Duration{"other": 0, "broken": 7 * time.Second, "behind it": 7 * time.Second}
		if diff := cmp.Diff(want, done); diff != "" {
			t.Errorf("wrong times (-want +got):\n%s", diff)
		}
	})
}

func TestFinallyHoldsBackItsKeyButNoPlaceOfTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var order []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, fmt.Sprintf("%s at %s", what, time.Since(start)))
		}
		q := queue.New(100, 1, func(_ context.Context, item string, _ int) queue.Result {
			note(item)
			if item != "dead" {
				return queue.Result{}
			}
			return queue.Result{Finally: func(context.Context) {
				time.Sleep(time.Second)
				note("buried")
			}}
		})
		put(t, q, "a", "dead")
		put(t, q, "a", "next of a")
		put(t, q, "b", "first of b")
		q.Stop(t.Context())
		slices.Sort(order)
		want := []string{"buried at 1s", "dead at 0s", "first of b at 0s", "next of a at 1s"}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("wrong order (-want +got):\n%s", diff)
		}
	})
}

func TestAFullQueueRefusesAndThenNoQueueTakesTheEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		wait := func(context.Context, string, int) queue.Result {
			<-release
			return queue.Result{}
		}
		roomy, tight := queue.New(10, 1, wait), queue.New(2, 1, wait)
		both := func() bool {
			return queue.Put([]queue.Offer[string]{
				{Queue: roomy, Key: "k"}, {Queue: tight, Key: "k"},
			})
		}
		for range 2 {
			if !both() {
				t.Fatal("refused although both queues had room")
			}
		}
		if both() {
			t.Error("accepted although one queue was full")
		}
		if roomy.Len() != 2 || tight.Len() != 2 {
			t.Errorf("the queues hold %d and %d items, want 2 and 2", roomy.Len(), tight.Len())
		}
		close(release)
		synctest.Wait()
		if !both() {
			t.Error("refused although both queues had become empty")
		}
		roomy.Stop(t.Context())
		tight.Stop(t.Context())
	})
}

func TestStopGivesUpWhatDoesNotEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(10, 1, func(ctx context.Context, item string, _ int) queue.Result {
			if item == "again" {
				return queue.Result{Again: true, After: time.Hour}
			}
			<-ctx.Done()
			return queue.Result{}
		})
		put(t, q, "a", "again")
		put(t, q, "b", "hangs")
		put(t, q, "b", "never tried")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if left := q.Stop(ctx); left != 3 {
			t.Errorf("%d items were given up, want 3", left)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("stopping took %s, want the 5s it was given", took)
		}
		if queue.Put([]queue.Offer[string]{{Queue: q, Key: "c"}}) {
			t.Error("a stopped queue took an item")
		}
	})
}
