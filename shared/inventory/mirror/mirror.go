// Package mirror wires the thinking of package inventory to the runtime: what wakes
// a function that mirrors Kustomizations or HelmReleases, what it reads, and which
// rights it needs. Each of the two is a function of its own, since a function
// reconciles one kind.
package mirror

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/inventory"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// concurrency is how many events one process takes at once: each spends its
// time waiting for the API server.
const concurrency = 20

// Declare is the function of a name that mirrors one kind.
func Declare(name string, flavor inventory.Flavor) reconcile.Function[inventory.Input] {
	m := mirror{flavor: flavor}
	return reconcile.Function[inventory.Input]{
		Spec: reconcile.Spec{
			Name:       name,
			Summary:    "keeps the inventory of a " + flavor.Resource.Kind + ", and lets it go when its cluster is gone",
			TakesOver:  inventory.Upstream,
			Reconciles: flavor.Resource,
			Watches: []reconcile.Watch{
				{Resource: flavor.Resource, Adapter: true},
				{Resource: inventory.Inventories, Keys: m.ofInventory},
				{Resource: dockyards.Clusters, Keys: m.ofCluster},
			},
			Grants: []reconcile.Grant{
				{Resource: flavor.Resource, Verbs: []string{"get", "list", "patch"}},
				{Resource: inventory.Inventories, Verbs: []string{"get", "create", "patch"}},
				{Resource: kind.Secrets, Verbs: []string{"get"}},
				{Resource: dockyards.Clusters, Verbs: []string{"get"}},
				{Resource: kind.Events, Verbs: []string{"create"}},
			},
			Predecessors: []string{inventory.Upstream},
			Concurrency:  concurrency,
		},
		Gather: m.gather, Decide: inventory.Decide, Conclude: inventory.Conclude,
	}
}

type mirror struct{ flavor inventory.Flavor }

// ofInventory: the object that owns it; of one that is gone, the name is asked.
func (m mirror) ofInventory(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	obj, err := r.Get(ctx, cluster.Management, inventory.Inventories, e.Namespace, e.Name)
	if err != nil {
		return nil, err
	}
	if obj == nil {
		return m.objects(ctx, r, e.Namespace, "", func(obj *unstructured.Unstructured) bool { return m.flavor.Name(obj.GetName()) == e.Name })
	}
	owner := dockyards.OwnerName(obj, m.flavor.Resource)
	if owner == "" {
		return nil, nil
	}
	return []reconcile.Key{{Namespace: e.Namespace, Name: owner}}, nil
}

// ofCluster: the objects for it that are on their way out.
func (m mirror) ofCluster(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	return m.objects(ctx, r, e.Namespace, v1alpha3.LabelClusterName, func(obj *unstructured.Unstructured) bool {
		return obj.GetLabels()[v1alpha3.LabelClusterName] == e.Name && dockyards.Going(obj)
	})
}

func (m mirror) objects(ctx context.Context, r *read.Reader, namespace, selector string, concerned func(*unstructured.Unstructured) bool) ([]reconcile.Key, error) {
	all, err := r.List(ctx, cluster.Management, m.flavor.Resource, namespace, selector)
	if err != nil {
		return nil, err
	}
	var keys []reconcile.Key
	for i := range all {
		if concerned(&all[i]) {
			keys = append(keys, reconcile.Key{Namespace: namespace, Name: all[i].GetName()})
		}
	}
	return keys, nil
}

// gather reads the inventory; of an object on its way out, what it may wait for.
func (m mirror) gather(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) (inventory.Input, error) {
	in := inventory.Input{Flavor: m.flavor, Object: root, HasSecret: true}
	if !inventory.Concerns(root) {
		return in, nil
	}
	ns := root.GetNamespace()
	var err error
	if !dockyards.Going(root) {
		in.Inventory, err = r.Get(ctx, cluster.Management, inventory.Inventories, ns, m.flavor.Name(root.GetName()))
		return in, err
	}
	name := inventory.KubeconfigSecret(root)
	if name == "" {
		return in, nil
	}
	secret, err := r.Get(ctx, cluster.Management, kind.Secrets, ns, name)
	if err != nil {
		return in, err
	}
	in.HasSecret = secret != nil
	in.Cluster, err = r.Get(ctx, cluster.Management, dockyards.Clusters, ns, root.GetLabels()[v1alpha3.LabelClusterName])
	return in, err
}
