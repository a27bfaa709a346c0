package perturb

import (
	"fmt"
	"net/http"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"github.com/slipway-dev/slipway/test/suite"
)

// trial is one playing of a scenario's story.
type trial struct {
	s *scenario
	p perturbation
}

// each plays all that a family of perturbations asks for, of every function.
func each(t *testing.T, family func(t *testing.T, s *scenario, calm *calmRun) []perturbation) {
	t.Helper()
	var trials []trial
	for _, s := range scenarios {
		if *only != "" && s.fn != *only {
			continue
		}
		for _, p := range family(t, s, s.learn(t)) {
			trials = append(trials, trial{s, p})
		}
	}
	suite.Each(t, trials, func(x trial) string { return x.s.fn + "_" + x.p.name }, func(t *testing.T, x trial) {
		injected.add(x.s.fn, "runs", 1)
		x.s.play(t, x.p).end()
	})
}

// sampled are some numbers from 1 to count, by the seed and a turn: so many, or all in
// an exhaustive run.
func sampled(count, some int, turn uint64) []int {
	var at []int
	if suite.Exhaustive() || count <= some {
		for n := range count {
			at = append(at, n+1)
		}
		return at
	}
	for i := range some {
		at = append(at, 1+int((*seed+turn+uint64(i)*uint64(count)/uint64(some))%uint64(count))) //nolint:gosec // counts of calls
	}
	return at
}

func TestLostDoubledAndReorderedEventsEndTheSameAfterOneResync(t *testing.T) {
	each(t, func(_ *testing.T, s *scenario, _ *calmRun) []perturbation {
		all := []perturbation{
			{name: "AllLost", mangle: func(r *playing, events []cloudevents.Event) (now, later []cloudevents.Event) {
				injected.add(r.s.fn, "events lost", len(events))
				return nil, nil
			}},
			{name: "DoubledAndReordered", mangle: doubled},
		}
		seeds := 1
		if suite.Exhaustive() {
			seeds = 12
		}
		for i := range seeds {
			all = append(all, perturbation{name: fmt.Sprintf("SomeLost%d", i), at: i, mangle: someLost})
		}
		return all
	})
}

// doubled delivers every event twice and in disorder, the second time when all is over.
func doubled(r *playing, events []cloudevents.Event) (now, later []cloudevents.Event) {
	injected.add(r.s.fn, "events doubled", len(events))
	now, later = append(now, events...), append(later, events...)
	r.chance.Shuffle(len(now), func(i, j int) { now[i], now[j] = now[j], now[i] })
	return now, later
}

// someLost delivers each event never, once or twice, now or when all is over.
func someLost(r *playing, events []cloudevents.Event) (now, later []cloudevents.Event) {
	for _, ce := range events {
		times := r.chance.IntN(3)
		if times == 0 {
			injected.add(r.s.fn, "events lost", 1)
		}
		for range times {
			if r.chance.IntN(3) == 0 {
				later = append(later, ce)
				continue
			}
			now = append(now, ce)
		}
	}
	r.chance.Shuffle(len(now), func(i, j int) { now[i], now[j] = now[j], now[i] })
	return now, later
}

// TestAnyCallMayFail fails the k-th call, in every way in which such a call can fail.
func TestAnyCallMayFail(t *testing.T) {
	each(t, func(_ *testing.T, _ *scenario, calm *calmRun) []perturbation {
		var all []perturbation
		for turn, x := range faults {
			for _, k := range sampled(len(calm.writes), 1, uint64(turn)*3) { //nolint:gosec // a small number
				all = append(all, failing(x, k, true))
			}
			if !x.reads || (!suite.Exhaustive() && turn%2 == int(*seed%2)) { //nolint:gosec // 0 or 1
				continue
			}
			for _, k := range sampled(len(calm.reads), 1, uint64(turn)*5) { //nolint:gosec // a small number
				all = append(all, failing(x, k, false))
			}
		}
		return all
	})
}

