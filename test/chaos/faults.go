package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/deploy/local/stack"
)

// victim is what is killed.
type victim string

const (
	function  victim = "function"
	eventing  victim = "broker and sources"
	apiServer victim = "API server"
)

// fault is the end of something, at its time.
type fault struct {
	victim victim
	at     time.Duration
	// away is how long an API server stays away; pick chooses among processes.
	away time.Duration
	pick float64
}

// faults is what goes wrong, in order.
type faults struct {
	all    []fault
	struck map[victim]int
}

// means are the times between two faults of a kind.
var means = []struct {
	victim victim
	mean   time.Duration
}{{function, 3 * time.Second}, {eventing, 20 * time.Second}, {apiServer, 25 * time.Second}}

// newFaults decides what goes wrong. Each kind happens once at least.
func newFaults(seed uint64, duration time.Duration) *faults {
	random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // it has to be the same again
	f := &faults{struck: map[victim]int{}}
	for _, m := range means {
		at := time.Duration(random.Float64() * float64(min(m.mean, duration/2)))
		for at < duration {
			f.all = append(f.all, fault{m.victim, at, time.Duration(random.Int64N(int64(2 * time.Second))), random.Float64()})
			at += time.Duration((.3 + random.ExpFloat64()) * float64(m.mean))
		}
	}
	slices.SortStableFunc(f.all, func(a, b fault) int { return int(a.at - b.at) })
	return f
}

func (f *faults) String() string {
	count := map[victim]int{}
	for _, fault := range f.all {
		count[fault.victim]++
	}
	return fmt.Sprintf("%d × %s, %d × %s, %d × %s", count[function], function, count[eventing], eventing, count[apiServer], apiServer)
}

// strike lets everything go wrong at its time. What takes long puts off what follows.
func (f *faults) strike(ctx context.Context, s *stack.Stack, processes func() []int) error {
	began := time.Now()
	for _, fault := range f.all {
		if err := pause(ctx, time.Until(began.Add(fault.at))); err != nil {
			return err
		}
		var err error
		switch fault.victim {
		case function:
			pids := processes()
			if len(pids) == 0 {
				continue
			}
			// It may have ended by itself meanwhile.
			_ = syscall.Kill(pids[int(fault.pick*float64(len(pids)))], syscall.SIGKILL)
		case eventing:
			err = s.RestartEventing(ctx)
		case apiServer:
			err = s.RestartAPIServer(ctx, fault.away)
		}
		if err != nil {
			return err
		}
		f.struck[fault.victim]++
	}
	return nil
}
