package clusters

import (
	"io"
	"net"
	"sync"
	"testing"
)

// way is the way to a server: clients that are given its address can be cut off
// from the server and let back.
type way struct {
	t       *testing.T
	address string
	server  string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	stalled  bool
	wait     sync.WaitGroup
}

func newWay(t *testing.T, server string) *way {
	t.Helper()
	w := &way{t: t, address: "127.0.0.1:0", server: server, conns: map[net.Conn]bool{}}
	w.open()
	t.Cleanup(func() { w.cut(); w.wait.Wait() })
	return w
}

// open lets clients through, at the same address each time.
func (w *way) open() {
	w.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.listener, w.address, w.stalled = listener, listener.Addr().String(), false
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

// cut ends all connections and refuses new ones.
func (w *way) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.listener.Close()
	for conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = map[net.Conn]bool{}
}

// stall ends all connections and lets new ones wait for an answer forever.
func (w *way) stall() {
	w.cut()
	w.open()
	w.mu.Lock()
	w.stalled = true
	w.mu.Unlock()
}

func (w *way) keep(conn net.Conn) (stalled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[conn] = true
	return w.stalled
}

func (w *way) pass(client net.Conn) {
	if w.keep(client) {
		return
	}
	server, err := (&net.Dialer{}).DialContext(w.t.Context(), "tcp", w.server)
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
