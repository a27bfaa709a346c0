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

// ofMachine: the Node is called like its machine; where none is, one that names it.
func ofMachine(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	keys := []reconcile.Key{{Namespace: e.Namespace, Name: e.Name}}
	namesake, err := r.Get(ctx, "", dockyards.Nodes, e.Namespace, e.Name)
	if err != nil {
		return nil, err
	}
	if namesake != nil && decide.MachineName(namesake) == e.Name {
		return keys, nil
	}
	err = r.Within(ctx, "", dockyards.Nodes, e.Namespace, func(node *unstructured.Unstructured) bool {
		if decide.MachineName(node) != e.Name {
			return false
		}
		keys = append(keys, reconcile.Key{Namespace: e.Namespace, Name: node.GetName()})
		return true
	})
	return keys, err
}
