package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/deploy/local/stack"
)

const (
	// warmRuns is how many Machines are applied, one after the other.
	warmRuns = 40
	// changesAtOnce Worktrees are changed changesEach times each, so many in a second.
	changesAtOnce, changesEach, changesPerSecond = 100, 5, 50
)

var (
	machines        = schema.GroupVersionResource{Group: "vitistack.io", Version: "v1alpha1", Resource: "machines"}
	virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	worktrees       = schema.GroupVersionResource{Group: "dockyards.io", Version: "v1alpha3", Resource: "worktrees"}
	repositories    = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
)

// delayed is how long it takes from a change to what a function makes of it, through the
// real source and broker, with the function's process up.
type delayed struct {
	// Machine is from a new Machine to its VirtualMachine: five writes, one after the
	// other.
	Machine spread `json:"machineAppliedToVirtualMachineMs"`
	// Worktree is from a new commit of a Worktree to that of its GitRepository, one
	// write, at Rate changes a second; Lost counts those that did not come.
	Worktree spread  `json:"worktreeChangedToSourceMs"`
	Rate     float64 `json:"changesPerSecond"`
	Lost     int     `json:"lost"`
}

// latency measures in the local stack.
func latency(ctx context.Context, root string) (*delayed, error) {
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := stack.Start(ctx, stack.Options{Root: root, Data: dir, Idle: time.Minute, Out: io.Discard, Progress: os.Stderr})
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	r := &delayed{}
	if err := r.created(ctx, s); err != nil {
		return r, err
	}
	return r, r.changed(ctx, s)
}

// created times Machine applied to VirtualMachine present.
func (r *delayed) created(ctx context.Context, s *stack.Stack) error {
	watch, err := s.Client.Resource(virtualMachines).Namespace("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watch.Stop()
	var durations []time.Duration
	for i := range warmRuns + 1 {
		name := fmt.Sprintf("warm-%03d", i)
		started := time.Now()
		if _, err := s.Client.Resource(machines).Namespace("default").Create(ctx, machine(name), metav1.CreateOptions{}); err != nil {
			return err
		}
		for seen := false; !seen; {
			select {
			case event, open := <-watch.ResultChan():
				if !open {
					return errors.New("the watch ended")
				}
				vm, ok := event.Object.(*unstructured.Unstructured)
				seen = ok && vm.GetName() == "vm-"+name
			case <-time.After(30 * time.Second):
				return fmt.Errorf("no VirtualMachine for Machine %q within 30 s", name)
			}
		}
		// The first one started the process: that is not warm.
		if i > 0 {
			durations = append(durations, time.Since(started))
		}
		if err := s.WaitReady(ctx, 30*time.Second, machine(name)); err != nil {
			return err
		}
	}
	r.Machine = spreadOf(durations)
	return nil
}

func machine(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine",
		"metadata": map[string]any{"namespace": "default", "name": name}, "spec": map[string]any{"template": "small"},
	}}
}

func commitOf(round, i int) string { return fmt.Sprintf("%040x", 1+round*changesAtOnce+i) }

// arrivals are when commits were seen.
type arrivals struct {
	mu   sync.Mutex
	seen map[string]time.Time
	came chan struct{}
}

// note remembers when a commit was seen first.
func (a *arrivals) note(commit string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.seen[commit]; known || commit == "" {
		return
	}
	a.seen[commit] = time.Now()
	select {
	case a.came <- struct{}{}:
	default:
	}
}

// changed times commits of Worktrees at a steady rate.
func (r *delayed) changed(ctx context.Context, s *stack.Stack) error {
	watch, err := s.Client.Resource(repositories).Namespace("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watch.Stop()
	a := &arrivals{seen: map[string]time.Time{}, came: make(chan struct{}, 1)}
	go func() {
		for event := range watch.ResultChan() {
			if repository, ok := event.Object.(*unstructured.Unstructured); ok {
				commit, _, _ := unstructured.NestedString(repository.Object, "spec", "ref", "commit")
				a.note(commit)
			}
		}
	}()
	client := s.Client.Resource(worktrees).Namespace("default")
	nameOf := func(i int) string { return fmt.Sprintf("tree-%03d", i) }
	commit := func(round, i int) error {
		body := fmt.Sprintf(`{"status":{"url":"https://git.test/r.git","referenceName":"refs/heads/main","commitHash":%q}}`, commitOf(round, i))
		_, err := client.Patch(ctx, nameOf(i), types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
		return err
	}
	if err := each(changesAtOnce, parallel, func(i int) error {
		tree := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "dockyards.io/v1alpha3", "kind": "Worktree", "metadata": map[string]any{"name": nameOf(i)},
			"spec": map[string]any{"files": map[string]any{"a": "YQ=="}},
		}}
		if _, err := client.Create(ctx, tree, metav1.CreateOptions{}); err != nil {
			return err
		}
		return commit(0, i)
	}); err != nil {
		return err
	}
	if a.await(ctx, changesAtOnce) > 0 {
		return errors.New("not every Worktree got its source")
	}
	begun, sent := time.Now(), map[string]time.Time{}
	var mu sync.Mutex
	tick := time.NewTicker(time.Second / changesPerSecond)
	defer tick.Stop()
	var wait sync.WaitGroup
	errs := make(chan error, changesAtOnce*changesEach)
	for round := 1; round <= changesEach; round++ {
		for i := range changesAtOnce {
			<-tick.C
			wait.Go(func() {
				started := time.Now()
				err := commit(round, i)
				mu.Lock()
				sent[commitOf(round, i)] = started
				mu.Unlock()
				errs <- err
			})
		}
	}
	wait.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	r.Rate = float64(len(sent)) / time.Since(begun).Seconds()
	r.Lost = a.await(ctx, changesAtOnce*(changesEach+1))
	var durations []time.Duration
	a.mu.Lock()
	defer a.mu.Unlock()
	for commit, at := range sent {
		if seen, ok := a.seen[commit]; ok {
			durations = append(durations, seen.Sub(at))
		}
	}
	r.Worktree = spreadOf(durations)
	return nil
}

// await waits until so many have come, or none does for a while, and returns how many
// are missing.
func (a *arrivals) await(ctx context.Context, count int) int {
	for {
		a.mu.Lock()
		missing := count - len(a.seen)
		a.mu.Unlock()
		if missing <= 0 {
			return 0
		}
		select {
		case <-a.came:
		case <-ctx.Done():
			return missing
		case <-time.After(10 * time.Second):
			return missing
		}
	}
}
