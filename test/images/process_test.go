package images

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a program may take to be ready.
const patience = 60 * time.Second

// process is a program out of an image, as a container would run it.
type process struct {
	t   *testing.T
	url string
	mu  sync.Mutex
	log bytes.Buffer
}

// Write implements io.Writer.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(text)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// start runs the program until the test ends, with nothing in its environment but
// what is given.
func start(t *testing.T, program string, env ...string) *process {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, url: "http://" + address}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, program) //nolint:gosec // what this test built
	cmd.Env = append(env, "LISTEN_ADDRESS="+address, "HEALTH_LISTEN_ADDRESS=127.0.0.1:0")
	cmd.Stdout, cmd.Stderr = p, p
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		stop()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { stop(); <-ended })
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if status, _ := p.ask(http.MethodGet, "/health/readiness", nil, ""); status == http.StatusOK {
			return p
		}
		select {
		case <-ended:
			t.Fatalf("%s ended: %s", program, p.said())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready: %s", program, p.said())
		}
	}
}

// ask sends a request; no answer is status 0.
func (p *process) ask(method, path string, header http.Header, body string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(p.t.Context()), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// send sends a CloudEvent in binary mode.
func (p *process) send(attributes map[string]string, header ...string) (int, string) {
	p.t.Helper()
	h := http.Header{}
	for name, value := range map[string]string{"specversion": "1.0", "id": "1", "source": "test"} {
		h.Set("Ce-"+name, value)
	}
	for name, value := range attributes {
		h.Set("Ce-"+name, value)
	}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	h.Set("Content-Type", "application/json")
	return p.ask(http.MethodPost, "/", h, "{}")
}

// must sends an event and wants an answer.
func (p *process) must(want int, attributes map[string]string, header ...string) {
	p.t.Helper()
	if got, body := p.send(attributes, header...); got != want {
		p.t.Errorf("event %v is answered %d %s, want %d\n%s", attributes, got, body, want, p.said())
	}
}

func resync(function string) map[string]string {
	return map[string]string{"type": "dev.knative.sources.ping", "function": function}
}

func added(apiVersion, kind, namespace, name string) map[string]string {
	return map[string]string{
		"type": "dev.knative.apiserver.ref.add", "apiversion": apiVersion, "kind": kind, "namespace": namespace, "name": name,
		"subject": fmt.Sprintf("/apis/%s/namespaces/%s/%s/%s", apiVersion, namespace, strings.ToLower(kind)+"s", name),
	}
}
