package suite

import (
	"errors"
	"flag"
	"net/http"
	"sync"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubetest "github.com/slipway-dev/slipway/test/kube"
)

// ErrBroken is a connection that breaks. Its words are none of those on which
// client-go tries a read again by itself, a second later.
var ErrBroken = errors.New("the connection is broken")

// Answer is what a broken API server says.
func Answer(req *http.Request, code int) *http.Response {
	reason := map[int]metav1.StatusReason{
		http.StatusConflict: metav1.StatusReasonConflict, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
		http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusGone: metav1.StatusReasonExpired,
	}[code]
	return kubetest.Answer(req, code, reason, "injected")
}

// Status is a server that answers every request with a code.
func Status(code int) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) { return Answer(req, code), nil }
}

// Gate holds a copy at its n-th call.
type Gate struct {
	// At is the number of the call, from 1.
	At               int
	reached, release chan struct{}
	once             sync.Once
}

// NewGate makes a gate. Its Tap is for the copy that is to be held.
func NewGate(at int) *Gate {
	return &Gate{At: at, reached: make(chan struct{}), release: make(chan struct{})}
}

// Tap holds the call.
func (g *Gate) Tap(c Call) (*http.Response, error) {
	if c.N == g.At {
		g.once.Do(func() { close(g.reached) })
		<-g.release
	}
	return nil, nil
}

// Begin lets a copy that was run with the gate's Tap handle an event up to the gate.
// Not held: it came to its end before, and finish returns its answer at once. Else
// finish opens the gate and returns the answer at the end.
func (g *Gate) Begin(c *Copy, ce cloudevents.Event) (finish func() int, held bool) {
	done := make(chan int, 1)
	go func() { done <- c.Send(ce) }()
	select {
	case <-g.reached:
		return func() int {
			close(g.release)
			return <-done
		}, true
	case got := <-done:
		return func() int { return got }, false
	}
}

var exhaustive = flag.Bool("exhaustive", false, "walk through every call in every way where usually a part of them has to do: it takes minutes")

// Exhaustive tells that a test shall walk through every call in every way.
func Exhaustive() bool { return *exhaustive }

// Sample is every third of a walk's calls, from 1 to count; which ones, the turn
// decides. An exhaustive walk takes them all.
func Sample(count, turn int) []int {
	var at []int
	for n := 1; n <= count; n++ {
		if *exhaustive || (n+turn)%3 == 0 {
			at = append(at, n)
		}
	}
	return at
}

// atOnce is how many worlds a test plays at the same time: most of the time each
// waits for the API server.
const atOnce = 6

// Each runs a subtest for each item, a few at once, all of them before it returns.
func Each[T any](t *testing.T, items []T, name func(T) string, do func(*testing.T, T)) {
	t.Helper()
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, item := range items {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			t.Run(name(item), func(t *testing.T) { do(t, item) })
		})
	}
	all.Wait()
}
