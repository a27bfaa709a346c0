package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Dial opens a connection in the node's network. A socket stays in the network that it
// was made in, so only the making happens over there.
func (n *Node) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		// The thread is not given back: it ends with this goroutine, and with it its stay.
		runtime.LockOSThread()
		conn, err := n.dialInside(ctx, network, address)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

func (n *Node) dialInside(ctx context.Context, network, address string) (net.Conn, error) {
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", n.init))
	if err != nil {
		return nil, fmt.Errorf("cannot enter the node's network: %w", err)
	}
	defer func() { _ = space.Close() }()
	if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil { //nolint:gosec // a file descriptor is small
		return nil, fmt.Errorf("cannot enter the node's network: %w", err)
	}
	// One address that is no name: the dialer makes the socket on this very thread.
	if host, _, err := net.SplitHostPort(address); err != nil || net.ParseIP(host) == nil {
		return nil, fmt.Errorf("cannot connect to %q in the node: it has to be an address with a port", address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}
