package nodecapacity

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/node-capacity/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Declare is the function with its three steps.
func Declare() reconcile.Function[decide.Input] {
	return reconcile.Function[decide.Input]{
		Spec: DefaultSpec(), Gather: gather, Decide: decide.Decide, Conclude: decide.Conclude,
	}
}

// gather reads the machine behind a Node.
func gather(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) (decide.Input, error) {
	in := decide.Input{Node: root}
	name := decide.MachineName(root)
	if name == "" || dockyards.Going(root) {
		return in, nil
	}
	machine, err := r.Get(ctx, "", dockyards.KubevirtMachines, root.GetNamespace(), name)
	in.Machine = machine
	return in, err
}

// ofMachine: the Node is called like its machine; one that is not names it.
func ofMachine(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	keys := []reconcile.Key{{Namespace: e.Namespace, Name: e.Name}}
	nodes, err := r.List(ctx, "", dockyards.Nodes, e.Namespace, "")
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		if nodes[i].GetName() != e.Name && decide.MachineName(&nodes[i]) == e.Name {
			keys = append(keys, reconcile.Key{Namespace: e.Namespace, Name: nodes[i].GetName()})
		}
	}
	return keys, nil
}
