package workloadrouter

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/workload-router/decide"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
)

// page is how many Services one request to a workload cluster asks for: with ordinary
// ones the answer is a tenth of what may be read.
const page = 50

// Of the many Clusters only the zones matter, of a namespace's Workloads the names.
var (
	zoneHolders = dockyards.Clusters.Without("spec", "metadata.managedFields", "metadata.annotations", "status.conditions")
	neighbours  = dockyards.Workloads.Metadata("metadata.managedFields", "metadata.annotations", "metadata.labels", "metadata.ownerReferences")
)

// gatherer reads all that one decision about a Workload needs.
type gatherer struct{ settings Settings }

// reading is one gathering under way.
type reading struct {
	r  *read.Reader
	in decide.Input
	// err is what is no fault of an API server and ends the gathering.
	err error
}

// gather reads what may be written first (Services and routes of the namespace) and
// what is decided from last (Clusters, Gateway, config map). The workload cluster is
// asked only if nothing else is awaited.
func (g gatherer) gather(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) (decide.Input, error) {
	x := &reading{r: r, in: decide.Input{Settings: g.settings.Settings, Limits: g.settings.Limits, Workload: root}}
	if !decide.Concerned(x.in.Settings, root) {
		return x.in, nil
	}
	r.Ahead(ctx, x.needs()...)
	x.written(ctx)
	if decide.Routed(x.in) {
		r.Ahead(ctx, x.zoneHolders())
	}
	x.surroundings(ctx)
	if x.err == nil && decide.Connects(x.in) {
		x.remote(ctx)
	}
	// All Clusters there are: asked for only where a hostname is at stake, which it is for
	// few Workloads of a Cluster.
	if x.err == nil && decide.Routed(x.in) {
		x.in.Clusters = x.list(ctx, x.zoneHolders())
	}
	return x.in, x.err
}

// needs are the reads that every round makes, so that they take the time of one.
func (x *reading) needs() []plan.Need {
	ns, s := x.in.Workload.GetNamespace(), x.in.Settings
	needs := []plan.Need{
		x.beside(dockyards.Services), x.beside(dockyards.HTTPRoutes), x.beside(dockyards.TLSRoutes), x.neighbours(), x.clusters(),
		{Resource: dockyards.CAPIClusters, Namespace: ns, Name: decide.ClusterOf(x.in.Workload)},
		{Resource: kind.ConfigMaps, Namespace: s.ConfigMapNamespace, Name: s.ConfigMapName},
	}
	if s.GatewayName != "" && s.GatewayNamespace != "" {
		needs = append(needs, plan.Need{Resource: dockyards.Gateways, Namespace: s.GatewayNamespace, Name: s.GatewayName})
	}
	return needs
}

// beside is the need for what the Workload's namespace holds of a resource. Of the
// objects of many Workloads only those that matter to this one are kept: fifty such lists
// may be held at once.
func (x *reading) beside(res kind.Resource) plan.Need {
	return plan.Need{Resource: res, Namespace: x.in.Workload.GetNamespace(), Only: decide.Matters(x.in.Workload)}
}

// neighbours is the need for the Workloads that may have a name before this one.
func (x *reading) neighbours() plan.Need {
	return plan.Need{Resource: neighbours, Namespace: x.in.Workload.GetNamespace(), Only: func(other *unstructured.Unstructured) bool {
		return len(other.GetName()) > len(x.in.Workload.GetName())
	}}
}

// clusters is the need for the Clusters beside the Workload: its own, and those whose names
// are theirs.
func (x *reading) clusters() plan.Need {
	return plan.Need{Resource: zoneHolders, Namespace: x.in.Workload.GetNamespace()}
}

// zoneHolders is the need for the Clusters that have a zone, and those beside the
// Workload, whose names are theirs.
func (x *reading) zoneHolders() plan.Need {
	return plan.Need{Resource: zoneHolders, Only: func(cluster *unstructured.Unstructured) bool {
		return cluster.GetNamespace() == x.in.Workload.GetNamespace() || len(decide.Zones(cluster)) > 0
	}}
}

