// Package decide is what node-capacity thinks, without a client or a clock: what a
// machine has been given, and the status of its Node then.
package decide

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Input is all that a decision is made from.
type Input struct {
	Node *unstructured.Unstructured
	// Machine is the KubevirtMachine behind the Node; nil: there is none.
	Machine *unstructured.Unstructured
}

// MachineName is the name of the KubevirtMachine behind a Node; empty if its
// machine is of another kind, or its provider ID names nothing that can exist.
func MachineName(node *unstructured.Unstructured) string {
	id, _, _ := unstructured.NestedString(node.Object, "spec", "providerID")
	name, ok := strings.CutPrefix(id, v1alpha3.ProviderIDKubevirt)
	if !ok || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	return name
}

// Decide wants nothing written but the status, which is Conclude's.
func Decide(time.Time, Input, plan.Answers) plan.Decision { return plan.Decision{} }

// Conclude says what the machine has been given.
func Conclude(_ time.Time, in Input, _ plan.Answers, _ plan.Outcomes) plan.Conclusion {
	switch {
	case dockyards.Going(in.Node):
		return plan.Conclusion{Class: plan.Done, Reason: v1alpha3.ReasonDeleting, Message: "the Node is being deleted"}
	case MachineName(in.Node) == "":
		return plan.Conclusion{Class: plan.Done, Reason: "NotKubevirt", Message: "no provider ID names a KubevirtMachine"}
	case in.Machine == nil:
		return plan.Conclusion{Class: plan.Waiting, Reason: "WaitingForMachine", Message: "KubevirtMachine " + MachineName(in.Node) + " does not exist"}
	}
	c := plan.Conclusion{Class: plan.Done, Reason: v1alpha3.ReasonReconciled, Message: "the Node says what its machine has been given"}
	status := dockyards.Status(in.Node)
	if merge(status, Capacity(in.Machine)) {
		c.Status = status
	}
	return c
}

// merge brings the resources of a status to a capacity and reports whether that
// changes them. Equal quantities keep their spelling, keys that no machine has
// stay.
func merge(status map[string]any, capacity map[string]resource.Quantity) bool {
	resources, _ := status["resources"].(map[string]any)
	if resources == nil {
		resources = map[string]any{}
	}
	changed := false
	for _, key := range []string{v1alpha3.ResourceCPU, v1alpha3.ResourceMemory, v1alpha3.ResourceStorage} {
		value, has := resources[key]
		want, wanted := capacity[key]
		if !wanted {
			delete(resources, key)
			changed = changed || has
			continue
		}
		if have, ok := quantity(value); ok && have.Cmp(want) == 0 {
			continue
		}
		resources[key] = want.String()
		changed = true
	}
	if changed {
		status["resources"] = resources
	}
	return changed
}
