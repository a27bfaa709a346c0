package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/deploy/local/stack"
)

const (
	// convergence is how long all of a load may take.
	convergence = 30 * time.Minute
	// stillness is how long nobody may write before everything counts as settled.
	stillness = 30 * time.Second
	// creators is how many are created at once.
	creators = 10
	// tellEvery is how long nothing is heard of a load that converges.
	tellEvery = 10 * time.Second
)

// load is work for the local stack: so many of something, and how they are made and
// looked at.
type load struct {
	// what one of them is called.
	what            string
	count, clusters int
	// functions are those whose writes are counted.
	functions []string
	// subjects are the objects that become Ready, so many for each.
	subjects  schema.GroupVersionResource
	namespace string
	each      int
	// prepare makes what all of them need; create makes the i-th.
	prepare func(ctx context.Context, s *stack.Stack) error
	create  func(ctx context.Context, s *stack.Stack, i int) error
}

// loadReport is what a load costs in the local stack. Sizes are bytes.
type loadReport struct {
	What     string `json:"what"`
	Count    int    `json:"count"`
	Clusters int    `json:"clusters"`
	// AllReady is from the first creation until the last subject is Ready, Settled
	// until the functions' last write.
	AllReady time.Duration `json:"allReadyNs"`
	Settled  time.Duration `json:"settledNs"`
	Resync   time.Duration `json:"resyncNs"`
	// Left are the subjects that are not Ready at the end; the rest counts what
	// went wrong on the way.
	Left        []string `json:"left"`
	DeadLetters int      `json:"deadLetters"`
	Crashes     int      `json:"crashes"`
	Retries     int      `json:"retries"`
	Reconciles  int      `json:"reconciles"`
	// Writes are the functions', by resource: those that changed something;
	// Refused are those that an API server did not accept, by code.
	Writes       map[string]int   `json:"writes"`
	Refused      map[string]int   `json:"refused"`
	ResyncWrites int              `json:"resyncWrites"`
	Peak         map[string]int64 `json:"peakResidentBytes"`
}

// run lets a load converge in the local stack, and then asks for a resync, which must
// find nothing to write.
func (l *load) run(ctx context.Context, root string) (*loadReport, error) {
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	lines := &transcript{functions: l.functions}
	s, err := stack.Start(ctx, stack.Options{Root: root, Data: dir, Clusters: l.clusters, Audit: true, Idle: time.Hour, Out: lines, Progress: os.Stderr})
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	if err := l.prepare(ctx, s); err != nil {
		return nil, err
	}
	r := &loadReport{What: l.what, Count: l.count, Clusters: l.clusters}
	progress("how %d %s converge", l.count*l.each, l.subjects.Resource)
	started := time.Now()
	if err := l.createAll(ctx, s); err != nil {
		return nil, err
	}
	if err := l.allReady(ctx, s); err != nil {
		r.Left = []string{err.Error()}
	}
	r.AllReady = time.Since(started)
	progress("what is still written when all are Ready")
	last, err := still(ctx, s, l.functions)
	if err != nil {
		return nil, err
	}
	r.Settled = last.Sub(started)
	if r.Writes, r.Refused, err = writes(s, l.functions, started); err != nil {
		return nil, err
	}
	progress("a resync of all, which may not write")
	resync := time.Now()
	if err := s.Resync(ctx); err != nil {
		return nil, err
	}
	lastPage, err := lines.awaitResync(ctx)
	if err != nil {
		return nil, err
	}
	r.Resync = lastPage.Sub(resync)
	if _, err := still(ctx, s, l.functions); err != nil {
		return nil, err
	}
	after, refused, err := writes(s, l.functions, resync)
	if err != nil {
		return nil, err
	}
	for _, n := range slices.Concat(slices.Collect(maps.Values(after)), slices.Collect(maps.Values(refused))) {
		r.ResyncWrites += n
	}
	left, err := l.notReady(ctx, s)
	if err != nil {
		return nil, err
	}
	r.Left = append(r.Left, left...)
	lines.count(r)
	r.Peak, err = peaks(s, lines)
	return r, err
}

func (l *load) createAll(ctx context.Context, s *stack.Stack) error {
	return each(l.count, creators, func(i int) error { return l.create(ctx, s, i) })
}

func (r *loadReport) failed() error {
	if len(r.Left) == 0 && r.DeadLetters == 0 && r.ResyncWrites == 0 {
		return nil
	}
	return fmt.Errorf("%d objects are not Ready, %d events were given up, and a resync wrote %d times", len(r.Left), r.DeadLetters, r.ResyncWrites)
}

