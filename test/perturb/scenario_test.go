package perturb

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	slipway "github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/record"
	kubetest "github.com/slipway-dev/slipway/test/kube"
	"github.com/slipway-dev/slipway/test/suite"
)

// label marks objects without a namespace as those of one world: copies of the
// function see no others.
const label = "perturb.test/world"

// scenario is a story about one function.
type scenario struct {
	// fn is the function's name.
	fn    string
	suite *suite.Suite
	// given makes what stands around; nobody is told of it. What it returns is kept for
	// the other fields.
	given func(w *world)
	// steps are what people do, one after the other. They rely on nothing that the
	// function does.
	steps []func(w *world)
	// neighbours do what others do when they see what the function has done; nil for
	// nothing.
	neighbours func(w *world)
	// start makes a copy of the function.
	start func(w *world, options ...suite.Option) *suite.Copy
	// state is what is compared; nil for all of the world.
	state func(w *world) map[string]string
	// alone: its objects have fixed names, so that no other run of it may go on.
	alone bool
	// remote is the namespace that stands for a workload cluster, and its name, if any.
	remote func(w *world) (namespace, cluster string)

	// turn is held by the one run that may go on.
	turn sync.Mutex
	// ready is when all that the function needs is installed, once when its story was
	// played in calm.
	ready, once sync.Once
	calm        calmRun
}

// calmRun is what an unperturbed story was like.
type calmRun struct {
	failed bool
	state  map[string]string
	// reads and writes are the calls that the function made.
	reads, writes []kubetest.Request
	// events is how many were delivered, perStep how many calls the first event of
	// each step took.
	events  int
	perStep [][]kubetest.Request
}

// world is where a story is played.
type world struct {
	*suite.World
	s    *scenario
	feed *feed
	wire *wire
	// current is the same for the proxy, which others than the test call.
	current atomic.Pointer[wire]
	// proxy is the way to the workload cluster, where there is one.
	proxy *suite.Proxy
	// notes are a scenario's own.
	notes map[string]string
	// proves: what copies do is recorded, and has to be the same when it is played again.
	proves bool
}

// scenarios are all there are, in the order of the functions' table.
var scenarios = []*scenario{
	baseline, anchor, check, helmReleases, kustomizations, machines, nodes, pools, organizations, releases, renderer, router, worktrees,
}

func TestEveryFunctionHasAScenario(t *testing.T) {
	var have, want []string
	for _, s := range scenarios {
		have = append(have, s.fn)
	}
	for _, spec := range slipway.Specs() {
		want = append(want, spec.Name)
	}
	slices.Sort(have)
	if !slices.Equal(have, want) {
		t.Errorf("there are scenarios for %v, and the functions %v", have, want)
	}
}

// run starts a copy of a declared function.
func run[In any](w *world, fn reconcile.Function[In], options ...suite.Option) *suite.Copy {
	return suite.Run(w.World, fn, options...)
}

// newWorld makes the world of a story, with all that stands around.
func (s *scenario) newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: s.suite.World(t), s: s, notes: map[string]string{}}
	w.feed = newFeed(w.NS, s)
	w.Client = w.feed.client(t, w.Env.Config)
	if s.remote != nil {
		w.proxy = suite.NewProxy(t, w.Env.Config)
		w.proxy.Before(func(req *http.Request) (*http.Response, error) { return w.current.Load().there(req) })
	}
	w.wire = &wire{}
	w.current.Store(w.wire)
	s.given(w)
	if s.remote != nil {
		w.feed.remoteNS, w.feed.cluster = s.remote(w)
	}
	w.feed.take()
	return w
}

// copyOf starts a copy whose calls meet with some mischief; nil for none.
func (w *world) copyOf(m *mischief) *suite.Copy {
	w.TB.Helper()
	w.wire = &wire{feed: w.feed, mischief: m, alone: w.s.alone}
	wire := w.wire
	w.current.Store(wire)
	f := w.s.start(w, suite.WithOptions(func(o *reconcile.Options) {
		wire.wrap(o.Config)
		if !w.proves && !suite.Exhaustive() {
			o.Recorder = record.New(record.Policy{Off: true}, slog.New(slog.DiscardHandler))
		}
	}))
	w.feed.declare(f.Spec())
	return f
}

// now is everything that is compared.
func (w *world) now() map[string]string {
	w.TB.Helper()
	look := w.s.state
	if look == nil {
		look = func(w *world) map[string]string { return w.State() }
	}
	all := map[string]string{}
	for key, text := range look(w) {
		kindName, name, _ := strings.Cut(key, "/")
		if slices.Contains(clusterwide, kindName) && !strings.Contains(name, w.NS) {
			continue // another test's
		}
		all[strings.ReplaceAll(key, w.NS, "NAMESPACE")] = w.anonymous(text)
	}
	return all
}

// anonymous takes out of a text what differs from world to world: its name, and where
// its proxy listens.
func (w *world) anonymous(text string) string {
	text = strings.ReplaceAll(text, w.NS, "NAMESPACE")
	if w.proxy != nil {
		text = strings.ReplaceAll(text, w.proxy.URL, "PROXY")
	}
	return text
}

// clusterwide are the kinds without a namespace of which each world has its own objects,
// called after it.
var clusterwide = []string{dockyards.Organizations.Kind, kinds.KubevirtConfigs.Kind}

// marked is the metadata of an object without a namespace.
func (w *world) marked(name string) string {
	return fmt.Sprintf("{name: %s, labels: {%s: %s}}", name, label, w.NS)
}

// create makes objects of a manifest, written for any world.
func (w *world) create(manifest string) {
	w.TB.Helper()
	w.Create(strings.ReplaceAll(manifest, "WORLD", w.NS))
}

// has tells whether something is there.
func (w *world) has(res kind.Resource, name string) bool {
	w.TB.Helper()
	return w.Get(res, name) != nil
}

// tally counts what was injected: by function and by what it was.
type tally struct {
	mu     sync.Mutex
	counts map[string]map[string]int
}

var injected = &tally{counts: map[string]map[string]int{}}

func (y *tally) add(fn, what string, n int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.counts[fn] == nil {
		y.counts[fn] = map[string]int{}
	}
	y.counts[fn][what] += n
}

var columns = []string{"runs", "events lost", "events doubled", "faults", "kills", "stale reads", "outages", "holds"}

func (y *tally) table() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%-24s", "function")
	for _, column := range columns {
		fmt.Fprintf(&b, "%16s", column)
	}
	b.WriteString("\n")
	for _, s := range slices.SortedFunc(slices.Values(scenarios), func(a, b *scenario) int { return cmp.Compare(a.fn, b.fn) }) {
		fmt.Fprintf(&b, "%-24s", s.fn)
		for _, column := range columns {
			fmt.Fprintf(&b, "%16d", y.counts[s.fn][column])
		}
		b.WriteString("\n")
	}
	return b.String()
}
