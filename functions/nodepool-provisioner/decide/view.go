package decide

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// view is one decision while it is made: what is known, what follows from it, and
// what shall be written.
type view struct {
	now     time.Time
	in      Input
	known   plan.Answers
	pool    *v1alpha3.NodePool
	cluster *v1alpha3.Cluster
	// name and clusterName are those of the pool and its Cluster.
	name, clusterName string
	// unreadable is why spec.resources and spec.storageResources could not be read.
	unreadable *problem
	// silent: nothing is written, not even the status.
	silent bool

	// template, config and machines are what is said about each part. Of a control
	// plane, config and machines are one.
	template, config, machines *verdict

	// live is the pool's own TalosControlPlane or MachineDeployment; nil for none.
	live *unstructured.Unstructured
	// handsOff: what keeps the machines is left alone.
	handsOff bool
	// machine and talos are what machines shall be; nil if that cannot be said.
	machine *machine
	talos   *talos
	// today is the hash of both; empty unless both are known in full.
	today string
	phase phase
	// version is the Kubernetes version; empty for none that can be used.
	version string
	// infrastructure and bootstrap name the templates that machines shall be made
	// from.
	infrastructure, bootstrap string
	// machineShelf and configShelf hold the pool's templates; the second is nil for a
	// control plane.
	machineShelf, configShelf *shelf
	// changes are the inputs that a rollout carries out.
	changes []string

	templates, scaling, rolling, references, pruning []plan.Entry

	needs   []plan.Need
	reasons []string
	plan    plan.Plan
}

func newView(now time.Time, in Input, known plan.Answers) *view {
	v := &view{now: now, in: in, known: known, name: in.Pool.GetName()}
	v.readPool()
	v.template, v.config, v.machines = &verdict{}, &verdict{}, &verdict{}
	if v.controlPlane() {
		v.config = v.machines
	}
	if in.Cluster != nil {
		v.clusterName = in.Cluster.GetName()
		cluster, err := plan.Typed[v1alpha3.Cluster](in.Cluster)
		if err != nil {
			cluster = readableCluster(in.Cluster)
		}
		v.cluster = cluster
	}
	return v
}

// readPool reads the pool. Sizes that cannot be read at all are a problem, and the
// rest of the pool is still looked after.
func (v *view) readPool() {
	pool, err := plan.Typed[v1alpha3.NodePool](v.in.Pool)
	if err == nil {
		v.pool = pool
		return
	}
	p := invalid("spec.resources or spec.storageResources cannot be read: write sizes like 4Gi")
	v.unreadable = &p
	bare := v.in.Pool.DeepCopy()
	drop(bare.Object, "spec", "resources")
	drop(bare.Object, "spec", "storageResources")
	drop(bare.Object, "status")
	if v.pool, err = plan.Typed[v1alpha3.NodePool](bare); err != nil {
		v.pool = &v1alpha3.NodePool{}
		v.pool.Spec.ControlPlane, _ = at(bare.Object, "spec", "controlPlane").(bool)
	}
}

// readableCluster is a Cluster with the fields that a decision needs, of one that
// cannot be read as a whole.
func readableCluster(obj *unstructured.Unstructured) *v1alpha3.Cluster {
	cluster := &v1alpha3.Cluster{}
	cluster.Spec.Version = text(obj.Object, "spec", "version")
	cluster.Spec.NoDefaultNetworkPlugin, _ = at(obj.Object, "spec", "noDefaultNetworkPlugin").(bool)
	cluster.Spec.PodSubnets = texts(obj.Object, "spec", "podSubnets")
	cluster.Spec.ServiceSubnets = texts(obj.Object, "spec", "serviceSubnets")
	cluster.Status.APIEndpoint.Host = text(obj.Object, "status", "apiEndpoint", "host")
	port, _ := number(obj.Object, "status", "apiEndpoint", "port")
	cluster.Status.APIEndpoint.Port = int32(port) //nolint:gosec // only whether it is 0 matters
	return cluster
}

func (v *view) controlPlane() bool { return v.pool.Spec.ControlPlane }

func (v *view) namespace() string { return v.in.Pool.GetNamespace() }

func (v *view) generation() int64 { return v.in.Pool.GetGeneration() }

// ask looks up a further read. Not ok: it has not been answered yet, or was refused,
// which is a problem of the part.
func (v *view) ask(d *verdict, need plan.Need) (plan.Answer, bool) {
	answer, ok := v.known.To(need)
	if !ok {
		v.needs = append(v.needs, need)
		return plan.Answer{}, false
	}
	if answer.Fault != nil {
		d.add(failed(*answer.Fault))
		return plan.Answer{}, false
	}
	return answer, true
}

func (v *view) reason(text string) { v.reasons = append(v.reasons, text) }

func (v *view) create(entries *[]plan.Entry, res kind.Resource, obj *unstructured.Unstructured, reason string) {
	*entries = append(*entries, plan.Entry{Verb: plan.Create, Resource: res, Object: obj, Reason: reason})
}

// patch plans a change of an object, unless there is none.
func (v *view) patch(entries *[]plan.Entry, res kind.Resource, base, obj *unstructured.Unstructured, reason string) {
	if obj == nil || equalObjects(base, obj) {
		return
	}
	*entries = append(*entries, plan.Entry{Verb: plan.Patch, Resource: res, Base: base, Object: obj, Reason: reason})
}

func (v *view) remove(entries *[]plan.Entry, res kind.Resource, obj *unstructured.Unstructured, reason string) {
	*entries = append(*entries, plan.Entry{Verb: plan.Delete, Resource: res, Base: obj, Reason: reason})
}
