package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/test/subjects"
)

// report is what a run measured.
type report struct {
	// Taken is when, Processors on how many.
	Taken      time.Time `json:"taken"`
	Processors int       `json:"processors"`
	// Functions by name; Growth and Latency are left out for one function alone.
	Functions map[string]*measured `json:"functions"`
	Growth    []grown              `json:"growth,omitempty"`
	Latency   *delayed             `json:"latency,omitempty"`
}

// measured is one function.
type measured struct {
	compared
	weighed
}

// large are the functions that BENCH_LARGE measures with 5,000 objects too.
var large = []string{"machine-vm", "nodepool-provisioner"}

// sizes are how many objects a function's growth is measured with; none where there can
// be but one, or a few.
func sizes(function string) ([]int, error) {
	s, err := subjects.Read(function)
	if err != nil || s.Single || s.Most > 0 {
		return nil, err
	}
	of := []int{100, 1000}
	if os.Getenv("BENCH_LARGE") != "" && slices.Contains(large, function) {
		of = append(of, 5000)
	}
	return of, nil
}

// runAll measures functions, and then parts of the whole.
func runAll(ctx context.Context, function, parts string, count int) error {
	root, err := build.Root(".")
	if err != nil {
		return err
	}
	r := &report{Taken: time.Now().UTC().Truncate(time.Second), Processors: runtime.NumCPU(), Functions: map[string]*measured{}}
	names := subjects.Functions()
	if function != "" {
		names, parts = []string{function}, cmp.Or(parts, "functions")
	}
	parts = cmp.Or(parts, "functions,growth,latency")
	has := func(part string) bool { return slices.Contains(strings.Split(parts, ","), part) }
	var failed []error
	if has("functions") {
		failed = append(failed, r.measure(ctx, root, names, count))
	}
	if has("growth") {
		failed = append(failed, r.grow(ctx, root, names))
	}
	if has("latency") {
		progress("latency through source and broker")
		if r.Latency, err = latency(ctx, root); err != nil {
			failed = append(failed, fmt.Errorf("cannot measure latency: %w", err))
		}
	}
	r.print(os.Stdout)
	return errors.Join(append(failed, save(r))...)
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s measuring %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// at does something with an API server.
func at(ctx context.Context, root string, do func(*place) error) error {
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p, err := newPlace(ctx, root, dir)
	if p != nil {
		defer p.stop()
	}
	if err != nil {
		return err
	}
	return do(p)
}

// measure measures functions; one that cannot be measured does not keep the others from it.
func (r *report) measure(ctx context.Context, root string, names []string, count int) error {
	var failed []error
	for _, name := range names {
		progress("%s", name)
		// Each with an API server of its own: what others left there makes lists longer.
		if err := at(ctx, root, func(p *place) error {
			m, err := p.measure(ctx, name, count)
			if err != nil {
				return err
			}
			r.Functions[name] = m
			// What an hour has measured shall not be lost with its last minute.
			return save(r)
		}); err != nil {
			failed = append(failed, fmt.Errorf("cannot measure %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

func (p *place) measure(ctx context.Context, name string, count int) (*measured, error) {
	x, err := p.subject(ctx, name)
	if err != nil {
		return nil, err
	}
	m := &measured{}
	if m.compared, err = x.compare(ctx, count); err != nil {
		return nil, err
	}
	m.weighed, err = x.weigh(ctx)
	return m, err
}

// grow measures growth; as with measure, one that fails does not keep the others from it.
func (r *report) grow(ctx context.Context, root string, names []string) error {
	var failed []error
	for _, name := range names {
		counts, err := sizes(name)
		if err != nil {
			return err
		}
		for _, count := range counts {
			progress("%s with %d objects", name, count)
			// What is there costs too, so these have an API server of their own as well.
			err := at(ctx, root, func(p *place) error {
				x, err := p.subject(ctx, name)
				if err != nil {
					return err
				}
				g, err := x.grow(ctx, count)
				if err != nil {
					return err
				}
				r.Growth = append(r.Growth, g)
				return save(r)
			})
			if err != nil {
				failed = append(failed, fmt.Errorf("cannot measure %s with %d objects: %w", name, count, err))
			}
		}
	}
	return errors.Join(failed...)
}

func (r *report) print(out io.Writer) {
	const mib = 1 << 20
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	row := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\t\n", args...) }
	if len(r.Functions) > 0 {
		row("function\tratio\tto writes\tper s\trequests\twrites\tidle reads\tidle writes\tstart p50\tfirst p50\tidle\tloaded\tbinary")
	}
	for _, name := range subjects.Functions() {
		m := r.Functions[name]
		if m == nil {
			continue
		}
		row("%s\t%.2f\t%.2f\t%.1f\t%d\t%d\t%d\t%d\t%.0f ms\t%.0f ms\t%.1f MiB\t%.1f MiB\t%.1f MB", name, m.ThroughputRatio, m.WritesOnlyRatio, m.PerSecond,
			m.RequestsPerObject, m.WritesPerObject, m.FixpointReads, m.FixpointWrites, m.StartMs.P50, m.FirstMs.P50,
			float64(m.ResidentIdle)/mib, float64(m.ResidentLoaded)/mib, float64(m.BinaryBytes)/1e6)
	}
	_ = w.Flush()
	if len(r.Growth) > 0 {
		row("\ngrowth\tobjects\tms each\treads each\twrites each\tagain, ms each\treads each\twrites\tresident\tpeak")
	}
	for _, g := range r.Growth {
		n := float64(g.Objects)
		row("%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t%.1f MiB\t%.1f MiB", g.Function, g.Objects, 1000*g.Seconds/n, float64(g.Reads)/n, float64(g.Writes)/n,
			1000*g.AgainSeconds/n, float64(g.AgainReads)/n, g.AgainWrites, float64(g.ResidentBytes)/mib, float64(g.PeakBytes)/mib)
	}
	_ = w.Flush()
	if r.Latency == nil {
		return
	}
	_, _ = fmt.Fprintf(out, "\nMachine applied to VirtualMachine present: %s\n", r.Latency.Machine)
	for _, w := range r.Latency.Worktrees {
		_, _ = fmt.Fprintf(out, "Worktree changed to its source, at %.0f changes a second: %s, %d lost, processors %.0f %% busy\n", w.Rate, w.Took, w.Lost, 100*w.Busy)
	}
}
