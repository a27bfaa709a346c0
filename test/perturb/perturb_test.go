package perturb

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"github.com/slipway-dev/slipway/test/suite"
)

// trial is one playing of a scenario's story.
type trial struct {
	s *scenario
	p perturbation
}

// chosen are the scenarios to play.
func chosen() []*scenario {
	return slices.DeleteFunc(slices.Clone(scenarios), func(s *scenario) bool { return *only != "" && s.fn != *only })
}

// each plays all that a family of perturbations asks for, of every function.
func each(t *testing.T, family func(s *scenario, calm *calmRun) []perturbation) {
	t.Helper()
	for _, s := range chosen() {
		// Definitions come one after the other: while some are new, the API server cannot
		// tell whether an owner reference is allowed.
		s.ready.Do(func() { s.suite.World(t) })
	}
	suite.Each(t, chosen(), func(s *scenario) string { return "Calm_" + s.fn }, func(t *testing.T, s *scenario) { s.learn(t) })
	var trials []trial
	all := 0
	for _, s := range chosen() {
		if s.calm.failed {
			continue
		}
		for _, p := range family(s, &s.calm) {
			if part.takes(all) {
				trials = append(trials, trial{s, p})
			}
			all++
		}
	}
	heard := newProgress(t.Name(), len(trials))
	suite.Each(t, trials, func(x trial) string { return x.s.fn + "_" + x.p.name }, func(t *testing.T, x trial) {
		defer heard.one()
		injected.add(x.s.fn, "runs", 1)
		x.s.play(t, x.p).end()
	})
}

// turns says, in a run that is not exhaustive, whether a function takes part in the n-th
// of so many families: each in one, by the seed.
func turns(s *scenario, n, of int) bool {
	return suite.Exhaustive() || (slices.Index(scenarios, s)+int(*seed%12))%of == n //nolint:gosec // below 12
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
		at = append(at, 1+int((*seed*7+turn+uint64(i)*uint64(count)/uint64(some))%uint64(count))) //nolint:gosec // counts of calls
	}
	return at
}

