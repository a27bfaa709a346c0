package model

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// System is an installation with the changes of one kind of object.
type System struct {
	// Source is how long the source needs for one event, Broker how long the broker
	// does until the function has it.
	Source, Broker time.Duration
	// Slots is how many events the function takes at once, on all its processes; Own is
	// its own time for one, without that of the API server.
	Slots int
	Own   time.Duration
	// Processors are the API server's, Reads and Writes the requests of an event that
	// finds something to do, Echoes how many events come back of those, each of which
	// costs EchoReads.
	Processors                       int
	Reads, Writes, Echoes, EchoReads int
	// Read and Write are the API server's time for one request.
	Read, Write time.Duration
	// Objects is how many there are.
	Objects int
}

// OneObject is the station of events that are about the same object.
const OneObject = "one object"

// Limit is the most changes a second that one station bears.
type Limit struct {
	Station string
	Rate    float64
}

// cost is the API server's time for the first event of a change and for an echo.
func (s System) cost() (first, echo time.Duration) {
	return time.Duration(s.Reads)*s.Read + time.Duration(s.Writes)*s.Write, time.Duration(s.EchoReads) * s.Read
}

// Limits are those of all stations, the lowest first: that one breaks first.
func (s System) Limits() []Limit {
	first, echo := s.cost()
	echoes := float64(s.Echoes)
	// Requests of one event come one after the other, at best each at once.
	held := (s.Own + first).Seconds() + echoes*(s.Own+echo).Seconds()
	limits := []Limit{
		// Echoes are of other kinds, with a source of their own each.
		{"source, one kind", 1 / s.Source.Seconds()},
		{"function's slots", float64(s.Slots) / held},
		{"API server", float64(s.Processors) / (first.Seconds() + echoes*echo.Seconds())},
		{OneObject, 1 / (s.Own + first).Seconds()},
	}
	slices.SortStableFunc(limits, func(a, b Limit) int {
		switch {
		case a.Rate < b.Rate:
			return -1
		case a.Rate > b.Rate:
			return 1
		}
		return 0
	})
	return limits
}

// Result is what a simulation came to.
type Result struct {
	// Changes is how many were made, P50 and P99 how long they took until the function
	// was done with them.
	Changes  int
	P50, P99 time.Duration
	// Handled is how many events the function handled, echoes included; with events of
	// one object taken together there are fewer than were sent.
	Handled int
}

// event is something that is on its way.
type event struct {
	at     time.Duration
	stage  int
	object int
	echo   bool
	// changed are the times of the changes that wait for it.
	changed []time.Duration
}

// Stages of an event.
const (
	toFunction = iota
	atServer
	done
)

// queue is what happens next.
type queue []*event

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	if e, ok := x.(*event); ok {
		*q = append(*q, e)
	}
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// simulation is a run.
type simulation struct {
	System
	next    queue
	waiting []*event
	busy    int
	// servers are when each of the API server's processors is free, echoed that of the
	// source of echoes.
	servers []time.Duration
	echoed  time.Duration
	// running and pending are the events of an object in the function.
	running map[int]bool
	pending map[int]*event
	took    []time.Duration
	handled int
}

// Run simulates so many changes a second, at random times, for a while.
func (s System) Run(rate float64, length time.Duration, seed uint64) Result {
	random := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // it has to be the same again
	x := &simulation{System: s, servers: make([]time.Duration, s.Processors), running: map[int]bool{}, pending: map[int]*event{}}
	var at, source time.Duration
	for changes := 0; ; changes++ {
		at += time.Duration(random.ExpFloat64() / rate * float64(time.Second))
		if at > length {
			break
		}
		source = max(source, at) + s.Source
		heap.Push(&x.next, &event{at: source + s.Broker, object: random.IntN(s.Objects), changed: []time.Duration{at}})
	}
	for x.next.Len() > 0 {
		e, _ := heap.Pop(&x.next).(*event)
		x.step(e)
	}
	slices.Sort(x.took)
	r := Result{Changes: len(x.took), Handled: x.handled}
	if len(x.took) > 0 {
		r.P50, r.P99 = x.took[len(x.took)/2], x.took[len(x.took)*99/100]
	}
	return r
}

func (x *simulation) step(e *event) {
	switch e.stage {
	case toFunction:
		if x.running[e.object] {
			if waits := x.pending[e.object]; waits != nil {
				waits.changed = append(waits.changed, e.changed...)
				waits.echo = waits.echo && e.echo
				return
			}
			x.pending[e.object] = e
			return
		}
		x.running[e.object] = true
		if x.busy == x.Slots {
			x.waiting = append(x.waiting, e)
			return
		}
		x.begin(e)
	case atServer:
		first, echo := x.cost()
		cost := first
		if e.echo {
			cost = echo
		}
		free := slices.Index(x.servers, slices.Min(x.servers))
		x.servers[free] = max(x.servers[free], e.at) + cost
		e.at, e.stage = x.servers[free], done
		heap.Push(&x.next, e)
	case done:
		x.end(e)
	}
}

// begin takes an event into a slot.
func (x *simulation) begin(e *event) {
	x.busy++
	x.handled++
	e.at, e.stage = e.at+x.Own, atServer
	heap.Push(&x.next, e)
}

func (x *simulation) end(e *event) {
	for _, changed := range e.changed {
		x.took = append(x.took, e.at-changed)
	}
	x.busy--
	delete(x.running, e.object)
	if !e.echo {
		for range x.Echoes {
			x.echoed = max(x.echoed, e.at) + x.Source
			heap.Push(&x.next, &event{at: x.echoed + x.Broker, object: e.object, echo: true})
		}
	}
	if waits := x.pending[e.object]; waits != nil {
		delete(x.pending, e.object)
		waits.at, waits.stage = e.at, toFunction
		heap.Push(&x.next, waits)
	}
	if len(x.waiting) > 0 {
		following := x.waiting[0]
		x.waiting = x.waiting[1:]
		following.at = e.at
		x.begin(following)
	}
}
