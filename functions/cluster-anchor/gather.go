package clusteranchor

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/cluster-anchor/decide"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
)

// gatherer reads all that one decision about a Cluster needs.
type gatherer struct{ settings dockyards.Settings }

// reading is one gathering under way.
type reading struct {
	r    *read.Reader
	root *unstructured.Unstructured
	in   decide.Input
	// err is what is no fault of an API server and ends the gathering.
	err error
}

// gather reads what may be written first (Workload, route, Cluster API Clusters,
// KubevirtClusters) and what is decided from last (Gateway, config map, the
// Clusters that would get the same host). What cannot be read is part of the
// input: each part of the decision fails alone, and says so.
func (g gatherer) gather(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) (decide.Input, error) {
	x := &reading{r: r, root: root, in: decide.Input{Settings: g.settings, Cluster: root}}
	if dockyards.Going(root) {
		return x.in, nil
	}
	r.Ahead(ctx, x.needs()...)
	x.written(ctx)
	x.surroundings(ctx)
	return x.in, x.err
}

// needs are the reads that every round makes, so that they take the time of one.
func (x *reading) needs() []plan.Need {
	ns, name, s := x.root.GetNamespace(), x.root.GetName(), x.in.Settings
	needs := []plan.Need{
		x.claimants(),
		{Resource: dockyards.CAPIClusters, Namespace: ns, Name: name},
		{Resource: dockyards.Workloads, Namespace: ns, Name: decide.WorkloadName(name)},
		{Resource: dockyards.TLSRoutes, Namespace: ns, Name: name},
		{Resource: dockyards.KubevirtClusters, Namespace: ns, Name: name},
		{Resource: kind.ConfigMaps, Namespace: s.ConfigMapNamespace, Name: s.ConfigMapName},
	}
	if s.GatewayName != "" && s.GatewayNamespace != "" {
		needs = append(needs, plan.Need{Resource: dockyards.Gateways, Namespace: s.GatewayNamespace, Name: s.GatewayName})
	}
	for _, id := range decide.Namesakes(ns, name) {
		needs = append(needs, plan.Need{Resource: dockyards.Clusters, Namespace: id.Namespace, Name: id.Name})
	}
	return needs
}

// written reads what may be written.
func (x *reading) written(ctx context.Context) {
	ns, name, faults := x.root.GetNamespace(), x.root.GetName(), &x.in.Faults
	x.in.Workload = x.get(ctx, &faults.Workload, dockyards.Workloads, ns, decide.WorkloadName(name))
	x.in.Route = x.get(ctx, &faults.Route, dockyards.TLSRoutes, ns, name)
	x.in.RouteVersion = x.version(ctx, &faults.Route, dockyards.TLSRoutes)

	clusters := x.clusters(ctx)
	if len(clusters) == 0 {
		x.in.ClusterAPIServed = x.version(ctx, &faults.Infrastructure, dockyards.CAPIClusters) != ""
		return
	}
	x.in.ClusterAPIServed, x.in.ProviderServed = true, true
	for i := range clusters {
		x.infrastructure(ctx, &clusters[i])
	}
}

// clusters reads the Cluster API Clusters that concern the Cluster: the one of its name,
// and those of its namespace that say they are its. Of the others there may be many.
func (x *reading) clusters(ctx context.Context) []unstructured.Unstructured {
	names := []string{x.root.GetName()}
	for _, claimant := range x.answer(ctx, &x.in.Faults.Infrastructure, x.claimants()).Items {
		names = append(names, claimant.GetName())
	}
	slices.Sort(names)
	var found []unstructured.Unstructured
	for _, name := range slices.Compact(names) {
		obj := x.get(ctx, &x.in.Faults.Infrastructure, dockyards.CAPIClusters, x.root.GetNamespace(), name)
		if obj != nil && decide.Concerns(x.root, obj) {
			found = append(found, *obj)
		}
	}
	return found
}

// claimants is the need for the Cluster API Clusters that say whose they are.
func (x *reading) claimants() plan.Need {
	return plan.Need{Resource: claimants, Namespace: x.root.GetNamespace(), Only: func(obj *unstructured.Unstructured) bool {
		return decide.Concerns(x.root, obj)
	}}
}

var claimants = dockyards.CAPIClusters.Metadata("metadata.managedFields", "metadata.annotations", "metadata.labels")

// infrastructure reads what lies behind one Cluster API Cluster.
func (x *reading) infrastructure(ctx context.Context, obj *unstructured.Unstructured) {
	fault := &x.in.Faults.Infrastructure
	kubevirt := x.get(ctx, fault, dockyards.KubevirtClusters, obj.GetNamespace(), obj.GetName())
	if kubevirt == nil && *fault == nil {
		x.in.ProviderServed = x.version(ctx, fault, dockyards.KubevirtClusters) != ""
	}
	x.in.Infrastructure = append(x.in.Infrastructure, decide.Infrastructure{Cluster: obj, Kubevirt: kubevirt})
}

// surroundings reads what is only decided from.
func (x *reading) surroundings(ctx context.Context) {
	s, faults := x.in.Settings, &x.in.Faults
	if s.GatewayName != "" && s.GatewayNamespace != "" {
		x.in.Gateway = x.get(ctx, &faults.Gateway, dockyards.Gateways, s.GatewayNamespace, s.GatewayName)
	}
	x.in.Config = dockyards.ReadConfig(x.get(ctx, &faults.Config, kind.ConfigMaps, s.ConfigMapNamespace, s.ConfigMapName))
	for _, id := range decide.Namesakes(x.root.GetNamespace(), x.root.GetName()) {
		if other := x.get(ctx, &faults.Clusters, dockyards.Clusters, id.Namespace, id.Name); other != nil {
			x.in.Clusters = append(x.in.Clusters, *other)
		}
	}
	if decide.KeepsForeignHost(x.root) {
		x.in.Clusters = x.answer(ctx, &faults.Clusters, plan.Need{Resource: dockyards.Clusters}).Items
	}
}

func (x *reading) get(ctx context.Context, f **fault.Fault, res kind.Resource, namespace, name string) *unstructured.Unstructured {
	return x.answer(ctx, f, plan.Need{Resource: res, Namespace: namespace, Name: name}).Object
}

// answer reads, and keeps the first fault of a part.
func (x *reading) answer(ctx context.Context, f **fault.Fault, need plan.Need) plan.Answer {
	answer := x.r.Answer(ctx, need)
	if answer.Fault != nil && *f == nil {
		*f = answer.Fault
	}
	return answer
}

// version is the version in which objects of a resource are read and written.
func (x *reading) version(ctx context.Context, f **fault.Fault, res kind.Resource) string {
	version, err := x.r.Version(ctx, cluster.Management, res)
	var known *fault.Fault
	switch {
	case err == nil:
	case !errors.As(err, &known):
		x.err = err
	case *f == nil:
		*f = known
	}
	return version
}
