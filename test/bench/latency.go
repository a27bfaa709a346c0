package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
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
	// trees is how many Worktrees are changed in turn, for changing.
	trees, changing = 100, 10 * time.Second
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
	// Worktrees are from a new commit of a Worktree to that of its GitRepository, or a
	// newer one.
	Worktrees []atRate `json:"worktreeChangedToSourceMs"`
}

// atRate is what it is like at so many changes a second. Lost are those that did not come,
// and neither did a newer one.
type atRate struct {
	Rate float64 `json:"changesPerSecond"`
	Took spread  `json:"took"`
	Lost int     `json:"lost"`
	// Busy is which share of all processors was at work meanwhile, whoever had it: near 1,
	// the machine waits, not the functions.
	Busy float64 `json:"processorsBusy"`
}

// rates are the changes a second that are tried: where the latency turns says more than
// how bad it is beyond.
var rates = []int{5, 10, 20, 50}

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
	for _, rate := range rates {
		w, err := changed(ctx, s, rate)
		if err != nil {
			return r, err
		}
		r.Worktrees = append(r.Worktrees, w)
	}
	return r, nil
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

// arrivals are when commits were seen, of each Worktree.
type arrivals struct {
	mu   sync.Mutex
	seen map[string][]arrival
	came chan struct{}
}

type arrival struct {
	round int64
	at    time.Time
}

// note remembers when a commit was seen: its number is the round of changes.
func (a *arrivals) note(name, commit string) {
	round, err := strconv.ParseInt(commit, 16, 64)
	if err != nil {
		return
	}
	a.mu.Lock()
	a.seen[name] = append(a.seen[name], arrival{round, time.Now()})
	a.mu.Unlock()
	select {
	case a.came <- struct{}{}:
	default:
	}
}

// after is when a commit, or a newer one, was seen.
func (a *arrivals) after(name string, round int64) (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, seen := range a.seen[name] {
		if seen.round >= round {
			return seen.at, true
		}
	}
	return time.Time{}, false
}

// await waits until all have come, or none does for a while, and returns how many are
// missing.
func (a *arrivals) await(ctx context.Context, sent []sending) int {
	for {
		missing := 0
		for _, s := range sent {
			if _, came := a.after(s.name, s.round); !came {
				missing++
			}
		}
		if missing == 0 {
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

// rest waits until nothing has come for a while: what the setup set off shall not delay what
// is measured.
func (a *arrivals) rest(ctx context.Context) {
	for {
		select {
		case <-a.came:
		case <-ctx.Done():
			return
		case <-time.After(3 * time.Second):
			return
		}
	}
}

// sending is a commit that was made.
type sending struct {
	name  string
	round int64
	at    time.Time
}

// commit makes a commit of a Worktree.
func commit(ctx context.Context, s *stack.Stack, name string, round int64) (sending, error) {
	made := sending{name: name, round: round, at: time.Now()}
	body := fmt.Sprintf(`{"status":{"url":"https://git.test/r.git","referenceName":"refs/heads/main","commitHash":"%040x"}}`, round)
	_, err := s.Client.Resource(worktrees).Namespace("default").Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	return made, err
}

// jiffies are how long all processors worked, and how long there were any.
type jiffies struct{ worked, all float64 }

// processors reads them; nothing where the system does not tell.
func processors() jiffies {
	var j jiffies
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return j
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil || i > 8 {
			continue // its name, and guests, who count among the others
		}
		j.all += n
		if i != 4 && i != 5 { // idle, and waiting for a disk
			j.worked += n
		}
	}
	return j
}

func (j jiffies) since(before jiffies) float64 {
	if j.all <= before.all {
		return 0
	}
	return (j.worked - before.worked) / (j.all - before.all)
}

// changed times commits of Worktrees at a steady rate.
func changed(ctx context.Context, s *stack.Stack, rate int) (atRate, error) {
	var r atRate
	watch, err := s.Client.Resource(repositories).Namespace("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return r, err
	}
	defer watch.Stop()
	a := &arrivals{seen: map[string][]arrival{}, came: make(chan struct{}, 1)}
	go func() {
		for event := range watch.ResultChan() {
			if repository, ok := event.Object.(*unstructured.Unstructured); ok {
				hash, _, _ := unstructured.NestedString(repository.Object, "spec", "ref", "commit")
				a.note(repository.GetName(), hash)
			}
		}
	}()
	nameOf := func(i int) string { return fmt.Sprintf("tree-%d-%03d", rate, i) }
	first := make([]sending, trees)
	if err := each(trees, parallel, func(i int) (err error) {
		tree := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "dockyards.io/v1alpha3", "kind": "Worktree", "metadata": map[string]any{"name": nameOf(i)},
			"spec": map[string]any{"files": map[string]any{"a": "YQ=="}},
		}}
		if _, err := s.Client.Resource(worktrees).Namespace("default").Create(ctx, tree, metav1.CreateOptions{}); err != nil {
			return err
		}
		first[i], err = commit(ctx, s, nameOf(i), 1)
		return err
	}); err != nil {
		return r, err
	}
	if a.await(ctx, first) > 0 {
		return r, errors.New("not every Worktree got its source")
	}
	a.rest(ctx)
	sent := make([]sending, rate*int(changing.Seconds()))
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	began, before := time.Now(), processors()
	errs := make([]error, len(sent))
	var committing sync.WaitGroup
	for i := range sent {
		// In order: no commit may come before an older one of the same Worktree.
		<-tick.C
		committing.Go(func() { sent[i], errs[i] = commit(ctx, s, nameOf(i%trees), int64(2+i/trees)) })
	}
	committing.Wait()
	if err := cmp.Or(errs...); err != nil {
		return r, err
	}
	r.Rate = float64(len(sent)) / time.Since(began).Seconds()
	r.Busy = processors().since(before)
	r.Lost = a.await(ctx, sent)
	var took []time.Duration
	for _, change := range sent {
		if at, came := a.after(change.name, change.round); came {
			took = append(took, at.Sub(change.at))
		}
	}
	r.Took = spreadOf(took)
	return r, nil
}
