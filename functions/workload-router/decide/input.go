package decide

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Limits keep what one workload cluster can ask for.
type Limits struct {
	// Services is how many Services of a Workload are mirrored.
	Services int
	// Ports is how many ports of a Service are mirrored.
	Ports int
	// Read is how many Services that carry a Workload's label are looked at.
	Read int
}

// DefaultLimits are those of an empty environment.
func DefaultLimits() Limits { return Limits{Services: 100, Ports: 100, Read: 5000} }

// Input is all that a decision about one Workload depends on. Lists may come in any
// order.
type Input struct {
	Settings dockyards.Settings
	Limits   Limits
	// Workload is the reconciled object.
	Workload *unstructured.Unstructured

	// Services, HTTPRoutes and TLSRoutes are those of the Workload's namespace that
	// matter to it.
	Services, HTTPRoutes, TLSRoutes []unstructured.Unstructured
	// HTTPRouteVersion and TLSRouteVersion are the versions in which routes are
	// read and made; empty for those that are not served.
	HTTPRouteVersion, TLSRouteVersion string
	// Workloads are the names of the Workloads of the namespace that are longer than the
	// Workload's own.
	Workloads []string

	// Clusters are those of the Workload's namespace and, where it is Routed, those of all
	// namespaces that have a zone.
	Clusters []unstructured.Unstructured
	// CAPICluster is the Cluster API Cluster that the Workload's label names.
	CAPICluster *unstructured.Unstructured
	// Gateway is the shared Gateway, Config the shared config map.
	Gateway *unstructured.Unstructured
	Config  dockyards.Config
	// Faults are what could not be read of all that.
	Faults []fault.Fault

	// Remote is the workload cluster, if it was asked.
	Remote Remote
}

// Remote is what is known of a workload cluster.
type Remote struct {
	// Connection is where its kubeconfig leads.
	Connection plan.Connection
	// Fault is why its Services could not be listed.
	Fault *fault.Fault
	// Services are its Services that count, in the form of Kept.
	Services []unstructured.Unstructured
	// Incomplete tells that there are more than were looked at.
	Incomplete bool
}

// Concerned tells whether the function has anything to do with a Workload.
func Concerned(settings dockyards.Settings, workload *unstructured.Unstructured) bool {
	return settings.WorkloadIngress && clusterOf(workload) != "" && !dockyards.Going(workload)
}

// Connects tells whether the workload cluster has to be asked: everything that the
// management cluster has to say is there.
func Connects(in Input) bool {
	v := newView(in)
	return len(in.Faults) == 0 && v.check(local) && labelable(in.Workload)
}

// Routed tells whether hostnames are at stake, and so who else has them: the Workload has a
// route, or a Service of the workload cluster that may want one.
func Routed(in Input) bool {
	return len(in.HTTPRoutes) > 0 || len(in.TLSRoutes) > 0 || len(in.Remote.Services) > 0
}

// ClusterOf is the name of the Cluster that a Workload's label names; empty for none.
func ClusterOf(workload *unstructured.Unstructured) string { return clusterOf(workload) }
