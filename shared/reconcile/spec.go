package reconcile

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/shared/setting"
	"github.com/slipway-dev/slipway/shared/telemetry"
)

// Key names one object of the reconciled kind.
type Key struct {
	Namespace, Name string
	// Part is the part of what hangs on the object that an event concerns, for
	// functions that can look at one part alone (Function.GatherPart); empty for
	// the whole.
	Part string
}

// String is "namespace/name", or the name alone; a part follows after "#".
func (k Key) String() string {
	s := k.Name
	if k.Namespace != "" {
		s = k.Namespace + "/" + k.Name
	}
	if k.Part != "" {
		s += "#" + k.Part
	}
	return s
}

// Spec declares a function: from it the event sources, triggers, rights and
// the README's table are generated, and the engine takes its wiring.
type Spec struct {
	// Name is the function's name: its folder, its Service, its ServiceAccount.
	Name string
	// Summary is one line for people.
	Summary string
	// TakesOver names what the function replaces, for the README's table.
	TakesOver string
	// Reconciles is the kind whose objects are reconciled, on the management
	// cluster.
	Reconciles kind.Resource
	// Watches are the kinds whose events wake the function. Reconciles is
	// listed too.
	Watches []Watch
	// Grants are the rights on the management cluster.
	Grants []Grant
	// TargetGrants are the rights of the credential on each target cluster; in
	// single-cluster mode the function's own account holds them.
	TargetGrants []Grant
	// Children are the kinds whose orphans a resync removes.
	Children []Children
	// Targets connects to the target clusters and names those that orphans are
	// looked for on, besides the management cluster; nil for none. One that
	// does not answer is left out until the next resync.
	Targets func(ctx context.Context, r *read.Reader) ([]string, error)
	// Connected tells which objects are concerned when a remote cluster comes
	// or goes; nil: the function is not woken by that.
	Connected func(ctx context.Context, r *read.Reader, cluster string) ([]Key, error)
	// Env are the settings of the function, with their defaults, for the
	// generated Service.
	Env []setting.EnvVar
	// Settings names the ConfigMap that functions of one family take their Env
	// from, key by key, so that a setting stands in one place; empty for none.
	Settings string
	// ConcludesOutages hands writes that the management cluster did not answer to
	// Conclude, like refused ones: it says so on the object and asks for a retry.
	// Otherwise the call ends there, and nothing but the log tells of it.
	ConcludesOutages bool
	// TellsEachRound lets a round whose plan asks to continue be concluded too, as far
	// as Events and observations go: for functions that write down what they have
	// told, round by round.
	TellsEachRound bool
	// Metrics are the function's own, beside those of the runtime. Conclusions
	// observe counters and histograms, gauges are counted as Gauges say.
	Metrics []telemetry.Instrument
	// Gauges say what the gauges among Metrics count.
	Gauges []Gauge
	// Predecessors are the field managers of what the function takes over from. What
	// they own of an object by create or update becomes the function's own with the
	// first apply, so that a field which is left out later really goes.
	Predecessors []string
	// Manager is the field manager, for a function that goes on under the name of
	// what it takes over from; empty for the standard one.
	Manager string
	// Reporter is the reporting controller of Kubernetes Events; empty for the
	// standard one.
	Reporter string
	// Concurrency is how many requests one process takes at once.
	Concurrency int
	// Memory is what one process may take together with its children; empty stands
	// for 128Mi. MemoryRequested is what its Pod asks for; empty stands for 48Mi.
	Memory, MemoryRequested string
}

// GrantsFor are the rights on the target clusters of a provider, as in Watch.
func (s Spec) GrantsFor(provider string) []Grant {
	return slices.DeleteFunc(slices.Clone(s.TargetGrants), func(g Grant) bool { return g.Provider != provider })
}

// FieldManager is the name under which the function owns fields.
func (s Spec) FieldManager() string { return cmp.Or(s.Manager, "slipway-"+s.Name) }

// MemoryLimit is what one process may take.
func (s Spec) MemoryLimit() string { return cmp.Or(s.Memory, "128Mi") }

// MemoryRequest is what one process is sure of: at rest it takes about 25 MiB, under
// load about 45.
func (s Spec) MemoryRequest() string { return cmp.Or(s.MemoryRequested, "48Mi") }

