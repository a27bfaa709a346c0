package decide

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
)

// check is one thing that has to be there. It returns nil if it is.
type check struct {
	name string
	do   func(v *view) *verdict
}

// local are the checks of what the management cluster knows, in order: the first
// that fails is what the Workload is told.
var local = []check{
	{"cluster", (*view).checkCluster},
	{"control plane", (*view).checkControlPlane},
	{"gateway", (*view).checkGateway},
	{"gateway address", (*view).checkAddress},
}

// remote are the checks of the workload cluster.
var remote = []check{
	{"connection", (*view).checkConnection},
	{"services", (*view).checkServices},
}

// check goes through checks; false: the pass ends.
func (v *view) check(checks []check) bool {
	for _, c := range checks {
		if v.ended = c.do(v); v.ended != nil {
			v.reason("check " + quote(c.name) + " failed")
			return false
		}
	}
	return true
}

// unread ends a pass whose input is incomplete: nothing is decided from half of it.
func (v *view) unread() {
	v.said.retry = true
	for i := range v.in.Faults {
		v.said.errors = append(v.said.errors, told(&v.in.Faults[i]))
	}
}

// checkCluster wants the Cluster that owns the Workload, and the Cluster API Cluster
// that the Workload's label names. They have the same name.
func (v *view) checkCluster() *verdict {
	owner := v.owner()
	cluster := find(v.in.Clusters, v.namespace, owner)
	switch {
	case owner != v.clusterName:
		return waiting(v1alpha3.ReasonWaitingForCluster, fmt.Sprintf(
			"the Workload is owned by Cluster %q and labelled for %q: let both name the same", owner, v.clusterName))
	case cluster == nil:
		return waiting(v1alpha3.ReasonWaitingForCluster, fmt.Sprintf("Cluster %q does not exist", owner))
	case v.in.CAPICluster == nil:
		return waiting(v1alpha3.ReasonWaitingForCluster, fmt.Sprintf("Cluster %q has no Cluster API Cluster yet", owner))
	case dockyards.Going(cluster) || dockyards.Going(v.in.CAPICluster):
		return waiting(v1alpha3.ReasonWaitingForCluster, fmt.Sprintf("Cluster %q is being deleted", owner))
	}
	return nil
}

func (v *view) checkControlPlane() *verdict {
	switch {
	case controlPlaneDown(v.in.CAPICluster):
		return waiting(v1alpha3.ReasonWaitingForControlPlane, fmt.Sprintf("the control plane of Cluster %q is not initialized", v.clusterName))
	case !infrastructureReady(v.in.CAPICluster):
		return waiting(v1alpha3.ReasonWaitingForControlPlane, fmt.Sprintf("the infrastructure of Cluster %q is not ready", v.clusterName))
	}
	return nil
}

func (v *view) checkGateway() *verdict {
	s := v.in.Settings
	if s.GatewayName == "" || s.GatewayNamespace == "" {
		return waiting(v1alpha3.ReasonWaitingForGateway, "no Gateway is configured: set GATEWAY_NAME and GATEWAY_NAMESPACE")
	}
	if v.in.Gateway == nil || dockyards.Going(v.in.Gateway) {
		return waiting(v1alpha3.ReasonWaitingForGateway, fmt.Sprintf("Gateway %q does not exist", s.GatewayNamespace+"/"+s.GatewayName))
	}
	return nil
}

func (v *view) checkAddress() *verdict {
	address, ok := dockyards.GatewayAddress(v.in.Gateway)
	if !ok {
		s := v.in.Settings
		return waiting(v1alpha3.ReasonWaitingForGatewayAddress, fmt.Sprintf("Gateway %q has no address yet", s.GatewayNamespace+"/"+s.GatewayName))
	}
	v.address = address
	return nil
}

// checkConnection wants a kubeconfig that may be used.
func (v *view) checkConnection() *verdict {
	if c := v.in.Remote.Connection; c.Refused != "" && labelable(v.in.Workload) {
		return unreachable(clip.Line(c.Message, messageMax))
	}
	return nil
}

// checkServices wants the list of the workload cluster's Services. A cluster that
// says no is not asked again until something changes.
func (v *view) checkServices() *verdict {
	f := v.in.Remote.Fault
	switch {
	case f == nil:
		return nil
	case f.Class == fault.Unavailable:
		return unreachable(v.silence())
	}
	return waiting(v1alpha3.ReasonErrorReconciling, told(f))
}

// labelable tells whether a Service can carry the Workload's name as a label's value
// at all.
func labelable(workload *unstructured.Unstructured) bool {
	return len(validation.IsValidLabelValue(workload.GetName())) == 0
}

// controlPlaneDown tells whether Cluster API says that there is no control plane
// yet. Where it says nothing there may be one.
func controlPlaneDown(cluster *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(cluster.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(item any) bool {
		c, _ := item.(map[string]any)
		return c["type"] == "ControlPlaneInitialized" && c["status"] == "False"
	})
}

// infrastructureReady reads Cluster API's v1beta2 and v1beta1 alike: neither has the
// other's field.
func infrastructureReady(cluster *unstructured.Unstructured) bool {
	provisioned, _, _ := unstructured.NestedBool(cluster.Object, "status", "initialization", "infrastructureProvisioned")
	ready, _, _ := unstructured.NestedBool(cluster.Object, "status", "infrastructureReady")
	return provisioned || ready
}
