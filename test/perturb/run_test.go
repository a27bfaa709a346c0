package perturb

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/shared/kind"
	kubetest "github.com/slipway-dev/slipway/test/kube"
	"github.com/slipway-dev/slipway/test/suite"
)

// tries are how often a broker delivers an event whose answer asks for it.
const tries = 6

// perturbation is what happens to one playing of a story.
type perturbation struct {
	name string
	// mangle is what delivery makes of events; nil leaves them as they are. It also
	// says what arrives only when the story is over.
	mangle func(r *playing, events []cloudevents.Event) (now, later []cloudevents.Event)
	// mischief is what the calls of the first copy meet with.
	mischief func(r *playing) *mischief
	// step, and at: the first event of that step meets with something at its call of
	// that number.
	step, at int
	// outage, stale, hold say with what.
	outage *fault
	stale  bool
	hold   bool
	// single: calls fail once each, so delivery alone has to bring the end about.
	single bool
}

// playing is a story that is being played.
type playing struct {
	*world
	t      *testing.T
	p      perturbation
	chance *rand.Rand
	f      *suite.Copy
	// dead: the process of the copy was killed.
	dead bool
	// loses: the event that a killed process was working on is not sent again.
	loses bool
	late  []cloudevents.Event
	// given are the events that were given up.
	given  []string
	sent   int
	memory *memory

	mu   sync.Mutex
	hits []string
}

// play plays the story under a perturbation, up to the end of it.
func (s *scenario) play(t *testing.T, p perturbation) *playing {
	t.Helper()
	if s.alone {
		s.turn.Lock()
		t.Cleanup(s.turn.Unlock)
	}
	r := &playing{world: s.newWorld(t), t: t, p: p, chance: rand.New(rand.NewPCG(*seed, uint64(len(s.fn)+len(p.name)+p.at)))} //nolint:gosec // to be repeated, not to be secret
	var m *mischief
	if p.mischief != nil {
		m = p.mischief(r)
	}
	if p.stale {
		r.memory = newMemory()
		m = &mischief{stale: r.memory}
	}
	r.proves = p.single && m != nil
	r.f = r.copyOf(m)
	for i := 0; i < len(s.steps); i++ {
		s.steps[i](r.world)
		if p.hold && i == p.step && i+1 < len(s.steps) {
			i++
			r.twoAtOnce(func() { s.steps[i](r.world) })
		}
		if p.outage != nil && i == p.step {
			r.throughOutage()
		}
		if p.stale && i == p.step {
			r.onStaleReads()
		}
		r.settle(p.mangle, i)
	}
	return r
}

// settle delivers events and lets neighbours act until nothing is written any more.
func (r *playing) settle(mangle func(*playing, []cloudevents.Event) (now, later []cloudevents.Event), step int) {
	r.t.Helper()
	for round := 0; ; round++ {
		events := r.feed.take()
		if len(events) == 0 && r.s.neighbours != nil {
			r.s.neighbours(r.world)
			events = r.feed.take()
		}
		if len(events) == 0 {
			return
		}
		if round == 20 {
			r.t.Fatalf("step %d does not come to rest: there are still events of %s", step, subjects(events))
		}
		if mangle != nil {
			now, later := mangle(r, events)
			r.late = append(r.late, later...)
			events = now
		}
		for i, ce := range events {
			_, _, first := r.wire.counted()
			r.deliver(ce)
			if round == 0 && i == 0 && step >= 0 {
				r.firsts(step, first)
			}
		}
	}
}

// firsts notes for the calm run what calls the first event of a step took.
func (r *playing) firsts(step, from int) {
	if r.p.name != calmly {
		return
	}
	for len(r.s.calm.perStep) <= step {
		r.s.calm.perStep = append(r.s.calm.perStep, nil)
	}
	calls := r.f.Calls()
	r.s.calm.perStep[step] = calls[min(from, len(calls)):]
}

func subjects(events []cloudevents.Event) string {
	var all []string
	for _, ce := range events {
		all = append(all, fmt.Sprint(ce.Type(), " ", ce.Extensions()["kind"], " ", ce.Extensions()["name"]))
	}
	return strings.Join(all, ", ")
}

// deliver sends an event as a broker does.
func (r *playing) deliver(ce cloudevents.Event) {
	r.t.Helper()
	r.sent++
	var got int
	for range tries {
		got = r.f.Send(ce)
		if r.died() {
			// A process that is gone has answered nothing.
			r.f = r.copyOf(nil)
			if r.loses {
				return
			}
			continue
		}
		if got == http.StatusNoContent || got == http.StatusOK {
			return
		}
		if got != http.StatusServiceUnavailable {
			r.t.Errorf("the event of %s was answered %d; the log:\n%s", subjects([]cloudevents.Event{ce}), got, r.f.Log)
			return
		}
	}
	r.given = append(r.given, subjects([]cloudevents.Event{ce}))
}

// died tells whether the copy was killed since the last time.
func (r *playing) died() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	died := r.dead
	r.dead = false
	return died
}

// met notes that a call has met with something.
func (r *playing) met(c call, what string) {
	injected.add(r.s.fn, what, 1)
	r.hits = append(r.hits, c.String())
	if c.there { // what a workload cluster does not answer is looked at again by the resync
		r.p.single = false
	}
}