func TestLostDoubledAndReorderedEventsEndTheSameAfterOneResync(t *testing.T) {
	each(t, func(s *scenario, _ *calmRun) []perturbation {
		all := []perturbation{
			{name: "AllLost", mangle: func(r *playing, events []cloudevents.Event) (now, later []cloudevents.Event) {
				injected.add(r.s.fn, "events lost", len(events))
				return nil, nil
			}},
		}
		if !suite.Exhaustive() {
			if turns(s, 0, 3) {
				return all
			}
			return []perturbation{{name: "SomeLostAndDoubled", mangle: someLost}}
		}
		all = append(all, perturbation{name: "DoubledAndReordered", mangle: doubled})
		for i := range 12 {
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

// TestAnyCallMayFail fails the k-th call, in every way in which such a call can fail. A
// run that is not exhaustive fails several calls of one story, far from each other.
func TestAnyCallMayFail(t *testing.T) {
	each(t, func(s *scenario, calm *calmRun) []perturbation {
		if !suite.Exhaustive() {
			return []perturbation{several(calm, uint64(slices.Index(scenarios, s)))} //nolint:gosec // an index
		}
		var all []perturbation
		for _, x := range faults {
			for k := range calm.writes {
				all = append(all, failing(x.name, hit{x, k + 1, true}))
			}
			for k := range calm.reads {
				if x.reads {
					all = append(all, failing(x.name, hit{x, k + 1, false}))
				}
			}
		}
		return all
	})
}

// hit is a call that fails: the k-th read or write.
type hit struct {
	fault
	k     int
	write bool
}

func (h hit) String() string {
	return fmt.Sprintf("%s%d", map[bool]string{true: "Write", false: "Read"}[h.write], h.k)
}

// several fails a few writes and reads of a story, each in another way: together fewer
// than a broker has tries, so that no event may be given up.
func several(calm *calmRun, turn uint64) perturbation {
	var hits []hit
	next := turn + *seed
	for _, k := range sampled(len(calm.writes), min(3, len(calm.writes)), turn*3) {
		hits = append(hits, hit{faults[next%uint64(len(faults))], k, true})
		next++
	}
	for _, k := range sampled(len(calm.reads), 2, turn*5) {
		x := faults[next%uint64(len(faults))]
		for !x.reads {
			next++
			x = faults[next%uint64(len(faults))]
		}
		hits = append(hits, hit{x, k, false})
		next++
	}
	var names []string
	for _, h := range hits {
		names = append(names, h.String()+"_"+h.name)
	}
	return failing(strings.Join(names, "_"), hits...)
}

// failing fails calls, each once.
func failing(name string, hits ...hit) perturbation {
	p := perturbation{name: name, at: hits[0].k, single: true}
	if len(hits) == 1 {
		p.name = hits[0].String() + "_" + name
	}
	p.mischief = func(r *playing) *mischief {
		met := func(c call, after bool) (hit, bool) {
			for _, h := range hits {
				if c.n != h.k || c.Write() != h.write || h.after != after {
					continue
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				r.met(c, "faults")
				return h, true
			}
			return hit{}, false
		}
		return &mischief{
			before: func(c call) (*http.Response, error) {
				if h, now := met(c, false); now {
					return h.answer(c.http)
				}
				return nil, nil
			},
			after: func(c call) error {
				if h, now := met(c, true); now {
					return h.err
				}
				return nil
			},
		}
	}
	return p
}

// TestAProcessThatIsKilledAtAWriteIsSucceeded kills it before and after each write.
// Half of the time the event it was working on is lost with it.
func TestAProcessThatIsKilledAtAWriteIsSucceeded(t *testing.T) {
	each(t, func(s *scenario, calm *calmRun) []perturbation {
		var all []perturbation
		turn := slices.Index(scenarios, s)
		for i, after := range []bool{false, true} {
			if !turns(s, i, 4) {
				continue
			}
			for i, k := range sampled(len(calm.writes), 1, uint64(turn)*11) { //nolint:gosec // an index
				i += turn / 2
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
	each(t, func(s *scenario, _ *calmRun) []perturbation {
		var all []perturbation
		if !turns(s, 2, 4) {
			return nil
		}
		for _, step := range sampled(len(s.steps)-1, 1, 1) {
			all = append(all, perturbation{name: fmt.Sprintf("Step%d", step), step: step, stale: true})
		}
		return all
	})
}

// TestTwoCopiesAtOnceUndoNothing holds one copy at a call while the story goes on and
// another copy is told.
func TestTwoCopiesAtOnceUndoNothing(t *testing.T) {
	each(t, func(s *scenario, calm *calmRun) []perturbation {
		var all []perturbation
		for step := range min(len(s.steps)-1, len(calm.perStep)) {
			if !suite.Exhaustive() && (!turns(s, 3, 4) || step != int(*seed%2)) { //nolint:gosec // 0 or 1
				continue
			}
			for _, n := range sampled(len(calm.perStep[step]), 1, uint64(step)*7) { //nolint:gosec // a small number
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
	each(t, func(s *scenario, calm *calmRun) []perturbation {
		var all []perturbation
		turn := uint64(slices.Index(scenarios, s)) //nolint:gosec // an index
		for step, calls := range calm.perStep {
			for i := range faults {
				x := faults[i]
				turn++
				if !x.reads || (!suite.Exhaustive() && (!turns(s, 1, 3) || step != int(*seed%2) || turn%5 != 0)) { //nolint:gosec // 0 or 1
					continue
				}
				for _, n := range sampled(len(calls), 1, turn*5) {
					all = append(all, perturbation{name: fmt.Sprintf("Step%d_From%d_%s", step, n, x.name), step: step, at: n, outage: &x, single: true})
				}
			}
		}
		return all
	})
}
