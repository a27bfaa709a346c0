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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
)

// starts is how often the process is started.
const starts = 20

// served is a function's process as Knative would run it.
type served struct {
	cmd *exec.Cmd
	url string
}

// process measures start and memory of the function's binary.
func process(ctx context.Context, root string, r *report) error {
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c, err := machineSubject().cluster(ctx, root, dir)
	if err != nil {
		return err
	}
	defer c.Stop()
	binary := filepath.Join(root, build.DefaultBin, r.Function)
	var durations []time.Duration
	for range starts {
		p, took, err := launch(ctx, binary, c.Kubeconfig)
		if err != nil {
			return err
		}
		durations = append(durations, took)
		if r.ResidentIdle, err = resident(p.cmd.Process.Pid); err != nil {
			return err
		}
		p.stop()
	}
	r.StartMs = spreadOf(durations)

	p, _, err := launch(ctx, binary, c.Kubeconfig)
	if err != nil {
		return err
	}
	defer p.stop()
	machines := make([]*unstructured.Unstructured, objects)
	for i := range machines {
		machines[i] = machine(fmt.Sprintf("load-%04d", i))
	}
	if err := kube.Apply(ctx, c.Config, machines...); err != nil {
		return err
	}
	for _, m := range machines {
		if err := p.send(ctx, m.GetName()); err != nil {
			return err
		}
	}
	r.ResidentLoaded, err = resident(p.cmd.Process.Pid)
	return err
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

func (p *served) send(ctx context.Context, name string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, nil)
	if err != nil {
		return err
	}
	for key, value := range map[string]string{
		"Ce-Specversion": "1.0", "Ce-Id": name, "Ce-Source": "bench", "Ce-Type": "dev.knative.apiserver.ref.add",
		"Ce-Apiversion": "vitistack.io/v1alpha1", "Ce-Kind": "Machine", "Ce-Namespace": "default", "Ce-Name": name,
	} {
		req.Header.Set(key, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("the function answered %s: %s", resp.Status, text)
	}
	return nil
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