// allReady waits until all subjects are Ready.
func (l *load) allReady(ctx context.Context, s *stack.Stack) error {
	ctx, cancel := context.WithTimeout(ctx, convergence)
	defer cancel()
	ready := map[string]bool{}
	told := time.Now()
	for ctx.Err() == nil {
		watch, err := s.Client.Resource(l.subjects).Namespace(l.namespace).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for event := range watch.ResultChan() {
			if obj, ok := event.Object.(*unstructured.Unstructured); ok {
				ready[obj.GetName()] = isReady(obj)
			}
			n := 0
			for _, is := range ready {
				if is {
					n++
				}
			}
			if n == l.count*l.each {
				watch.Stop()
				return nil
			}
			if time.Since(told) > tellEvery {
				told = time.Now()
				progress("how %s converge: %d of %d are Ready", l.subjects.Resource, n, l.count*l.each)
			}
		}
	}
	return fmt.Errorf("not all %s were Ready within %s", l.subjects.Resource, convergence)
}

func isReady(obj *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(item any) bool {
		c, ok := item.(map[string]any)
		return ok && c["type"] == "Ready" && c["status"] == "True"
	})
}

func (l *load) notReady(ctx context.Context, s *stack.Stack) ([]string, error) {
	list, err := s.Client.Resource(l.subjects).Namespace(l.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var left []string
	for i := range list.Items {
		if !isReady(&list.Items[i]) {
			left = append(left, list.Items[i].GetName())
		}
	}
	return left, nil
}

// transcript keeps what the stack prints.
type transcript struct {
	functions []string
	mu        sync.Mutex
	b         bytes.Buffer
}

// Write implements io.Writer.
func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *transcript) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Split(o.b.String(), "\n")
}

var (
	resyncPage = regexp.MustCompile(`event +(\S+) +resync .*-> \d+`)
	reconciled = regexp.MustCompile(`  reconcile (\S+)`)
	processUp  = regexp.MustCompile(`process +(\S+) +ready .*\(pid (\d+)\)`)
)

// of tells whether a line is of a kind, and about one of the functions.
func (o *transcript) of(kind *regexp.Regexp, line string) bool {
	found := kind.FindStringSubmatch(line)
	return found != nil && slices.Contains(o.functions, found[1])
}

// awaitResync waits for the end of the chain of pages, when no other comes, and
// returns when the last one was answered.
func (o *transcript) awaitResync(ctx context.Context) (time.Time, error) {
	pages := func() int {
		n := 0
		for _, line := range o.lines() {
			if o.of(resyncPage, line) {
				n++
			}
		}
		return n
	}
	before, since := pages(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return since, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
		now := pages()
		if now != before {
			before, since = now, time.Now()
		}
		if time.Since(since) > stillness {
			return since, nil
		}
	}
}

func (o *transcript) count(r *loadReport) {
	for _, line := range o.lines() {
		switch {
		case strings.Contains(line, "  DEAD  "):
			r.DeadLetters++
		case strings.Contains(line, "crashed"):
			r.Crashes++
		case strings.Contains(line, "  event  ") && strings.Contains(line, " -> 503 "):
			r.Retries++
		case o.of(reconciled, line):
			r.Reconciles++
		}
	}
}

// peaks are the largest resident sizes of the processes.
func peaks(s *stack.Stack, lines *transcript) (map[string]int64, error) {
	pids := s.Pids()
	for _, line := range lines.lines() {
		if found := processUp.FindStringSubmatch(line); found != nil {
			pid, err := strconv.Atoi(found[2])
			if err != nil {
				return nil, err
			}
			pids[found[1]] = append(pids[found[1]], pid)
		}
	}
	peak := map[string]int64{}
	for name, all := range pids {
		for _, pid := range all {
			size, err := memory(pid, "VmHWM:")
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			peak[name] = max(peak[name], size)
		}
	}
	return peak, nil
}

func (r *loadReport) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	each := func(n int) string {
		return fmt.Sprintf("%d (%.2f for each %s)", n, float64(n)/float64(r.Count), r.What)
	}
	title := fmt.Sprintf("%d × %s", r.Count, r.What)
	if r.Clusters > 1 {
		title += fmt.Sprintf(" over %d clusters", r.Clusters)
	}
	line(title, "")
	line("all Ready after", "%.1f s (%.1f/s)", r.AllReady.Seconds(), float64(r.Count)/r.AllReady.Seconds())
	line("last write of a function after", "%.1f s", r.Settled.Seconds())
	line("not Ready at the end", "%d %s", len(r.Left), strings.Join(r.Left, ", "))
	line("dead letters, crashes, answers 503", "%d, %d, %d", r.DeadLetters, r.Crashes, r.Retries)
	line("reconciles", "%s", each(r.Reconciles))
	total := 0
	for _, what := range slices.Sorted(maps.Keys(r.Writes)) {
		line("  "+what, "%s", each(r.Writes[what]))
		total += r.Writes[what]
	}
	line("writes", "%s", each(total))
	for _, what := range slices.Sorted(maps.Keys(r.Refused)) {
		line("  refused: "+what, "%s", each(r.Refused[what]))
	}
	line("a resync of all", "%.1f s, %d writes", r.Resync.Seconds(), r.ResyncWrites)
	for _, name := range slices.Sorted(maps.Keys(r.Peak)) {
		line("peak resident, "+name, "%.0f MiB", float64(r.Peak[name])/(1<<20))
	}
	_ = w.Flush()
}
