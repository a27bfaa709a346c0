package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/shared/serve"
)

const (
	// starts is how often the process is started.
	starts = 10
	// loaded is how many events a process gets before it is weighed again.
	loaded = 50
)

// weighed is what a function's process costs. Times are milliseconds, sizes bytes.
type weighed struct {
	BinaryBytes    int64  `json:"binaryBytes"`
	StartMs        spread `json:"startToReadyMs"`
	FirstMs        spread `json:"startToFirstDecisionMs"`
	ResidentIdle   int64  `json:"residentIdleBytes"`
	ResidentLoaded int64  `json:"residentLoadedBytes"`
}

// served is a function's process as Knative would run it.
type served struct {
	cmd *exec.Cmd
	url string
}

// weigh measures start and memory of the function's binary, with objects that compare has
// left, and some that are new.
func (x *subject) weigh(ctx context.Context) (weighed, error) {
	var r weighed
	binary := filepath.Join(x.place.root, build.DefaultBin, x.Function)
	info, err := os.Stat(binary)
	if err != nil {
		return r, fmt.Errorf("cannot find the function's binary, run make build: %w", err)
	}
	r.BinaryBytes = info.Size()
	var ready, first []time.Duration
	for i := range starts {
		p, took, err := launch(ctx, binary, x.place.kube.Kubeconfig, x.limits()...)
		if err != nil {
			return r, err
		}
		ready = append(ready, took)
		idle, err := resident(p.cmd.Process.Pid)
		if err != nil {
			return r, err
		}
		r.ResidentIdle = max(r.ResidentIdle, idle)
		started := time.Now()
		err = p.send(ctx, x.event(pattern))
		first = append(first, took+time.Since(started))
		if i == starts-1 && err == nil {
			r.ResidentLoaded, err = x.load(ctx, p)
		}
		p.stop()
		if err != nil {
			return r, err
		}
	}
	r.StartMs, r.FirstMs = spreadOf(ready), spreadOf(first)
	return r, nil
}

// load gives a process something to do and weighs it.
func (x *subject) load(ctx context.Context, p *served) (int64, error) {
	count := loaded
	if x.Most > 0 {
		count = min(count, x.Most)
	}
	if err := each(count, parallel, func(i int) error {
		name := pattern
		if !x.Single {
			name = fmt.Sprintf("load-%04d", i)
			if _, err := x.prepare(ctx, name); err != nil {
				return err
			}
		}
		return p.send(ctx, x.event(name))
	}); err != nil {
		return 0, err
	}
	return resident(p.cmd.Process.Pid)
}

// limits are the settings of a process that is kept to what its container may take.
func (x *subject) limits() []string {
	env := []string{fmt.Sprintf("GOMEMLIMIT=%d", serve.MemoryTarget(x.host.Spec().MemoryLimit()))}
	for name, value := range settings {
		env = append(env, name+"="+value)
	}
	return env
}

// launch starts the process and waits until it says that it is ready.
func launch(ctx context.Context, binary, kubeconfig string, env ...string) (*served, time.Duration, error) {
	address, err := free()
	if err != nil {
		return nil, 0, err
	}
	health, err := free()
	if err != nil {
		return nil, 0, err
	}
	p := &served{cmd: exec.CommandContext(ctx, binary), url: "http://" + address}
	p.cmd.Env = append(append(os.Environ(), "KUBECONFIG="+kubeconfig, "LISTEN_ADDRESS="+address, "HEALTH_LISTEN_ADDRESS="+health), env...)
	started := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, 0, err
	}
	poll := time.NewTicker(200 * time.Microsecond)
	defer poll.Stop()
	for deadline := started.Add(10 * time.Second); time.Now().Before(deadline); <-poll.C {
		resp, err := http.Get(p.url + "/health/readiness") //nolint:noctx // bounded by the loop
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return p, time.Since(started), nil
		}
	}
	p.stop()
	return nil, 0, errors.New("the process was not ready within 10 s")
}

func free() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		return "", err
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

func (p *served) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait()
}

// send sends an event, again while the function wants it again.
func (p *served) send(ctx context.Context, ce cloudevents.Event) error {
	for range maxRounds {
		code, text, err := p.post(ctx, ce)
		if err != nil {
			return err
		}
		if code == http.StatusNoContent {
			return nil
		}
		if code != http.StatusServiceUnavailable {
			return fmt.Errorf("the function answered %d: %s", code, text)
		}
	}
	return fmt.Errorf("the function could not take care of %s within %d events", ce.ID(), maxRounds)
}

func (p *served) post(ctx context.Context, ce cloudevents.Event) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, nil)
	if err != nil {
		return 0, nil, err
	}
	for key, value := range map[string]string{"Ce-Specversion": "1.0", "Ce-Id": ce.ID(), "Ce-Source": "bench", "Ce-Type": ce.Type()} {
		req.Header.Set(key, value)
	}
	for key, value := range ce.Extensions() {
		req.Header.Set("Ce-"+key, fmt.Sprint(value))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

// resident reads the resident memory of a process, in bytes.
func resident(pid int) (int64, error) { return memory(pid, "VmRSS:") }

// memory reads one field of a process's status, in bytes.
func memory(pid int, field string) (int64, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		if value, ok := strings.CutPrefix(scanner.Text(), field); ok {
			kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("cannot find %s", field)
}
