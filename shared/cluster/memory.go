package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

type memoryKey struct{}

// memory is what one call has learned about clusters that do not answer.
type memory struct {
	// call is the call itself: what its own end breaks off is no cluster's
	// fault.
	call context.Context //nolint:containedctx // it is compared with, not used

	mu   sync.Mutex
	dead map[*remembering]error
	// first are the requests that went ahead of all others on their connection;
	// closed when what came of them is known.
	first map[*remembering]chan struct{}
}

// takeOff waits for the request that is first on a connection in this call, unless
// this is the one: then landed tells the others that it was answered or failed.
func (m *memory) takeOff(ctx context.Context, t *remembering) (landed func(), err error) {
	m.mu.Lock()
	first, flying := m.first[t]
	if !flying {
		first = make(chan struct{})
		m.first[t] = first
	}
	m.mu.Unlock()
	if !flying {
		return func() { close(first) }, nil
	}
	select {
	case <-first:
		return func() {}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("cannot ask the cluster: another request waits for its answer: %w", ctx.Err())
	}
}

// reserve is the end of a call's time that remote clusters do not get: what came of
// them has to be told on the management cluster. One that is so slow that it would
// use up everything is waited for like one that is down.
const reserve = 2 * time.Second

// bound keeps a request out of the reserve. One that outlives the call, to clean up
// after it, has a time of its own.
func (m *memory) bound(req *http.Request) (*http.Request, context.CancelFunc) {
	ends, limited := m.call.Deadline()
	own, has := req.Context().Deadline()
	if !limited || !has || own.After(ends) {
		return req, func() {}
	}
	ctx, cancel := context.WithDeadline(req.Context(), ends.Add(-reserve))
	return req.WithContext(ctx), cancel
}

// ending is the body of an answer, whose request's time ends with it.
type ending struct {
	io.ReadCloser
	end context.CancelFunc
}

// Close ends it.
func (e ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

func (m *memory) recall(t *remembering) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead[t]
}

// note remembers a connection that failed, was refused for its credentials, or
// whose server, or what stands before it, is out of order.
func (m *memory) note(ctx context.Context, t *remembering, resp *http.Response, err error) {
	switch {
	case m.call.Err() != nil || errors.Is(ctx.Err(), context.Canceled):
		return
	case err != nil:
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusBadGateway,
		resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusGatewayTimeout:
		err = fmt.Errorf("the API server answered %d %s to a request just before", resp.StatusCode, http.StatusText(resp.StatusCode))
	default:
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead[t] == nil {
		m.dead[t] = err
	}
}
