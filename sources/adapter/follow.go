package adapter

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"knative.dev/eventing/pkg/adapter/apiserver"
)

const (
	// rediscovery is how often every group is looked at without a reason: no
	// CustomResourceDefinition tells of an aggregated API.
	rediscovery = time.Minute
	// overlap is how long a receive adapter outlives the start of its successor
	// at most; it ends when the successor watches.
	overlap = 5 * time.Second
)

// settling is when discovery is read after a CustomResourceDefinition changed:
// the API server publishes a new API a moment after it says so.
var settling = []time.Duration{
	0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond,
	800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond,
}

// receiver watches the resources of one unit until ctx is done, and calls watching
// when all its watches have begun.
type receiver func(ctx context.Context, key unit, watches []apiserver.ResourceWatch, watching func()) error

// follower keeps the receivers of one cluster in line with what the cluster
// serves.
type follower struct {
	resources resources
	discovery discoverer
	receive   receiver
	log       *slog.Logger

	// changed carries the groups to look at.
	changed chan string
	// followed is set once a group was looked at with success.
	followed atomic.Bool
	// begun is closed when every group was looked at and what was found is
	// watched, or should be.
	begun chan struct{}

	running map[unit]*adapterRun
	// failing are the groups of which the last look failed.
	failing map[string]bool
	wait    sync.WaitGroup
}

// adapterRun is a receive adapter at work.
type adapterRun struct {
	watches []apiserver.ResourceWatch
	cancel  context.CancelFunc
	// watching is closed when it watches, ended when it returned.
	watching, ended chan struct{}
}

func newFollower(resources resources, discovery discoverer, receive receiver, log *slog.Logger) *follower {
	return &follower{
		resources: resources, discovery: discovery, receive: receive, log: log,
		changed: make(chan string, 64),
		begun:   make(chan struct{}),
		running: map[unit]*adapterRun{},
		failing: map[string]bool{},
	}
}

// run follows until ctx is done and every receive adapter has returned.
func (f *follower) run(ctx context.Context) {
	defer f.wait.Wait()
	// due is when to look at a group, and how often it has been looked at since
	// something changed.
	type look struct {
		at    time.Time
		round int
	}
	due := map[string]look{}
	for _, group := range f.resources.groups() {
		due[group] = look{at: time.Now()}
	}
	first := sync.OnceFunc(func() { f.wait.Go(f.begin(ctx)) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case group := <-f.changed:
			due[group] = look{at: time.Now()}
		case <-timer.C:
		}
		now := time.Now()
		for _, group := range slices.Sorted(maps.Keys(due)) {
			if due[group].at.After(now) {
				continue
			}
			f.look(ctx, group)
			round := due[group].round + 1
			pause := rediscovery
			if round < len(settling) {
				pause = settling[round]
			}
			due[group] = look{at: time.Now().Add(pause), round: round}
		}
		first()
		next := rediscovery
		for _, look := range due {
			next = min(next, time.Until(look.at))
		}
		timer.Reset(max(next, 0))
	}
}

// look reads the discovery of one group and starts, replaces and stops receive
// adapters accordingly.
func (f *follower) look(ctx context.Context, group string) {
	want, err := served(f.discovery, f.resources, group)
	if err != nil {
		// What runs goes on: it reconnects on its own.
		level := slog.LevelDebug
		if !f.failing[group] {
			level = slog.LevelWarn
		}
		f.failing[group] = true
		f.log.Log(ctx, level, "cannot follow what is served", "group", group, "error", err)
		return
	}
	delete(f.failing, group)
	for _, key := range f.units(group, want) {
		f.settle(ctx, key, want[key])
	}
	f.followed.Store(true)
}

// units are those of the group that are wanted or running, sorted.
func (f *follower) units(group string, want map[unit][]apiserver.ResourceWatch) []unit {
	all := map[unit]bool{}
	for key := range want {
		all[key] = true
	}
	for key := range f.running {
		if key.group == group {
			all[key] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), unit.compare)
}

// begin returns what waits until everything that runs now watches, and tells.
func (f *follower) begin(ctx context.Context) func() {
	running := slices.Collect(maps.Values(f.running))
	return func() {
		late := time.NewTimer(overlap)
		defer late.Stop()
		for _, run := range running {
			select {
			case <-ctx.Done():
				return
			case <-run.watching:
			case <-run.ended:
			case <-late.C:
				// What may not be watched must not hold up the rest.
				close(f.begun)
				return
			}
		}
		close(f.begun)
	}
}

func (f *follower) settle(ctx context.Context, key unit, want []apiserver.ResourceWatch) {
	before := f.running[key]
	if before.alive() && slices.Equal(before.watches, want) {
		return
	}
	if before == nil && len(want) == 0 {
		return
	}
	delete(f.running, key)
	if len(want) == 0 {
		f.log.Info("stopped watching", "group", key.group, "mode", key.mode)
		before.cancel()
		return
	}
	f.start(ctx, key, want)
	if after := f.running[key]; before != nil {
		f.wait.Go(func() { relieve(ctx, before, after) })
	}
}

// relieve ends a receive adapter when its successor watches.
func relieve(ctx context.Context, before, after *adapterRun) {
	defer before.cancel()
	select {
	case <-ctx.Done():
	case <-after.watching:
	case <-after.ended:
	case <-time.After(overlap):
	}
}

func (f *follower) start(ctx context.Context, key unit, watches []apiserver.ResourceWatch) {
	ctx, cancel := context.WithCancel(ctx)
	run := &adapterRun{watches: watches, cancel: cancel, watching: make(chan struct{}), ended: make(chan struct{})}
	f.running[key] = run
	f.wait.Go(func() {
		defer close(run.ended)
		defer cancel()
		err := f.receive(ctx, key, watches, sync.OnceFunc(func() {
			close(run.watching)
			f.log.Info("watches", "group", key.group, "mode", key.mode, "resources", names(watches))
		}))
		if err == nil || ctx.Err() != nil {
			return
		}
		f.log.Warn("a receive adapter ended", "group", key.group, "error", err)
		f.notify(key.group)
	})
}

// notify asks for a look at the group. It never blocks: if the channel is full,
// a look at everything is near.
func (f *follower) notify(group string) {
	select {
	case f.changed <- group:
	default:
	}
}

func (r *adapterRun) alive() bool {
	if r == nil {
		return false
	}
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

func names(watches []apiserver.ResourceWatch) []string {
	var all []string
	for _, watch := range watches {
		all = append(all, watch.GVR.Resource+"."+watch.GVR.Version)
	}
	return all
}

// resources are what is watched on one cluster.
type resources []Resource

// groups are the API groups of the resources, sorted.
func (r resources) groups() []string {
	all := map[string]bool{}
	for _, resource := range r {
		all[resource.Group] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// defined tells whether a CustomResourceDefinition can make any of the resources: its
// group has a dot.
func (r resources) defined() bool {
	return slices.ContainsFunc(r, func(resource Resource) bool { return strings.Contains(resource.Group, ".") })
}

// kinds are the kinds of the resources.
func (r resources) kinds() map[schema.GroupResource]string {
	all := map[schema.GroupResource]string{}
	for _, resource := range r {
		all[schema.GroupResource{Group: resource.Group, Resource: resource.Resource}] = resource.Kind
	}
	return all
}

// groupOf is the API group that a CustomResourceDefinition of this name belongs
// to, if it is one of the resources.
func (r resources) groupOf(definition string) (string, bool) {
	named := schema.ParseGroupResource(definition)
	for _, resource := range r {
		if resource.Group == named.Group && resource.Resource == named.Resource {
			return resource.Group, true
		}
	}
	return "", false
}
