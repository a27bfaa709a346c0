package suite

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Way is the way to a server: clients that are given its address can be cut off
// from the server and let back.
type Way struct {
	// Address is where clients go.
	Address string
	tb      testing.TB
	server  string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	stalled  bool
	wait     sync.WaitGroup
}

// NewWay makes the way to a server, given as host and port, and opens it.
func NewWay(t testing.TB, server string) *Way {
	t.Helper()
	w := &Way{tb: t, Address: "127.0.0.1:0", server: server, conns: map[net.Conn]bool{}}
	w.Open()
	t.Cleanup(func() { w.Cut(); w.wait.Wait() })
	return w
}

// Open lets clients through, at the same address each time.
func (w *Way) Open() {
	w.tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(w.tb.Context(), "tcp", w.Address)
	if err != nil {
		w.tb.Fatal(err)
	}
	w.mu.Lock()
	w.listener, w.Address, w.stalled = listener, listener.Addr().String(), false
	w.mu.Unlock()
	w.wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.pass(conn)
		}
	})
}

// Cut ends all connections and refuses new ones.
func (w *Way) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.listener.Close()
	for conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = map[net.Conn]bool{}
}

// Stall ends all connections and lets new ones wait for an answer forever.
func (w *Way) Stall() {
	w.Cut()
	w.Open()
	w.mu.Lock()
	w.stalled = true
	w.mu.Unlock()
}

func (w *Way) keep(conn net.Conn) (stalled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[conn] = true
	return w.stalled
}

func (w *Way) pass(client net.Conn) {
	if w.keep(client) {
		return
	}
	server, err := (&net.Dialer{}).DialContext(w.tb.Context(), "tcp", w.server)
	if err != nil {
		_ = client.Close()
		return
	}
	w.keep(server)
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		w.wait.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].Close()
		})
	}
}
