// Command chaos shows that what the functions do survives the end of everything they
// stand on. It makes, changes and deletes a few hundred objects of every kind in the
// local stack twice: once in peace, and once while the API server, the broker with its
// sources, and the functions' processes are killed and started again at random. After a
// resync both worlds must be the same, but for what names, times and counters the servers
// give out, and a second resync must change nothing.
//
//	make chaos                       a seed of its own, a minute of faults
//	make chaos SEED=7 DURATION=3m    the same again, longer
//	make chaos OBJECTS=60            fewer objects
//
// The seed decides what is made, changed and deleted, when, and what is killed when. How
// the machine schedules the processes it cannot decide: the same seed meets the same
// faults, not the same instructions.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/deploy/local/build"
)

func main() {
	seed := flag.Uint64("seed", 0, "decides what happens; 0 takes one from the clock")
	duration := flag.Duration("duration", time.Minute, "how long objects are made, changed and deleted, under faults")
	objects := flag.Int("objects", 300, "how many subjects")
	only := flag.String("only", "", "subjects of this function alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano()) % 100_000
	}
	fmt.Printf("seed %d, %s, %d subjects\n", *seed, *duration, *objects)
	if err := run(ctx, *seed, *duration, *objects, *only); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		fmt.Fprintf(os.Stderr, "again: make chaos SEED=%d DURATION=%s OBJECTS=%d\n", *seed, *duration, *objects)
		os.Exit(1)
	}
}

// run lives through the script twice and compares.
func run(ctx context.Context, seed uint64, duration time.Duration, objects int, only string) error {
	root, err := build.Root(".")
	if err != nil {
		return err
	}
	script, err := newScript(seed, duration, objects, only)
	if err != nil {
		return err
	}
	fmt.Printf("script: %s\n", script)
	calm, err := live(ctx, root, script, nil)
	if err != nil {
		return fmt.Errorf("cannot live in peace: %w", err)
	}
	faults := newFaults(seed, duration)
	fmt.Printf("faults: %s\n", faults)
	stormy, err := live(ctx, root, script, faults)
	if err != nil {
		return fmt.Errorf("cannot live under faults: %w", err)
	}
	calm.print(os.Stdout, "in peace")
	stormy.print(os.Stdout, "under faults")
	return compare(os.Stdout, script, calm, stormy)
}