// written reads what may be written, and who else lives in the namespace.
func (x *reading) written(ctx context.Context) {
	x.in.Services = x.list(ctx, x.beside(dockyards.Services))
	x.in.HTTPRoutes = x.list(ctx, x.beside(dockyards.HTTPRoutes))
	x.in.TLSRoutes = x.list(ctx, x.beside(dockyards.TLSRoutes))
	x.in.HTTPRouteVersion = x.version(ctx, dockyards.HTTPRoutes)
	x.in.TLSRouteVersion = x.version(ctx, dockyards.TLSRoutes)
	for _, workload := range x.list(ctx, x.neighbours()) {
		x.in.Workloads = append(x.in.Workloads, workload.GetName())
	}
}

// surroundings reads what is only decided from.
func (x *reading) surroundings(ctx context.Context) {
	s := x.in.Settings
	x.in.CAPICluster = x.get(ctx, dockyards.CAPIClusters, x.in.Workload.GetNamespace(), decide.ClusterOf(x.in.Workload))
	if s.GatewayName != "" && s.GatewayNamespace != "" {
		x.in.Gateway = x.get(ctx, dockyards.Gateways, s.GatewayNamespace, s.GatewayName)
	}
	x.in.Config = dockyards.ReadConfig(x.get(ctx, kind.ConfigMaps, s.ConfigMapNamespace, s.ConfigMapName))
	x.in.Clusters = x.list(ctx, x.clusters())
}

// remote asks the workload cluster.
func (x *reading) remote(ctx context.Context) {
	workload, limits := x.in.Workload, x.in.Limits
	name, connection, err := connect(ctx, x.r, workload.GetNamespace(), decide.ClusterOf(workload))
	if x.note(err); err != nil {
		return
	}
	x.in.Remote.Connection = connection
	if connection.Refused != "" {
		return
	}
	need := plan.Need{Cluster: name, Resource: dockyards.Services, Selector: decide.RemoteSelector(workload)}
	services, complete, err := x.r.Scan(ctx, need, read.Bounds{Page: page, Objects: limits.Read}, decide.Kept(limits))
	var f *fault.Fault
	switch {
	case err == nil:
		x.in.Remote.Services, x.in.Remote.Incomplete = services, !complete
	case errors.As(err, &f):
		x.in.Remote.Fault = f
	default:
		x.err = err
	}
}

// connect makes a workload cluster known, by the kubeconfig that Cluster API keeps.
func connect(ctx context.Context, r *read.Reader, namespace, clusterName string) (name string, connection plan.Connection, err error) {
	name = dockyards.RemoteName(namespace, clusterName)
	connection, err = r.Connect(ctx, name, namespace, dockyards.KubeconfigSecret(clusterName), dockyards.KubeconfigKey)
	return name, connection, err
}

func (x *reading) get(ctx context.Context, res kind.Resource, namespace, name string) *unstructured.Unstructured {
	if name == "" {
		return nil
	}
	obj, err := x.r.Get(ctx, cluster.Management, res, namespace, name)
	x.note(err)
	return obj
}

func (x *reading) list(ctx context.Context, need plan.Need) []unstructured.Unstructured {
	items, err := x.r.Find(ctx, need)
	x.note(err)
	return items
}

// version is the version in which objects of a resource are read and written.
func (x *reading) version(ctx context.Context, res kind.Resource) string {
	version, err := x.r.Version(ctx, cluster.Management, res)
	x.note(err)
	return version
}

// note keeps what could not be read: the Workload is told.
func (x *reading) note(err error) {
	var f *fault.Fault
	switch {
	case err == nil:
	case errors.As(err, &f):
		x.in.Faults = append(x.in.Faults, *f)
	case x.err == nil:
		x.err = err
	}
}
