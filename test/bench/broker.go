package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// deliveries is how many events are on their way at once: what one process of the
	// function takes.
	deliveries = 10
	// silence is how long no event must come or go before all counts as settled.
	silence = 2 * time.Second
)

// broker takes events and hands them to one function, as an asynchronous broker and a
// Trigger do: it answers at once, and delivers again what the function could not take.
type broker struct {
	url    string
	server *http.Server
	client *http.Client
	to     string
	slots  chan struct{}

	mu                            sync.Mutex
	taken, pending, failed, given int
	strange                       int
	moved                         time.Time
	clusters                      map[string]bool
}

func newBroker(to string) (*broker, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed by stop
	if err != nil {
		return nil, err
	}
	b := &broker{
		url: "http://" + listener.Addr().String(), to: to, slots: make(chan struct{}, deliveries), moved: time.Now(),
		client: &http.Client{Timeout: 30 * time.Second}, clusters: map[string]bool{},
	}
	b.server = &http.Server{Handler: http.HandlerFunc(b.take), ReadHeaderTimeout: time.Second}
	go func() { _ = b.server.Serve(listener) }()
	return b, nil
}

func (b *broker) stop() { _ = b.server.Close() }

// take accepts an event. The function is woken by all that comes here but by kinds of
// other functions.
func (b *broker) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	b.moved = time.Now()
	if strange(r.Header) {
		b.strange++
		b.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
		return
	}
	b.taken++
	b.pending++
	b.mu.Unlock()
	header := r.Header.Clone()
	go b.deliver(header, body)
	w.WriteHeader(http.StatusAccepted)
}

// strange tells of an event of a Service of another cluster that the same API server
// plays. In reality there is none.
func strange(header http.Header) bool {
	tenant, _, remote := strings.Cut(header.Get("Ce-Cluster"), "/")
	return remote && header.Get("Ce-Kind") == "Service" && header.Get("Ce-Namespace") != tenant
}

func (b *broker) deliver(header http.Header, body []byte) {
	code, pause := 0, 500*time.Millisecond
	for attempt := range 6 {
		if attempt > 0 {
			time.Sleep(pause)
			pause *= 2
		}
		b.slots <- struct{}{}
		code = b.send(header, body)
		<-b.slots
		if code/100 == 2 || code == http.StatusBadRequest {
			break
		}
		b.mu.Lock()
		b.failed++
		b.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending--
	b.moved = time.Now()
	if code/100 != 2 {
		b.given++
	}
	if code/100 == 2 && header.Get("Ce-Type") == "dev.slipway.cluster.connected" {
		b.clusters[header.Get("Ce-Cluster")] = true
	}
}

func (b *broker) send(header http.Header, body []byte) int {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, b.to, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header = header
	resp, err := b.client.Do(req)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// connected is of how many clusters the function has heard that they are there.
func (b *broker) connected() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.clusters)
}

// quiet waits until no event is on its way and none has come for a while.
func (b *broker) quiet(ctx context.Context) error {
	if err := until(ctx, func() (bool, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.pending == 0 && time.Since(b.moved) > silence, nil
	}); err != nil {
		return fmt.Errorf("events do not end: %w", err)
	}
	return nil
}

// last is when the last event was done with.
func (b *broker) last() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.moved
}

func (b *broker) counts() (taken, strange, again, given int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken, b.strange, b.failed, b.given
}
