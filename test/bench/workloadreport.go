package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// workloadReport is what it costs to follow many workload clusters. Sizes are bytes.
type workloadReport struct {
	Clusters int `json:"clusters"`
	Servers  int `json:"servers"`
	Services int `json:"services"`
	// Connected is from the moment when all control planes are initialized until the
	// function has heard of every cluster, Converged until every load balancer has its
	// routes and knows its address, Settled until no event comes any more.
	Connected time.Duration `json:"connectedNs"`
	Converged time.Duration `json:"convergedNs"`
	Settled   time.Duration `json:"settledNs"`
	// ChangeMs is from a new load balancer to its route, with all clusters followed.
	ChangeMs spread `json:"serviceToRouteMs"`
	Events   int    `json:"events"`
	Strange  int    `json:"eventsOfOthers"`
	Again    int    `json:"deliveredAgain"`
	Lost     int    `json:"givenUp"`
	// Watches are those of Services that the adapter has open.
	Watches int `json:"watches"`
	// Adapter is its resident size without any cluster, with all, and at most.
	AdapterIdle   int64 `json:"adapterIdleBytes"`
	AdapterLoaded int64 `json:"adapterLoadedBytes"`
	AdapterPeak   int64 `json:"adapterPeakBytes"`
	FunctionPeak  int64 `json:"functionPeakBytes"`
}

func (r *workloadReport) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	const mib = 1 << 20
	line(fmt.Sprintf("%d workload clusters on %d API servers, %d Services", r.Clusters, r.Servers, r.Services), "")
	line("all watched and told after", "%.1f s", r.Connected.Seconds())
	line("every Service reachable after", "%.1f s", r.Converged.Seconds())
	line("last event after", "%.1f s", r.Settled.Seconds())
	line("a further Service to its route", "%s", r.ChangeMs)
	line("events; delivered again, given up", "%d; %d, %d (and %d of clusters on the same API server)", r.Events, r.Again, r.Lost, r.Strange)
	line("watches of the adapter in workload clusters", "%d", r.Watches)
	line("adapter, resident without clusters", "%.1f MiB", float64(r.AdapterIdle)/mib)
	line("adapter, resident with all", "%.1f MiB (%.2f MiB for each)", float64(r.AdapterLoaded)/mib, float64(r.AdapterLoaded-r.AdapterIdle)/mib/float64(r.Clusters))
	line("adapter, at most", "%.1f MiB", float64(r.AdapterPeak)/mib)
	line("workload-router, at most", "%.1f MiB", float64(r.FunctionPeak)/mib)
	_ = w.Flush()
}
