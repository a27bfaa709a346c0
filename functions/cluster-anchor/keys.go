package clusteranchor

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/cluster-anchor/decide"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// mapper tells which Clusters an event concerns. Names of Clusters that do not
// exist are harmless. A TLSRoute is called like its Cluster and needs no mapping.
type mapper struct{ settings dockyards.Settings }

// ofCluster: the Cluster, and those that would get the same host, whether they
// exist or not.
func (m mapper) ofCluster(_ context.Context, _ *read.Reader, e event.Event) ([]reconcile.Key, error) {
	keys := []reconcile.Key{{Namespace: e.Namespace, Name: e.Name}}
	for _, id := range decide.Namesakes(e.Namespace, e.Name) {
		keys = append(keys, reconcile.Key{Namespace: id.Namespace, Name: id.Name})
	}
	return keys, nil
}

// ofWorkload: the Cluster whose ingress it is by its name. Other Workloads are
// not looked at.
func (m mapper) ofWorkload(_ context.Context, _ *read.Reader, e event.Event) ([]reconcile.Key, error) {
	if name, ok := decide.WorkloadOwner(e.Name); ok {
		return []reconcile.Key{{Namespace: e.Namespace, Name: name}}, nil
	}
	return nil, nil
}

// ofInfrastructure: a KubevirtCluster is called like its Cluster API Cluster, and
// that like its Cluster, unless it names another owner.
func (m mapper) ofInfrastructure(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	keys := []reconcile.Key{{Namespace: e.Namespace, Name: e.Name}}
	obj, err := r.Get(ctx, cluster.Management, dockyards.CAPIClusters, e.Namespace, e.Name)
	if err != nil || obj == nil {
		return keys, err
	}
	for _, ref := range obj.GetOwnerReferences() {
		key := reconcile.Key{Namespace: e.Namespace, Name: ref.Name}
		if dockyards.Clusters.Is(ref.APIVersion, ref.Kind) && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func (m mapper) ofGateway(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	if e.Namespace != m.settings.GatewayNamespace || e.Name != m.settings.GatewayName {
		return nil, nil
	}
	return m.all(ctx, r)
}

func (m mapper) ofConfigMap(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	if e.Namespace != m.settings.ConfigMapNamespace || e.Name != m.settings.ConfigMapName {
		return nil, nil
	}
	return m.all(ctx, r)
}

func (m mapper) all(ctx context.Context, r *read.Reader) ([]reconcile.Key, error) {
	var keys []reconcile.Key
	err := r.Within(ctx, cluster.Management, dockyards.Clusters, "", func(obj *unstructured.Unstructured) bool {
		keys = append(keys, reconcile.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()})
		return true
	})
	return keys, err
}
