package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/bench/model"
	"github.com/slipway-dev/slipway/test/subjects"
)

const (
	// sourceTime is what a source needs for one event, brokerTime what the broker does
	// until the function has it: half each of the time that both together take here.
	sourceTime, brokerTime = 2 * time.Millisecond, 2500 * time.Microsecond
	// modelled is how many objects the model has, and for how long it runs.
	modelled, modelledFor = 1000, time.Minute
)

// prices are the API server's times for one request, on one processor, out of what the raw
// client needed for all functions.
func (r *report) prices() (read, write time.Duration) {
	var reads, writes, readTime, writeTime float64
	for _, m := range r.Functions {
		if m.PerSecond == 0 || m.WritesPerObject == 0 {
			continue
		}
		ours := 1 / m.PerSecond
		same, alone := m.ThroughputRatio*ours, m.WritesOnlyRatio*ours
		writes, writeTime = writes+float64(m.WritesPerObject), writeTime+alone
		reads, readTime = reads+float64(m.RequestsPerObject-m.WritesPerObject), readTime+max(0, same-alone)
	}
	if reads == 0 || writes == 0 {
		return 0, 0
	}
	per := func(seconds, count float64) time.Duration {
		return time.Duration(seconds / count * float64(r.Processors) * float64(time.Second)).Round(10 * time.Microsecond)
	}
	return per(readTime, reads), per(writeTime, writes)
}

// system is a function in the model.
func (r *report) system(spec reconcile.Spec, processors int) model.System {
	m := r.Functions[spec.Name]
	read, write := r.prices()
	ours := float64(r.Processors) / m.PerSecond / float64(m.WritesPerObject+1)
	own := time.Duration(max(0, 1-m.ThroughputRatio) * ours * float64(time.Second))
	return model.System{
		Source: sourceTime, Broker: brokerTime, Slots: max(1, spec.Concurrency), Own: own,
		Processors: processors, Reads: m.RequestsPerObject - m.WritesPerObject, Writes: m.WritesPerObject,
		Echoes: m.WritesPerObject, EchoReads: m.FixpointReads, Read: read, Write: write, Objects: modelled,
	}
}

// scale prints what breaks first at how many changes a second, and what the simulation says
// of it.
func (r *report) scale(out io.Writer) {
	read, write := r.prices()
	_, _ = fmt.Fprintf(out, "one read costs the API server %s, one write %s, of one processor\n\n", read, write)
	w := tabwriter.NewWriter(out, 0, 8, 1, ' ', 0)
	_, _ = fmt.Fprintln(w, "| function\t| breaks first\t| changes/s\t| next\t| changes/s\t| p50, p99 at half\t| at 90 %\t| with 8 processors\t|")
	_, _ = fmt.Fprintln(w, "| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|")
	specs := map[string]reconcile.Spec{}
	for _, spec := range slipway.Specs() {
		specs[spec.Name] = spec
	}
	for _, name := range subjects.Functions() {
		if m := r.Functions[name]; m == nil || m.WritesPerObject == 0 || m.PerSecond == 0 {
			continue
		}
		s := r.system(specs[name], r.Processors)
		limits := shared(s)
		half, nearly := s.Run(limits[0].Rate/2, modelledFor, 1), s.Run(limits[0].Rate*.9, modelledFor, 1)
		large := shared(r.system(specs[name], 8))[0]
		_, _ = fmt.Fprintf(w, "| %s\t| %s\t| %.0f\t| %s\t| %.0f\t| %s, %s\t| %s, %s\t| %.0f (%s)\t|\n", name, limits[0].Station, limits[0].Rate, limits[1].Station, limits[1].Rate,
			short(half.P50), short(half.P99), short(nearly.P50), short(nearly.P99), large.Rate, large.Station)
	}
	_ = w.Flush()
	if r.Latency == nil || r.Functions["worktree-mirror"] == nil {
		return
	}
	// A new commit is a patch and a status; there is no creation.
	s := r.system(specs["worktree-mirror"], r.Processors)
	s.Writes, s.Reads, s.Echoes = 2, s.EchoReads, 2
	for _, w := range r.Latency.Worktrees {
		got := s.Run(w.Rate, modelledFor, 1)
		_, _ = fmt.Fprintf(out, "\nworktree-mirror at %.0f changes a second: the simulation says p50 %s, p99 %s; measured were %.0f ms and %.0f ms\n",
			w.Rate, short(got.P50), short(got.P99), w.Took.P50, w.Took.P99)
	}
}

// shared are the limits that all objects have together: one alone is limited anyhow.
func shared(s model.System) []model.Limit {
	var limits []model.Limit
	for _, limit := range s.Limits() {
		if limit.Station != model.OneObject {
			limits = append(limits, limit)
		}
	}
	return limits
}

func short(d time.Duration) string { return d.Round(time.Millisecond).String() }
