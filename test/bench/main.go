// Command bench measures what a platform team asks first: how long a function
// takes from start to ready, what it weighs, how fast a Machine becomes a
// VirtualMachine through the real source and broker, and how the function's
// throughput compares with a raw client that makes the same requests to the same
// API server in the same run. Figures of one run on a shared machine are only
// worth something as ratios.
//
//	make bench                         print a table
//	BENCH_OUTPUT=FILE make bench       write JSON as well
//	make bench CLUSTERS=3              500 Machines over 3 clusters in the local stack: how
//	                                   long they take, what is written, what it weighs
//	make bench SAMPLE=dockyards        the same for 200 Clusters of three NodePools, and their
//	                                   functions beside a raw client
//	make bench WORKLOADS=100           100 workload clusters of Cluster API that come up at
//	                                   once: how long their load balancers take, what the
//	                                   adapter weighs and watches
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/slipway-dev/slipway/deploy/local/build"
)

// report is what a run measured. Times are milliseconds, sizes bytes.
type report struct {
	Function       string `json:"function"`
	BinaryBytes    int64  `json:"binaryBytes"`
	StartMs        spread `json:"startToReadyMs"`
	ResidentIdle   int64  `json:"residentIdleBytes"`
	ResidentLoaded int64  `json:"residentLoadedBytes"`
	WarmMs         spread `json:"machineAppliedToVirtualMachineMs"`
	compared
}

// spread is a distribution.
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
	clusters := flag.Int("clusters", 1, "more than 1: spread Machines over so many clusters instead")
	sample := flag.String("sample", "vitistack", "dockyards: let customers' Clusters converge instead")
	count := flag.Int("count", 0, "with -clusters: how many Machines, else 500; with -sample dockyards: how many Clusters, else 200")
	workloads := flag.Int("workloads", 0, "more than 0: follow so many workload clusters instead")
	servers := flag.Int("servers", 5, "with -workloads: API servers that play them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *workloads > 0:
		err = runWorkloads(ctx, *workloads, *servers)
	case *sample == "dockyards":
		err = runEnvironments(ctx, cmp.Or(*count, 200))
	case *clusters > 1:
		err = runLoad(ctx, spreadMachines(cmp.Or(*count, 500), *clusters))
	default:
		err = run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := build.Root(".")
	if err != nil {
		return err
	}
	r := &report{Function: "machine-vm"}
	binary := filepath.Join(root, build.DefaultBin, r.Function)
	info, err := os.Stat(binary)
	if err != nil {
		return fmt.Errorf("cannot find the function's binary, run make build: %w", err)
	}
	r.BinaryBytes = info.Size()
	for _, step := range []struct {
		name string
		run  func(context.Context, string, *report) error
	}{
		{"throughput beside a raw client", throughput},
		{"start and memory of the process", process},
		{"latency through source and broker", latency},
	} {
		fmt.Fprintln(os.Stderr, "measuring", step.name)
		if err := step.run(ctx, root, r); err != nil {
			return fmt.Errorf("cannot measure %s: %w", step.name, err)
		}
	}
	r.print(os.Stdout)
	return save(r)
}

// runLoad measures a load; what is not Ready at the end is an error.
func runLoad(ctx context.Context, l *load) error {
	root, err := build.Root(".")
	if err != nil {
		return err
	}
	r, err := l.run(ctx, root)
	if err != nil {
		return err
	}
	r.print(os.Stdout)
	if err := save(r); err != nil {
		return err
	}
	return r.failed()
}

// runEnvironments measures the functions of Dockyards: beside a raw client, then with
// many Clusters in the local stack.
func runEnvironments(ctx context.Context, count int) error {
	root, err := build.Root(".")
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "measuring throughput beside a raw client")
	ratio, err := compare(ctx, root, environmentSubject)
	if err != nil {
		return fmt.Errorf("cannot measure throughput: %w", err)
	}
	fmt.Fprintln(os.Stderr, "measuring", count, "Clusters in the local stack")
	r, err := environments(root, count).run(ctx, root)
	if err != nil {
		return err
	}
	r.print(os.Stdout)
	ratio.print(os.Stdout)
	if err := save(struct {
		*loadReport
		Compared compared `json:"compared"`
	}{r, ratio}); err != nil {
		return err
	}
	return r.failed()
}

func (r *loadReport) failed() error {
	if len(r.Left) == 0 && r.DeadLetters == 0 && r.ResyncWrites == 0 {
		return nil
	}
	return fmt.Errorf("%d objects are not Ready, %d events were given up, and a resync wrote %d times", len(r.Left), r.DeadLetters, r.ResyncWrites)
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

func (r *report) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	const mib = 1 << 20
	line(r.Function, "")
	line("binary, stripped", "%.1f MB", float64(r.BinaryBytes)/1e6)
	line("process start to ready", "%s", r.StartMs)
	line("resident, idle", "%.1f MiB", float64(r.ResidentIdle)/mib)
	line("resident, after "+fmt.Sprint(r.Objects)+" Machines", "%.1f MiB", float64(r.ResidentLoaded)/mib)
	line("Machine applied to VirtualMachine present", "%s", r.WarmMs)
	_ = w.Flush()
	r.compared.print(out)
}

func (r compared) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	line("objects created by each side", "%d", r.Objects)
	line("requests of a creation", "%d, %d of them writes", r.RequestsPerObject, r.WritesPerObject)
	line("requests when nothing changed", "%d reads, %d writes", r.FixpointReads, r.FixpointWrites)
	line("throughput / raw client, same requests", "%.2f", r.ThroughputRatio)
	line("throughput / raw client, writes alone", "%.2f", r.WritesOnlyRatio)
	_ = w.Flush()
}
