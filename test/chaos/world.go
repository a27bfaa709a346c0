package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stack"
	"github.com/slipway-dev/slipway/test/subjects"
)

const (
	// sample is the folder of what all subjects of Dockyards need.
	sample = "deploy/samples/dockyards"
	// rest is how long nothing may change before the world counts as at rest, look how
	// often that is looked at, unrest how long it may take.
	rest, look, unrest = 12 * time.Second, 2 * time.Second, 8 * time.Minute
)

var instances = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}

// world is how a life ended.
type world struct {
	// objects are all that functions reconcile or write, without what differs from run
	// to run.
	objects map[string]string
	// late are the objects that a second resync still changed.
	late []string
	// took is from the end of the script to rest, with the first resync.
	took time.Duration
	transcript
	faults *faults
}

// live starts a stack, plays the script, with faults if there are any, and waits for rest.
func live(ctx context.Context, root string, script *script, f *faults) (*world, error) {
	dir, err := os.MkdirTemp("", "slipway-chaos-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	w := &world{faults: f, transcript: transcript{up: map[int]bool{}}}
	s, err := stack.Start(ctx, stack.Options{Root: root, Data: dir, Idle: time.Hour, Out: &w.transcript, Progress: os.Stderr})
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	if err := ground(ctx, root, s, script); err != nil {
		return nil, err
	}
	kubeconfig, err := s.Cluster.AdminKubeconfig()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var struck error
	var wait sync.WaitGroup
	if f != nil {
		wait.Go(func() { struck = f.strike(ctx, s, w.pids) })
	}
	err = script.play(ctx, s.Client, string(kubeconfig))
	wait.Wait()
	if err = errors.Join(err, struck); err != nil {
		return nil, err
	}
	return w, w.settle(ctx, s)
}

// ground makes what has to be there before all subjects.
func ground(ctx context.Context, root string, s *stack.Stack, script *script) error {
	var paths []string
	for _, file := range []string{"platform.yaml", "releases.yaml", "organization.yaml", "status/releases.yaml"} {
		paths = append(paths, filepath.Join(root, sample, file))
	}
	given, err := kube.ReadFiles(paths[:3]...)
	if err != nil {
		return err
	}
	statuses, err := kube.ReadFiles(paths[3])
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, l := range script.lives {
		if known[l.subject.Function] {
			continue
		}
		known[l.subject.Function] = true
		objects, err := l.subject.Ground(root)
		if err != nil {
			return err
		}
		given = append(given, objects...)
	}
	if err := patiently(ctx, func() error {
		_, err := subjects.Put(ctx, s.Client, given...)
		return err
	}); err != nil {
		return err
	}
	return subjects.Patch(ctx, s.Client, statuses...)
}

// settle waits for rest, restarts the machines that ask for it, asks for a resync, waits
// again, keeps the state, and asks once more, which must change nothing.
func (w *world) settle(ctx context.Context, s *stack.Stack) error {
	began := time.Now()
	first, err := settled(ctx, s)
	if err != nil {
		return err
	}
	if err := restart(ctx, s, first); err != nil {
		return err
	}
	if err := s.Resync(ctx); err != nil {
		return err
	}
	before, err := settled(ctx, s)
	if err != nil {
		return err
	}
	w.took = time.Since(began)
	w.objects = normal(before)
	if err := s.Resync(ctx); err != nil {
		return err
	}
	after, err := settled(ctx, s)
	if err != nil {
		return err
	}
	w.late = differing(versions(before), versions(after))
	return nil
}

// restart does what a machine's condition RestartRequired asks a person for: whether a
// change came before the machine booted or after it is history, and what the machine is
// like when it has booted again is not.
func restart(ctx context.Context, s *stack.Stack, objects map[string]*unstructured.Unstructured) error {
	for _, obj := range objects {
		if obj.GetKind() != "VirtualMachine" || !asksForRestart(obj) {
			continue
		}
		instance := s.Client.Resource(instances).Namespace(obj.GetNamespace())
		if err := instance.Delete(ctx, obj.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot restart VirtualMachine %q: %w", obj.GetName(), err)
		}
	}
	return nil
}

func asksForRestart(vm *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(vm.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		fields, _ := condition.(map[string]any)
		return fields["type"] == "RestartRequired" && fields["status"] == "True"
	})
}

// settled waits until nothing changes any more, and returns everything.
func settled(ctx context.Context, s *stack.Stack) (map[string]*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, unrest)
	defer cancel()
	last, since := map[string]string{}, time.Now()
	for {
		objects, err := everything(ctx, s.Client)
		if err != nil {
			return nil, fmt.Errorf("the world does not come to rest: %w", err)
		}
		now := versions(objects)
		if !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if time.Since(since) > rest {
			return objects, nil
		}
		if err := pause(ctx, look); err != nil {
			return nil, fmt.Errorf("the world does not come to rest: %w", err)
		}
	}
}

// transcript understands what a stack prints.
type transcript struct {
	mu      sync.Mutex
	partial []byte
	// up are the processes of functions that run.
	up                         map[int]bool
	events, retried, dead, ran int
}

var processUp = regexp.MustCompile(`process +(\S+) +ready .*\(pid (\d+)\)`)

// Write implements io.Writer.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.partial = append(t.partial, p...)
	for {
		line, rest, ok := bytes.Cut(t.partial, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		t.line(string(line))
		t.partial = rest
	}
}

func (t *transcript) line(line string) {
	switch {
	case strings.Contains(line, "  DEAD  "):
		t.dead++
	case strings.Contains(line, "  event  "):
		t.events++
		if !strings.Contains(line, " -> 2") {
			t.retried++
		}
	default:
		if found := processUp.FindStringSubmatch(line); found != nil {
			pid, _ := strconv.Atoi(found[2])
			t.up[pid] = true
			t.ran++
		}
	}
}

// pids are the processes of functions that run now.
func (t *transcript) pids() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.up, func(pid int, _ bool) bool {
		_, err := os.Stat("/proc/" + strconv.Itoa(pid))
		return err != nil
	})
	return slices.Sorted(maps.Keys(t.up))
}

func (w *world) print(out io.Writer, title string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tab := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(tab, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	_, _ = fmt.Fprintln(tab, title)
	line("objects at the end", "%d", len(w.objects))
	line("deliveries; not taken at once; given up", "%d; %d; %d", w.events, w.retried, w.dead)
	line("processes of functions started", "%d", w.ran)
	line("at rest, with one resync, after", "%.0f s", w.took.Seconds())
	line("changed by another resync", "%d %s", len(w.late), strings.Join(w.late, ", "))
	if w.faults != nil {
		for _, m := range means {
			line("killed: "+string(m.victim), "%d times", w.faults.struck[m.victim])
		}
	}
	_ = tab.Flush()
}
