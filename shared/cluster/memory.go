package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

type memoryKey struct{}

// memory is what one call has learned about clusters that do not answer.
type memory struct {
	// call is the call itself: what its own end breaks off is no cluster's
	// fault.
	call context.Context //nolint:containedctx // it is compared with, not used

	mu   sync.Mutex
	dead map[*remembering]error
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
