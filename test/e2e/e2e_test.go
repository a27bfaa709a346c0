// Package e2e drives the whole stack as a person does: kubectl apply, the real
// source, broker and trigger, the function's process from zero, and what comes
// of it.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stack"
)

// patience bounds every wait; nothing here is expected to take a tenth of it.
const patience = 90 * time.Second

// machineKind is what kubectl takes for a Machine: the plain word is Cluster API's.
const machineKind = "machines.vitistack.io"

// transcript keeps what the stack prints.
type transcript struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

type fixture struct {
	*stack.Stack
	t    *testing.T
	root string
	out  *transcript
}

func begin(t *testing.T) *fixture { return beginWith(t, stack.Options{}) }

// beginWith starts a stack with further options.
func beginWith(t *testing.T, opts stack.Options) *fixture {
	t.Helper()
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, root: root, out: &transcript{}}
	opts.Root, opts.Data, opts.Idle, opts.Out, opts.Progress = root, t.TempDir(), 3*time.Second, f.out, f.out
	f.Stack, err = stack.Start(t.Context(), opts)
	if err != nil {
		t.Fatalf("%v\n%s", err, f.out)
	}
	t.Cleanup(f.Stop)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.out.String())
		}
	})
	return f
}

func (f *fixture) kubectl(args ...string) string {
	f.t.Helper()
	out, err := f.Kubectl(context.WithoutCancel(f.t.Context()), args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(out)
}

// eventually waits until check says nothing.
func (f *fixture) eventually(what string, check func() string) {
	f.t.Helper()
	tick, deadline := time.NewTicker(50*time.Millisecond), time.NewTimer(patience)
	defer tick.Stop()
	defer deadline.Stop()
	for {
		problem := check()
		if problem == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			f.t.Fatalf("waited in vain for %s: %s", what, problem)
		}
	}
}

// status is a field of a Machine's status.
func (f *fixture) machine(name, jsonPath string) string {
	f.t.Helper()
	return f.kubectl("get", machineKind, name, "--ignore-not-found", "-o", "jsonpath={"+jsonPath+"}")
}

func TestAMachineFromKubectlApplyToRunningAndAway(t *testing.T) {
	f := begin(t)
	f.kubectl("apply", "-k", filepath.Join(f.root, "deploy/samples/vitistack"))
	samples, err := kube.ReadFiles(filepath.Join(f.root, "deploy/samples/vitistack"))
	if err != nil {
		t.Fatal(err)
	}
	var machines []*unstructured.Unstructured
	for _, obj := range samples {
		if obj.GetKind() == "Machine" {
			obj.SetNamespace("default")
			machines = append(machines, obj)
		}
	}
	if len(machines) < 4 {
		t.Fatalf("only %d sample Machines", len(machines))
	}
	if err := f.WaitReady(t.Context(), patience, machines...); err != nil {
		t.Fatal(err)
	}
	t.Run("the VirtualMachine, its claim and the status are there", func(t *testing.T) {
		if got := f.machine("basic-vm", ".status.phase"); got != "Running" {
			t.Errorf("phase %q", got)
		}
		for _, field := range []string{".status.vmName", ".status.vmiName", ".status.nodeName", ".status.ipAddresses[0]"} {
			if f.machine("basic-vm", field) == "" {
				t.Errorf("%s is empty", field)
			}
		}
		if got := f.kubectl("get", "pvc", "basic-vm-root", "-o", "jsonpath={.status.phase} {.spec.resources.requests.storage}"); got != "Bound 40Gi" {
			t.Errorf("claim: %q", got)
		}
	})
	t.Run("powering off by the Machine's spec stops the VM and shows", func(_ *testing.T) {
		f.kubectl("patch", machineKind, "basic-vm", "--type", "merge", "-p", `{"spec":{"running":false}}`)
		f.eventually("phase Stopped", func() string {
			if got := f.machine("basic-vm", ".status.phase"); got != "Stopped" {
				return "phase is " + got
			}
			return ""
		})
	})
	t.Run("an unknown template is a condition, and its neighbours are unharmed", func(_ *testing.T) {
		f.apply(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: odd, namespace: default}, spec: {template: huge}}`)
		f.eventually("condition TemplateNotFound", func() string {
			return differs("TemplateNotFound", f.machine("odd", `.status.conditions[?(@.type=="Ready")].reason`))
		})
	})
	t.Run("a deleted Machine takes everything with it", func(t *testing.T) {
		f.kubectl("delete", machineKind, "basic-vm", "--wait=true", "--timeout=60s")
		for _, kind := range []string{"virtualmachines", "virtualmachineinstances", "persistentvolumeclaims"} {
			if left := f.kubectl("get", kind, "-l", "vitistack.io/machine=basic-vm", "-o", "name"); left != "" {
				t.Errorf("left behind: %s", left)
			}
		}
	})
	t.Run("an event that no function can take is kept in the archive", func(_ *testing.T) {
		f.post(map[string]string{
			"Ce-Specversion": "1.0", "Ce-Id": "broken-resync", "Ce-Type": "dev.slipway.resync", "Ce-Source": "test",
			"Ce-Function": "machine-vm", "Content-Type": "application/json",
		}, `{"page":`)
		f.eventually("the dead letter", func() string {
			files, _ := filepath.Glob(filepath.Join(f.Cluster.Dir, "event-archive", "*.json"))
			for _, file := range files {
				raw, _ := os.ReadFile(file)
				var letter map[string]any
				if json.Unmarshal(raw, &letter) == nil && letter["id"] == "broken-resync" {
					return differs("400", fmt.Sprint(letter["knativeerrorcode"]))
				}
			}
			return fmt.Sprintf("not among %d files", len(files))
		})
	})
	t.Run("an idle function's process is stopped, and the next event starts one", func(_ *testing.T) {
		f.eventually("the process to stop", func() string {
			if !strings.Contains(f.out.String(), "stopped") {
				return "it still runs"
			}
			return ""
		})
		f.apply(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: late, namespace: default}, spec: {template: small}}`)
		f.eventually("phase Running", func() string { return differs("Running", f.machine("late", ".status.phase")) })
	})
}

func differs(want, got string) string {
	if want == got {
		return ""
	}
	return fmt.Sprintf("want %q, got %q", want, got)
}

func (f *fixture) apply(manifest string) {
	f.t.Helper()
	objects, err := kube.Decode(strings.NewReader(manifest))
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.Apply(f.t.Context(), objects...); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) post(headers map[string]string, body string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.Broker, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		f.t.Fatalf("the broker answered %s", resp.Status)
	}
}

// TestMakeRunOnceFailsWhenTheFunctionDoesNotRun shows that the exit code means
// something.
func TestMakeRunOnceFailsWhenTheFunctionDoesNotRun(t *testing.T) {
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "./deploy/local", "--once", "--disable", "machine-vm", "--timeout", "5s")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("it ended with success:\n%s", out)
	}
	if !bytes.Contains(out, []byte("is not Ready")) || !bytes.Contains(out, []byte("Machine default/")) {
		t.Errorf("the reason does not name the Machine:\n%s", out)
	}
}
