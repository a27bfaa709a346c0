// Command bench measures what a platform team asks first. For every function: how long
// its process takes from start to ready and to its first decision, what it weighs, how
// many requests an event costs, and how its throughput compares with a raw client that
// makes the same requests to the same API server in the same run. Then how that grows
// with the number of objects, and how long it takes from a change to what a function makes
// of it, through the real source and broker. Figures of one run on a shared machine are
// only worth something as ratios.
//
//	make bench                         all that, as a table; twenty minutes
//	make bench FUNCTION=machine-vm     one function alone, without the rest
//	BENCH_OUTPUT=FILE make bench       write JSON as well
//	BENCH_LARGE=1 make bench           grow to 5,000 Machines and NodePools; half an hour
//	make bench CLUSTERS=3              500 Machines over 3 clusters in the local stack: how
//	                                   long they take, what is written, what it weighs
//	make bench SAMPLE=dockyards        the same for 200 Clusters of three NodePools
//	make bench WORKLOADS=100           100 workload clusters of Cluster API that come up at
//	                                   once: how long their load balancers take, what the
//	                                   adapter weighs and watches
//	PROFILE=DIR make bench FUNCTION=X  CPU profiles of each side of the comparison
//	go run ./test/bench -plot FILE     docs/performance.md's plots, from such a JSON
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/shared/render/worker"
)

// spread is a distribution, in milliseconds.
type spread struct {
	N   int     `json:"n"`
	Min float64 `json:"min"`
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func spreadOf(durations []time.Duration) spread {
	if len(durations) == 0 {
		return spread{}
	}
	slices.Sort(durations)
	at := func(q float64) float64 {
		return float64(durations[int(q*float64(len(durations)-1))].Microseconds()) / 1000
	}
	return spread{N: len(durations), Min: at(0), P50: at(.5), P99: at(.99), Max: at(1)}
}

func (s spread) String() string {
	return fmt.Sprintf("p50 %.1f ms, min %.1f, p99 %.1f, max %.1f (n=%d)", s.P50, s.Min, s.P99, s.Max, s.N)
}

func main() {
	worker.Hook()
	clusters := flag.Int("clusters", 1, "more than 1: spread Machines over so many clusters instead")
	sample := flag.String("sample", "vitistack", "dockyards: let customers' Clusters converge instead")
	count := flag.Int("count", 0, "how many objects: of each side of a comparison, else 100; with -clusters Machines, else 500; with -sample dockyards Clusters, else 200")
	workloads := flag.Int("workloads", 0, "more than 0: follow so many workload clusters instead")
	servers := flag.Int("servers", 5, "with -workloads: API servers that play them")
	function := flag.String("function", "", "measure this function alone, without growth and latency unless -parts says so")
	parts := flag.String("parts", "", "what to measure: functions,growth,latency, or some of them; empty is all")
	plot := flag.String("plot", "", "draw the plots of docs/performance.md from this JSON instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *plot != "":
		err = draw(*plot)
	case *workloads > 0:
		err = runWorkloads(ctx, *workloads, *servers)
	case *sample == "dockyards":
		err = runLoad(ctx, func(root string) *load { return environments(root, cmp.Or(*count, 200)) })
	case *clusters > 1:
		err = runLoad(ctx, func(string) *load { return spreadMachines(cmp.Or(*count, 500), *clusters) })
	default:
		err = runAll(ctx, *function, *parts, cmp.Or(*count, 100))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// runLoad measures a load; what is not Ready at the end is an error.
func runLoad(ctx context.Context, of func(root string) *load) error {
	root, err := build.Root(".")
	if err != nil {
		return err
	}
	r, err := of(root).run(ctx, root)
	if err != nil {
		return err
	}
	r.print(os.Stdout)
	if err := save(r); err != nil {
		return err
	}
	return r.failed()
}

// save writes a report where BENCH_OUTPUT says.
func save(r any) error {
	path := os.Getenv("BENCH_OUTPUT")
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write BENCH_OUTPUT: %w", err)
	}
	return os.WriteFile(filepath.Clean(path), append(text, '\n'), 0o600) //nolint:gosec // the person who runs it names the file
}
