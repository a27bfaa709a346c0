package nodecapacity

import (
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Name is the function's name.
const Name = "node-capacity"

// concurrency is how many events one process takes at once.
const concurrency = 20

// labelMachines is on the instances of Cluster API's machines; those of others
// need not wake the function.
const labelMachines = "cluster.x-k8s.io/cluster-name"

// instances wake the function and are not read.
var instances = kind.Resource{
	Group: "kubevirt.io", Versions: []string{"v1"}, Kind: "VirtualMachineInstance", Plural: "virtualmachineinstances", Namespaced: true,
}

// DefaultSpec declares the function. Cluster API's provider and KubeVirt may be
// absent, so the adapter watches their kinds.
func DefaultSpec() reconcile.Spec {
	return reconcile.Spec{
		Name:       Name,
		Summary:    "says on a Node what its machine has been given",
		TakesOver:  "dockyards-kubevirt",
		Reconciles: dockyards.Nodes,
		Watches: []reconcile.Watch{
			{Resource: dockyards.Nodes},
			{Resource: dockyards.KubevirtMachines, Adapter: true, Keys: ofMachine},
			{Resource: instances, Adapter: true, Selector: labelMachines},
		},
		Grants: []reconcile.Grant{
			{Resource: dockyards.Nodes, Verbs: []string{"get", "list"}},
			{Resource: dockyards.Nodes, Subresource: "status", Verbs: []string{"patch"}},
			{Resource: dockyards.KubevirtMachines, Verbs: []string{"get"}},
		},
		Concurrency: concurrency,
	}
}
