package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// RestartAPIServer kills the API server as a crash does, leaves it away for a while, and
// starts it again. It must not run beside Stop.
func (c *Cluster) RestartAPIServer(ctx context.Context, away time.Duration) error {
	c.mu.Lock()
	server := c.server
	c.replaced = server.process
	c.mu.Unlock()
	server.process.stop(0)
	timer := time.NewTimer(away)
	defer timer.Stop()
	select {
	case <-timer.C:
		return c.StartAPIServer(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Outlive lets the cluster go on when its API server, and nothing else of it, ends by
// itself: lost is told why, at once, and [Cluster.StartAPIServer] brings it back.
func (c *Cluster) Outlive(lost func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = lost
}

// StartAPIServer starts the API server that has ended, at the same address, on what is in
// etcd. It must not run beside Stop.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	address, err := url.Parse(c.URL)
	if err != nil {
		return fmt.Errorf("cannot restart the API server of cluster %q: %w", c.Name, err)
	}
	opts := c.opts
	if opts.Port, err = strconv.Atoi(address.Port()); err != nil {
		return fmt.Errorf("cannot restart the API server of cluster %q: %w", c.Name, err)
	}
	// Whoever connected meanwhile may hold the port for a moment.
	var server *apiServer
	for try := 0; ; try++ {
		server, err = startAPIServer(ctx, opts, c.EtcdURL, c.pki)
		var busy *BusyPortError
		if !errors.As(err, &busy) || try == attempts {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("cannot restart the API server of cluster %q: %w", c.Name, err)
	}
	c.mu.Lock()
	c.server = server
	c.mu.Unlock()
	c.observe(server.process)
	return nil
}
