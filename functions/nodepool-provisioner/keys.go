package nodepoolprovisioner

import (
	"context"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/functions/nodepool-provisioner/decide"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// mapper tells which NodePools an event concerns. Names of pools that do not exist are
// harmless.
type mapper struct{ settings dockyards.Settings }

// ofCluster: the pools of the Cluster, by owner or label.
func (m mapper) ofCluster(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	return pools(ctx, r, e.Namespace, func(pool *unstructured.Unstructured) bool {
		return dockyards.OwnerName(pool, dockyards.Clusters) == e.Name || pool.GetLabels()[v1alpha3.LabelClusterName] == e.Name
	})
}

// ofCAPICluster: the control-plane pools of the Cluster of that name.
func (m mapper) ofCAPICluster(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	return pools(ctx, r, e.Namespace, func(pool *unstructured.Unstructured) bool {
		is, _, _ := unstructured.NestedBool(pool.Object, "spec", "controlPlane")
		return is && dockyards.ClusterOf(pool) == e.Name
	})
}

// ofRelease: one that machines can boot from may be, or have been, the default of all
// pools; so may one that is gone. Any other concerns those that name it.
func (m mapper) ofRelease(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	release, err := r.Get(ctx, cluster.Management, dockyards.Releases, e.Namespace, e.Name)
	if err != nil {
		return nil, err
	}
	every := release == nil || decide.Installs(release)
	return pools(ctx, r, "", func(pool *unstructured.Unstructured) bool { return every || refersTo(pool, e) })
}

// ofDataSource: the pools whose machines boot from the Release of the same name.
func (m mapper) ofDataSource(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	releases, err := r.List(ctx, cluster.Management, dockyards.Releases, "", "")
	if err != nil {
		return nil, err
	}
	release, _ := dockyards.DefaultRelease(releases, m.settings.ConfigMapNamespace)
	every := release != nil && release.GetNamespace() == e.Namespace && release.GetName() == e.Name
	return pools(ctx, r, "", func(pool *unstructured.Unstructured) bool { return every || refersTo(pool, e) })
}

func refersTo(pool *unstructured.Unstructured, e event.Event) bool {
	namespace, name, ok := decide.ReleaseRef(pool)
	return ok && namespace == e.Namespace && name == e.Name
}

// ofConfigMap: all pools, if it is the shared one.
func (m mapper) ofConfigMap(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	if e.Namespace != m.settings.ConfigMapNamespace || e.Name != m.settings.ConfigMapName {
		return nil, nil
	}
	return pools(ctx, r, "", nil)
}

// ofNetwork: all pools of the namespace, if machines join its networks.
func (m mapper) ofNetwork(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	if !m.settings.Multus {
		return nil, nil
	}
	return pools(ctx, r, e.Namespace, nil)
}

// later is the name of a template that took the place of another: the pool's, and
// what was made of its content.
var later = regexp.MustCompile(`^(.+)-[0-9a-f]{8}$`)

// ofTemplate: the pool that a template names as its owner or in its label, and the one
// that it is called after, which alone is left of a template that is gone.
func (m mapper) ofTemplate(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	keys := []reconcile.Key{{Namespace: e.Namespace, Name: e.Name}}
	if parts := later.FindStringSubmatch(e.Name); parts != nil {
		keys = append(keys, reconcile.Key{Namespace: e.Namespace, Name: parts[1]})
	}
	for _, res := range []kind.Resource{dockyards.KubevirtMachineTemplates, dockyards.TalosConfigTemplates} {
		if !res.Is(e.APIVersion, e.Kind) {
			continue
		}
		template, err := r.Get(ctx, cluster.Management, res, e.Namespace, e.Name)
		if err != nil {
			return nil, err
		}
		if template == nil {
			break
		}
		for _, name := range []string{dockyards.OwnerName(template, dockyards.NodePools), template.GetLabels()[v1alpha3.LabelNodePoolName]} {
			if key := (reconcile.Key{Namespace: e.Namespace, Name: name}); name != "" && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys, nil
}

// pools are those of a namespace, or of all, that an event concerns; nil takes every
// one.
func pools(ctx context.Context, r *read.Reader, namespace string, concerned func(*unstructured.Unstructured) bool) ([]reconcile.Key, error) {
	var keys []reconcile.Key
	err := r.Within(ctx, cluster.Management, dockyards.NodePools, namespace, func(pool *unstructured.Unstructured) bool {
		if concerned != nil && !concerned(pool) {
			return false
		}
		keys = append(keys, reconcile.Key{Namespace: pool.GetNamespace(), Name: pool.GetName()})
		return true
	})
	return keys, err
}
