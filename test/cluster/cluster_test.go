package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/test/cluster"
	"github.com/slipway-dev/slipway/test/node"
)

const (
	// asked is the variable that lets these tests run, required its value that lets them
	// fail where they cannot.
	asked    = "SLIPWAY_E2E"
	required = "required"
	patience = 4 * time.Minute
	poll     = 50 * time.Millisecond
)

// fixture is the one cluster of all tests.
type fixture struct {
	*cluster.Cluster
	t *testing.T
}

func (f *fixture) with(t *testing.T) *fixture { return &fixture{f.Cluster, t} }

func begin(t *testing.T) *fixture {
	t.Helper()
	want := os.Getenv(asked)
	if want == "" {
		t.Skipf("a real cluster was not asked for: make e2e, or set %s", asked)
	}
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Probe(t.Context(), cluster.State(root)); err != nil {
		if want == required {
			t.Fatalf("local node: %v", err)
		}
		t.Skipf("local node skipped: %v", err)
	}
	c, err := cluster.Up(t.Context(), root, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	// Whoever interrupts a test wants it cleaned up all the same.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}()
	f := &fixture{c, t}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Look(context.Background()), "\n", c.Tails())
		}
	})
	return f
}

func (f *fixture) kubectl(args ...string) string {
	f.t.Helper()
	out, err := f.Kubectl(f.t.Context(), args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// apply applies a manifest that is given as text.
func (f *fixture) apply(manifest string) {
	f.t.Helper()
	// Not below the test's own folder: its name may hold commas, at which kubectl splits.
	file := filepath.Join(cluster.State(f.Root), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.kubectl("apply", "-f", file)
}

// eventually waits until check says nothing, and returns how long that took.
func (f *fixture) eventually(what string, check func() string) time.Duration {
	f.t.Helper()
	began := time.Now()
	ticker, deadline := time.NewTicker(poll), time.NewTimer(patience)
	defer ticker.Stop()
	defer deadline.Stop()
	for {
		problem := check()
		if problem == "" {
			return time.Since(began)
		}
		if died := f.Died(); len(died) > 0 {
			f.t.Fatalf("waited for %s, but %v ended", what, died)
		}
		select {
		case <-ticker.C:
		case <-f.t.Context().Done():
			f.t.Fatal(f.t.Context().Err())
		case <-deadline.C:
			f.t.Fatalf("waited in vain for %s: %s", what, problem)
		}
	}
}

// atZero waits until no function has a pod.
func (f *fixture) atZero() time.Duration {
	f.t.Helper()
	return f.eventually("all functions at zero", func() string {
		pods, err := f.Pods(f.t.Context())
		if err != nil {
			return err.Error()
		}
		return strings.Join(pods, " ")
	})
}

const machineKind = "machines.vitistack.io"

// machineResource is the same for the client.
var machineResource = schema.GroupVersionResource{Group: "vitistack.io", Version: "v1alpha1", Resource: "machines"}

// notReady are the objects of a kind that are not Ready; there has to be one at least.
func (f *fixture) notReady(resource schema.GroupVersionResource) string {
	list, err := f.Client.Resource(resource).List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	if len(list.Items) == 0 {
		return "there is none"
	}
	var waiting []string
	for _, obj := range list.Items {
		if !ready(obj) {
			waiting = append(waiting, obj.GetName())
		}
	}
	return strings.Join(waiting, " ")
}

// ready tells whether the condition Ready is True; of an object that has no such
// condition, whether all are that it has.
func ready(obj unstructured.Unstructured) bool {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	all := map[any]bool{}
	for _, item := range list {
		if condition, ok := item.(map[string]any); ok {
			all[condition["type"]] = condition["status"] == "True"
		}
	}
	if is, found := all["Ready"]; found {
		return is
	}
	return len(all) > 0 && !slices.Contains(slices.Collect(maps.Values(all)), false)
}

// machinesReady waits until every Machine is Ready and has exactly one VirtualMachine.
func (f *fixture) machinesReady() time.Duration {
	f.t.Helper()
	took := f.eventually("all Machines Ready", func() string { return f.notReady(machineResource) })
	machines := strings.Fields(f.kubectl("get", machineKind, "-A", "-o", "name"))
	virtual := strings.Fields(f.kubectl("get", "virtualmachines.kubevirt.io", "-A", "-o", "name"))
	if len(machines) != len(virtual) {
		f.t.Errorf("%d Machines have %d VirtualMachines: %v", len(machines), len(virtual), virtual)
	}
	return took
}

func machine(name string) string {
	return fmt.Sprintf("apiVersion: vitistack.io/v1alpha1\nkind: Machine\nmetadata: {name: %s, namespace: default}\nspec: {template: small}\n---\n", name)
}

func machines(prefix string, n int) string {
	var all bytes.Buffer
	for i := range n {
		_, _ = io.WriteString(&all, machine(fmt.Sprintf("%s-%02d", prefix, i)))
	}
	return all.String()
}

// nothingForbidden fails for every request that Slipway's own accounts were refused.
func (f *fixture) nothingForbidden() {
	f.t.Helper()
	answers, err := f.Answers(time.Time{})
	if err != nil {
		f.t.Fatal(err)
	}
	if len(answers) == 0 {
		f.t.Error("the audit log is empty: nobody did anything, or it shows nothing")
	}
	seen := map[string]bool{}
	for _, a := range answers {
		if text := a.String(); a.ResponseStatus.Code == 403 && !seen[text] {
			seen[text] = true
			f.t.Errorf("forbidden: %s", text)
		}
	}
}