// twoAtOnce holds a copy at a call of the first event, while the next step happens and
// another copy is told of everything.
func (r *playing) twoAtOnce(meanwhile func()) {
	r.t.Helper()
	events := r.feed.take()
	if len(events) == 0 {
		meanwhile()
		return
	}
	gate := suite.NewGate(r.p.at)
	slow := r.copyOf(nil)
	_, _, before := r.wire.counted()
	r.wire.mischief = &mischief{before: func(c call) (*http.Response, error) {
		return gate.Tap(suite.Call{N: c.all - before, Request: c.Request, HTTP: c.http})
	}}
	finish, held := gate.Begin(slow, events[0])
	fast := r.copyOf(nil)
	r.f = fast
	if held {
		injected.add(r.s.fn, "holds", 1)
	}
	meanwhile()
	for _, ce := range events[1:] {
		r.deliver(ce)
	}
	for _, ce := range r.feed.take() {
		r.deliver(ce)
	}
	switch got := finish(); got {
	case http.StatusNoContent, http.StatusOK:
	case http.StatusServiceUnavailable:
		r.deliver(events[0])
	default:
		r.t.Errorf("the held copy answered %d; its log:\n%s", got, slow.Log)
	}
}

// throughOutage sends the first event of the step to a copy whose API server is out of
// order from some call on: the answer has to ask for the event again.
func (r *playing) throughOutage() {
	r.t.Helper()
	events := r.feed.take()
	if len(events) == 0 {
		return
	}
	var hit *kubetest.Request
	broken := r.copyOf(&mischief{before: func(c call) (*http.Response, error) {
		if c.there || c.all < r.p.at {
			return nil, nil
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if hit == nil || !tells(c.Request) {
			hit = &c.Request
		}
		return r.p.outage.answer(c.http)
	}})
	got := broken.Send(events[0])
	r.mu.Lock()
	last := hit
	r.mu.Unlock()
	if last != nil {
		injected.add(r.s.fn, "outages", 1)
	}
	// An Event that cannot be recorded holds nothing up.
	if last != nil && !tells(*last) && got != http.StatusServiceUnavailable {
		r.t.Errorf("with the API server out of order from %q on (%s) the event was answered %d, so that nobody sends it again; the log:\n%s", last, r.p.outage.name, got, broken.Log)
	}
	r.f = r.copyOf(nil)
	for _, ce := range events {
		r.deliver(ce)
	}
}

func tells(c kubetest.Request) bool {
	return c.Resource == kind.Events.Plural && c.Group == kind.Events.Group
}

// onStaleReads hands the copy the first event of the step while all that it has read
// before is served as it was then.
func (r *playing) onStaleReads() {
	r.t.Helper()
	events := r.feed.take()
	if len(events) == 0 {
		return
	}
	r.memory.use(true)
	r.f.Send(events[0])
	r.memory.use(false)
	injected.add(r.s.fn, "stale reads", r.memory.served)
	for _, ce := range events {
		r.deliver(ce)
	}
}

// end is what comes when the perturbation is over, and what has to hold then.
func (r *playing) end() {
	r.t.Helper()
	want := r.s.calm.state
	if r.p.single {
		if len(r.given) > 0 {
			r.t.Errorf("calls failed once (%v), and these events are dead letters: %v", r.hits, r.given)
		}
		if diff := cmp.Diff(want, r.now()); diff != "" {
			r.t.Errorf("calls failed once (%v), and the events alone do not lead to the same end (-calm +perturbed):\n%s\n%s", r.hits, diff, r.f.Log)
		}
	}
	late := r.late
	r.chance.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
	for _, ce := range late {
		r.deliver(ce)
	}
	r.finish()
	if diff := cmp.Diff(want, r.now()); diff != "" {
		r.t.Errorf("after a resync the end differs (-calm +perturbed), hit: %v:\n%s\n%s", r.hits, diff, r.f.Log)
	}
	r.rests()
}

// finish is one resync by a new copy, and what follows from it.
func (r *playing) finish() {
	r.t.Helper()
	r.f = r.copyOf(nil)
	r.f.Resync()
	r.settle(nil, -1)
}

// rests wants a pass of all events and a resync to write nothing.
func (r *playing) rests() {
	r.t.Helper()
	r.f.Asked()
	_, writes, _ := r.wire.counted()
	for _, ce := range r.feed.all() {
		r.deliver(ce)
	}
	r.f.Resync()
	if _, after, _ := r.wire.counted(); after != writes {
		r.t.Errorf("at the fixpoint it writes: %v", r.wire.writes[writes:])
	}
}

const calmly = "calm"

// learn plays the story in calm, once.
func (s *scenario) learn(t *testing.T) {
	t.Helper()
	s.once.Do(func() {
		s.calm.failed = !t.Run("Story", func(t *testing.T) {
			r := s.play(t, perturbation{name: calmly})
			s.calm.reads, s.calm.writes = r.wire.reads, r.wire.writes
			s.calm.events = r.sent
			before := r.now()
			r.finish()
			s.calm.state = r.now()
			if diff := cmp.Diff(before, s.calm.state); diff != "" {
				t.Errorf("a resync after a calm story changes something (-before +after):\n%s", diff)
			}
			r.rests()
			t.Logf("%s: %d events, %d reads, %d writes, %d objects at the end", s.fn, s.calm.events, len(s.calm.reads), len(s.calm.writes), len(s.calm.state))
			if len(s.calm.writes) == 0 || len(s.calm.state) == 0 {
				t.Errorf("the story of %s shows nothing: %d writes, %d objects", s.fn, len(s.calm.writes), len(s.calm.state))
			}
		})
	})
}
