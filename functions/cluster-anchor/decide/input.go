package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Input is all that a decision about one Cluster depends on.
type Input struct {
	Settings dockyards.Settings
	// Cluster is the Dockyards Cluster.
	Cluster *unstructured.Unstructured
	// Config is the shared config map.
	Config dockyards.Config
	// Gateway is the shared Gateway; nil for none.
	Gateway *unstructured.Unstructured
	// Workload and Route are what lies under the names of the ingress Workload and
	// of the TLSRoute; nil for nothing.
	Workload, Route *unstructured.Unstructured
	// RouteVersion is the version of TLSRoutes that is served; empty for none.
	RouteVersion string
	// Clusters are other Clusters that may have this one's host.
	Clusters []unstructured.Unstructured
	// Infrastructure are the Cluster API Clusters of this Cluster.
	Infrastructure []Infrastructure
	// ClusterAPIServed and ProviderServed tell whether the API server serves
	// Cluster API's Clusters and KubevirtClusters. The latter counts only where
	// there are Cluster API Clusters.
	ClusterAPIServed, ProviderServed bool
	// Faults are what could not be read.
	Faults Faults
}

// Infrastructure is one Cluster API Cluster with what lies under the name of its
// KubevirtCluster.
type Infrastructure struct{ Cluster, Kubevirt *unstructured.Unstructured }

// Faults are the first fault of each part of the input.
type Faults struct {
	Config, Gateway, Workload, Route, Clusters, Infrastructure *fault.Fault
}

// any reports whether anything could not be read.
func (f Faults) any() bool {
	return slices.ContainsFunc([]*fault.Fault{f.Config, f.Gateway, f.Workload, f.Route, f.Clusters, f.Infrastructure},
		func(f *fault.Fault) bool { return f != nil })
}

// workloadSuffix ends the name of the ingress Workload.
const workloadSuffix = "-ingress-nginx"

// WorkloadName is the name of a Cluster's ingress Workload.
func WorkloadName(clusterName string) string { return clusterName + workloadSuffix }

// WorkloadOwner is the Cluster whose ingress Workload has a name; ok is false for
// other Workloads.
func WorkloadOwner(name string) (clusterName string, ok bool) {
	n := len(name) - len(workloadSuffix)
	if n <= 0 || name[n:] != workloadSuffix {
		return "", false
	}
	return name[:n], true
}

// Concerns tells whether a Cluster API Cluster of a Cluster's namespace belongs to
// it: by name or by ownerReference.
func Concerns(cluster, capi *unstructured.Unstructured) bool {
	return capi.GetName() == cluster.GetName() || dockyards.OwnedBy(capi, cluster)
}

// view is one decision under way.
type view struct {
	in Input
	// name, namespace are the Cluster's.
	name, namespace string
	endpoint        endpoint
	// route, ingress and infra are what the parts came to.
	route, ingress, infra verdict
	// writes, references and removals are the plan's stages.
	writes, references, removals []plan.Entry
	reasons                      []string
}

// look makes one decision from beginning to end.
func look(in Input) *view {
	v := &view{in: in, name: in.Cluster.GetName(), namespace: in.Cluster.GetNamespace()}
	if dockyards.Going(in.Cluster) {
		v.reason("the Cluster is being deleted: what was made for it goes with it")
		return v
	}
	if f := in.Faults.Config; f != nil {
		// Nothing is written without the config map, not even what it says nothing of.
		v.endpoint.keep = true
		v.endpoint.verdict, v.ingress = v.failed(f), v.failed(f)
		return v
	}
	v.decideInfrastructure()
	v.decideEndpoint()
	v.decideRoute()
	v.decideIngress()
	return v
}

func (v *view) reason(text string) { v.reasons = append(v.reasons, text) }

// gateway is the shared Gateway, unless it is going.
func (v *view) gateway() *unstructured.Unstructured {
	if dockyards.Going(v.in.Gateway) {
		return nil
	}
	return v.in.Gateway
}

// awaitGateway says why there is no Gateway to work with.
func (v *view) awaitGateway() verdict {
	s := v.in.Settings
	if s.GatewayName == "" || s.GatewayNamespace == "" {
		return waiting(v1alpha3.ReasonWaitingForGateway, "no Gateway is configured: set GATEWAY_NAME and GATEWAY_NAMESPACE")
	}
	return waiting(v1alpha3.ReasonWaitingForGateway, "Gateway "+quote(s.GatewayNamespace+"/"+s.GatewayName)+" does not exist")
}

// own marks an object as made for the Cluster; marks of others stay.
func (v *view) own(obj *unstructured.Unstructured) {
	dockyards.SetOwner(obj, dockyards.Reference(dockyards.Clusters, v.in.Cluster))
	dockyards.SetLabels(obj, map[string]string{v1alpha3.LabelClusterName: v.name})
}

// held tells whether a person keeps what rolls machines as it is.
func (v *view) held() bool {
	_, held := v.in.Cluster.GetAnnotations()[v1alpha3.AnnotationHoldRollouts]
	return held
}