// failing fails the k-th read or write.
func failing(x fault, k int, write bool) perturbation {
	what := map[bool]string{true: "Write", false: "Read"}[write]
	p := perturbation{name: fmt.Sprintf("%s%d_%s", what, k, x.name), at: k, single: true}
	p.mischief = func(r *playing) *mischief {
		meets := func(c call) bool {
			if c.n != k || c.Write() != write {
				return false
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.met(c, "faults")
			return true
		}
		if x.after {
			return &mischief{after: func(c call) error {
				if meets(c) {
					return x.err
				}
				return nil
			}}
		}
		return &mischief{before: func(c call) (*http.Response, error) {
			if meets(c) {
				return x.answer(c.http)
			}
			return nil, nil
		}}
	}
	return p
}

// TestAProcessThatIsKilledAtAWriteIsSucceeded kills it before and after each write.
// Half of the time the event it was working on is lost with it.
func TestAProcessThatIsKilledAtAWriteIsSucceeded(t *testing.T) {
	each(t, func(_ *testing.T, _ *scenario, calm *calmRun) []perturbation {
		var all []perturbation
		for _, after := range []bool{false, true} {
			for i, k := range sampled(len(calm.writes), 2, map[bool]uint64{true: 2}[after]) {
				all = append(all, killed(k, after, i%2 == 1))
			}
		}
		return all
	})
}

func killed(k int, after, loses bool) perturbation {
	what := map[bool]string{true: "After", false: "Before"}[after]
	p := perturbation{name: fmt.Sprintf("%sWrite%d", what, k), at: k, single: !loses}
	p.mischief = func(r *playing) *mischief {
		gone := false
		r.loses = loses
		die := func(c call) bool {
			if gone || !c.Write() || c.n != k {
				return gone
			}
			gone, r.dead = true, true
			r.met(c, "kills")
			return true
		}
		m := &mischief{before: func(c call) (*http.Response, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if (gone || !after) && die(c) {
				return nil, errKilled
			}
			return nil, nil
		}}
		if after {
			m.after = func(c call) error {
				r.mu.Lock()
				defer r.mu.Unlock()
				if die(c) {
					return errKilled
				}
				return nil
			}
		}
		return m
	}
	return p
}

// TestStaleReadsUndoNothing serves a copy, at the first event of a step, what it has
// read before.
func TestStaleReadsUndoNothing(t *testing.T) {
	each(t, func(_ *testing.T, s *scenario, _ *calmRun) []perturbation {
		var all []perturbation
		for _, step := range sampled(len(s.steps)-1, 2, 0) {
			all = append(all, perturbation{name: fmt.Sprintf("Step%d", step), step: step, stale: true})
		}
		return all
	})
}

// TestTwoCopiesAtOnceUndoNothing holds one copy at a call while the story goes on and
// another copy is told.
func TestTwoCopiesAtOnceUndoNothing(t *testing.T) {
	each(t, func(_ *testing.T, s *scenario, calm *calmRun) []perturbation {
		var all []perturbation
		for step := range min(len(s.steps)-1, len(calm.perStep)) {
			some := 1
			if step > 1 {
				some = 0
			}
			for _, n := range sampled(len(calm.perStep[step]), some, uint64(step)*7) { //nolint:gosec // a small number
				all = append(all, perturbation{name: fmt.Sprintf("Step%d_Call%d", step, n), step: step, at: n, hold: true})
			}
		}
		return all
	})
}

// TestAnEventThatCannotBeHandledIsSentAgain has the API server out of order from a call
// on: the answer is one after which the broker tries again, and in the end keeps the
// event as a dead letter.
func TestAnEventThatCannotBeHandledIsSentAgain(t *testing.T) {
	each(t, func(_ *testing.T, _ *scenario, calm *calmRun) []perturbation {
		var all []perturbation
		turn := uint64(0)
		for step, calls := range calm.perStep {
			for i := range faults {
				x := faults[i]
				if !x.reads || (!suite.Exhaustive() && (turn+*seed)%4 != 0) {
					turn++
					continue
				}
				turn++
				for _, n := range sampled(len(calls), 1, turn*5) {
					all = append(all, perturbation{name: fmt.Sprintf("Step%d_From%d_%s", step, n, x.name), step: step, at: n, outage: &x, single: true})
				}
			}
		}
		return all
	})
}
