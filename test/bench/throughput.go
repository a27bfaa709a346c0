package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/reconcile"
)

const (
	// parallel is how many are taken care of at once.
	parallel = 10
	// turn is how many one side does before the other has its turn: what else the
	// machine does meets both.
	turn = 20
	// enough is how long our side shall have taken, where its objects are made quickly; most is
	// how many times as many objects that may take.
	enough, most = 8 * time.Second, 6
	// pattern is the name that the recorded requests carry.
	pattern = "bench-0000"
	// maxRounds is how many events an object may take until nothing is left to do.
	maxRounds = 8
)

// compared is how the handler did beside a raw client.
type compared struct {
	Objects           int     `json:"objects"`
	RequestsPerObject int     `json:"requestsPerObject"`
	WritesPerObject   int     `json:"writesPerObject"`
	FixpointReads     int     `json:"fixpointReads"`
	FixpointWrites    int     `json:"fixpointWrites"`
	PerSecond         float64 `json:"objectsPerSecond"`
	// The ratios are medians of the turns: what else the machine does meets few of them.
	ThroughputRatio float64 `json:"throughputRatio"`
	WritesOnlyRatio float64 `json:"throughputRatioToWritesAlone"`
	// Turns are all ratios, one of each turn, the smallest first.
	Turns []float64 `json:"throughputRatioOfEachTurn"`
}

// side is one of those that are compared.
type side struct {
	prefix string
	do     func(ctx context.Context, name string, names *strings.Replacer) error
	// took is how long each turn was.
	took []time.Duration
}

// total is how long all turns were.
func (s *side) total() time.Duration {
	var sum time.Duration
	for _, took := range s.took {
		sum += took
	}
	return sum
}

// over is how much longer each turn of a side was than that of another, the smallest first.
func (s *side) over(other *side) []float64 {
	ratios := make([]float64, len(s.took))
	for i := range ratios {
		ratios[i] = s.took[i].Seconds() / other.took[i].Seconds()
	}
	slices.Sort(ratios)
	return ratios
}

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// compare lets the handler, driven directly, and a raw client do the same for as many
// objects, in turns.
func (x *subject) compare(ctx context.Context, count int) (compared, error) {
	limit := most * count
	if x.Most > 0 {
		count, limit = min(count, x.Most), x.Most
	}
	var r compared
	all, rounds, err := x.record(ctx, &r)
	if err != nil {
		return r, err
	}
	raw, err := rest.HTTPClientFor(x.place.kube.Config)
	if err != nil {
		return r, err
	}
	sides := []*side{
		{prefix: "ours", do: func(ctx context.Context, name string, _ *strings.Replacer) error {
			for range rounds {
				if err := x.handle(ctx, name); err != nil {
					return err
				}
			}
			return nil
		}},
		{prefix: "same", do: func(ctx context.Context, _ string, names *strings.Replacer) error {
			return replay(ctx, x.place.kube.Config, raw, all.requests, names)
		}},
		{prefix: "alone", do: func(ctx context.Context, _ string, names *strings.Replacer) error {
			return replay(ctx, x.place.kube.Config, raw, all.writes(), names)
		}},
	}
	ours, same, alone := sides[0], sides[1], sides[2]
	for r.Objects < count || (r.Objects < limit && ours.total() < enough) {
		n := min(turn, limit-r.Objects)
		for i := range sides {
			if err := x.turn(ctx, sides[(i+r.Objects/turn)%len(sides)], r.Objects, n); err != nil {
				return r, err
			}
		}
		r.Objects += n
	}
	r.PerSecond = float64(r.Objects) / ours.total().Seconds()
	r.Turns = same.over(ours)
	r.ThroughputRatio = median(r.Turns)
	if r.WritesPerObject > 0 {
		r.WritesOnlyRatio = median(alone.over(ours))
	}
	return r, nil
}

// record keeps the requests of one creation, for the raw client, until a round has
// nothing to do, and counts the requests of that round. Of what there is one alone, the
// last round is what is done again and again.
func (x *subject) record(ctx context.Context, r *compared) (all recording, rounds int, err error) {
	if x.pattern, err = x.prepare(ctx, pattern); err != nil {
		return all, 0, err
	}
	rec := x.place.proxy.recorder
	rec.take()
	rec.on.Store(true)
	defer rec.on.Store(false)
	var last recording
	for rounds < maxRounds {
		if err := x.handle(ctx, pattern); err != nil {
			return all, rounds, err
		}
		last = recording{requests: rec.take()}
		writes := len(last.writes())
		r.FixpointReads, r.FixpointWrites = len(last.requests)-writes, writes
		if writes == 0 {
			break
		}
		rounds++
		all.requests = append(all.requests, last.requests...)
	}
	r.RequestsPerObject, r.WritesPerObject = len(all.requests), len(all.writes())
	if x.Single {
		all, rounds = last, 1
	}
	all.requests = slices.DeleteFunc(all.requests, furtherPage)
	for i := range all.requests {
		if all.requests[i].body, err = unversioned(all.requests[i].body); err != nil {
			return all, rounds, err
		}
	}
	return all, rounds, nil
}

// turn prepares some objects for a side, and then times what it does for them.
func (x *subject) turn(ctx context.Context, s *side, from, count int) error {
	names := make([]string, count)
	replacers := make([]*strings.Replacer, count)
	atOnce := parallel
	if x.Single {
		// Calls for one object wait for each other.
		atOnce = 1
		for i := range names {
			names[i], replacers[i] = pattern, strings.NewReplacer()
		}
	} else if err := each(count, parallel, func(i int) error {
		names[i] = fmt.Sprintf("%s-%04d", s.prefix, from+i)
		marks, err := x.prepare(ctx, names[i])
		if err != nil {
			return err
		}
		pairs := []string{pattern, names[i]}
		for n := range marks {
			pairs = append(pairs, x.pattern[n], marks[n])
		}
		replacers[i] = strings.NewReplacer(pairs...)
		return nil
	}); err != nil {
		return err
	}
	started := time.Now()
	err := profiled(x.Function+"."+s.prefix, func() error {
		return each(count, atOnce, func(i int) error { return s.do(ctx, names[i], replacers[i]) })
	})
	s.took = append(s.took, time.Since(started))
	return err
}

// each does something for many, a few at once.
func each(count, atOnce int, do func(i int) error) error {
	errs := make([]error, count)
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range count {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	wg.Wait()
	return cmp.Or(errs...)
}

func handle(ctx context.Context, host *reconcile.Host, ce cloudevents.Event) error {
	_, err := host.Handle(ctx, ce)
	var result *cehttp.Result
	if !errors.As(err, &result) || result.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the function answered %w for %s %q", err, ce.Extensions()["kind"], ce.Extensions()["name"])
	}
	return nil
}

func added(apiVersion, kindName, namespace, name string) cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetID(name)
	ce.SetSource("bench")
	ce.SetType("dev.knative.apiserver.ref.add")
	for key, value := range map[string]string{"apiversion": apiVersion, "kind": kindName, "namespace": namespace, "name": name} {
		if value != "" {
			ce.SetExtension(key, value)
		}
	}
	return ce
}