// Watch is one kind whose changes wake the function.
type Watch struct {
	Resource kind.Resource
	// Selector limits the watch to a label selector: kinds that others use too
	// must not keep functions awake.
	Selector string
	// Namespace limits the watch to one namespace; adapter only.
	Namespace string
	// Names limits it to objects of these names; adapter only.
	Names []string
	// Owner limits it to objects that one of this kind owns, for kinds that others use
	// too and whose objects cannot be labelled; adapter only.
	Owner kind.Resource
	// Fields limits it to changes of these fields, as JSON pointers, for kinds whose
	// objects change all the time in what does not concern the function; adapter only.
	Fields []string
	// Adapter sends the watch through sources/adapter instead of an
	// ApiServerSource: for kinds whose group is optional, whose version
	// differs between installations, or whose plural Knative guesses wrong.
	Adapter bool
	// Remote watches the kind on target clusters too.
	Remote bool
	// Provider says which target clusters are meant: empty for those of
	// KubevirtConfigs, ProviderClusterAPI for those of Cluster API. With a provider
	// the kind is watched there alone: what is watched of it on the management
	// cluster is another Watch.
	Provider string
	// Keys maps an event to the keys it concerns; nil maps it to its own
	// namespace and name. Keys of objects that do not exist are harmless.
	Keys func(ctx context.Context, r *read.Reader, e event.Event) ([]Key, error)
}

// ProviderClusterAPI are the clusters that Cluster API Clusters stand for. Each is
// called "namespace/name" in events.
const ProviderClusterAPI = "capi"

// Grant is one right.
type Grant struct {
	Resource    kind.Resource
	Subresource string
	Verbs       []string
	// Names limits the right to objects of these names.
	Names []string
	// Provider says, of a right on target clusters, on whose: as in Watch. What is for
	// clusters of a provider is no right on any other cluster, the management cluster
	// included. No role is generated for it: such a cluster's kubeconfig comes with
	// the cluster.
	Provider string
	// Implied says why a right is needed although no call uses it directly.
	Implied string
}

// Children describes one kind of child object for the clean-up of orphans: a
// child is deleted when its marks say that it was made by this installation
// and a live read shows that its owner is gone.
type Children struct {
	Resource kind.Resource
	// Selector finds the children.
	Selector string
	// Local tells that the children lie beside their owner, on the management
	// cluster alone: an installation is not asked for, and an owner without a UID is gone
	// if none has its name.
	Local bool
	// Owner reads a child's marks: the key and UID of its owner, and the
	// installation that made it. ok is false for what is not certainly ours.
	Owner func(child *unstructured.Unstructured) (owner Key, uid, installation string, ok bool)
	// Of selects the children of one owner, of Local ones: an event about an owner that is
	// gone, or about a child of one, then removes what is left at once. "" selects none.
	// Nil: only the resync looks.
	Of func(owner Key) (selector string)
	// InUse reports whether somebody else relies on a child whose owner is
	// gone; such a child stays. Nil: nobody can.
	InUse func(ctx context.Context, r *read.Reader, cluster string, child *unstructured.Unstructured) (bool, error)
}

// Gauge counts objects at the end of each resync: a function at zero has no memory.
type Gauge struct {
	// Metric is the name of a gauge among Metrics.
	Metric string
	// Resource is what is counted, those under Selector.
	Resource kind.Resource
	Selector string
	// Targets counts on the target clusters too. One that does not answer is left
	// out.
	Targets bool
	// Labels are the label values of an object; not ok: it does not count. Owned
	// tells whether a reconciled object of that key and UID is there.
	Labels func(obj *unstructured.Unstructured, owned func(owner Key, uid string) bool) (values []string, ok bool)
}

// Function is a declared function together with its three steps.
type Function[In any] struct {
	Spec Spec
	// Gather reads all that one decision needs. root is the reconciled object,
	// never nil. What may be written is read first, what is decided from last.
	Gather func(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) (In, error)
	// GatherPart is Gather for one part of what hangs on the object; nil for a
	// function that knows no parts.
	GatherPart func(ctx context.Context, r *read.Reader, root *unstructured.Unstructured, part string) (In, error)
	// Render renders a template, for decisions that need one; else nil. An error
	// says that the same request may work later. The result is the caller's own.
	Render func(ctx context.Context, request render.Request) (render.Result, error)
	// Stays tells of an object that was created whether it may stay: root is the
	// reconciled object as it is after that. It is pure, and may be nil.
	Stays func(root *unstructured.Unstructured, created plan.Entry) bool
	// Decide is pure.
	Decide func(now time.Time, in In, known plan.Answers) plan.Decision
	// Conclude is pure. Outcomes hold one entry per write that was intended.
	Conclude func(now time.Time, in In, known plan.Answers, outcomes plan.Outcomes) plan.Conclusion
}
