package nodepoolprovisioner

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/setting"
)

// Name is the function's name.
const Name = "nodepool-provisioner"

// concurrency is how many events one process takes at once: each spends its time
// waiting for the API server.
const concurrency = 20

// Spec declares the function.
func Spec(settings Settings) reconcile.Spec {
	spec := reconcile.Spec{
		Name:        Name,
		Summary:     "turns a NodePool into machine templates and what keeps its machines",
		TakesOver:   "DockyardsNodePoolReconciler",
		Reconciles:  dockyards.NodePools,
		Settings:    dockyards.SettingsConfigMap,
		Watches:     watches(settings.Settings),
		Grants:      grants(settings.Settings),
		Children:    children(),
		Concurrency: concurrency,
		// A write without an answer is said on the pool, like a refused one.
		ConcludesOutages: true,
		// 139 MiB were taken while 600 pools came at once, with nothing to limit it.
		Memory: "256Mi",
	}
	spec.Env = append(setting.Docs(dockyards.Variables(), used...), setting.Docs(variables)...)
	return spec
}

// watches: the groups of Cluster API, its providers, CDI and Multus are optional, or
// their version differs between installations, so the adapter watches them. Of config
// maps it watches those of one namespace.
func watches(settings dockyards.Settings) []reconcile.Watch {
	m := mapper{settings: settings}
	return []reconcile.Watch{
		{Resource: dockyards.NodePools},
		{Resource: dockyards.Clusters, Keys: m.ofCluster},
		{Resource: dockyards.Releases, Keys: m.ofRelease},
		{Resource: dockyards.CAPIClusters, Adapter: true, Keys: m.ofCAPICluster},
		{Resource: dockyards.KubevirtMachineTemplates, Adapter: true, Keys: m.ofTemplate},
		{Resource: dockyards.TalosConfigTemplates, Adapter: true, Keys: m.ofTemplate},
		{Resource: dockyards.TalosControlPlanes, Adapter: true},
		{Resource: dockyards.MachineDeployments, Adapter: true},
		{Resource: dockyards.DataSources, Adapter: true, Keys: m.ofDataSource},
		{Resource: dockyards.NetworkAttachmentDefinitions, Adapter: true, Keys: m.ofNetwork},
		{
			Resource: kind.ConfigMaps, Adapter: true, Keys: m.ofConfigMap,
			Namespace: settings.ConfigMapNamespace, Names: []string{settings.ConfigMapName},
		},
	}
}

func grants(settings dockyards.Settings) []reconcile.Grant {
	return []reconcile.Grant{
		{Resource: dockyards.NodePools, Verbs: []string{"get", "list"}},
		{Resource: dockyards.NodePools, Subresource: "status", Verbs: []string{"patch"}},
		{Resource: dockyards.Clusters, Verbs: []string{"get"}},
		{Resource: dockyards.Releases, Verbs: []string{"get", "list"}},
		{Resource: dockyards.CAPIClusters, Verbs: []string{"get", "patch"}},
		{Resource: dockyards.KubevirtMachineTemplates, Verbs: []string{"get", "list", "create", "patch", "delete"}},
		{Resource: dockyards.TalosConfigTemplates, Verbs: []string{"get", "list", "create", "patch", "delete"}},
		{Resource: dockyards.TalosControlPlanes, Verbs: []string{"get", "create", "patch"}},
		{Resource: dockyards.MachineDeployments, Verbs: []string{"get", "list", "create", "patch", "delete"}},
		{Resource: dockyards.MachineSets, Verbs: []string{"list"}},
		{Resource: dockyards.KubevirtMachines, Verbs: []string{"list"}},
		{Resource: dockyards.TalosConfigs, Verbs: []string{"list"}},
		{Resource: dockyards.DataSources, Verbs: []string{"get"}},
		{Resource: dockyards.DataVolumes, Verbs: []string{"get"}},
		{Resource: dockyards.NetworkAttachmentDefinitions, Verbs: []string{"list"}},
		{Resource: kind.ConfigMaps, Verbs: []string{"get"}, Names: []string{settings.ConfigMapName}},
		{Resource: kind.Events, Verbs: []string{"create"}},
	}
}

// children are what is left of pools whose deletion was not noticed. Only what
// carries this function's labels is looked at: what upstream left behind stays.
func children() []reconcile.Children {
	child := func(res kind.Resource, inUse func(context.Context, *read.Reader, string, *unstructured.Unstructured) (bool, error)) reconcile.Children {
		return reconcile.Children{Resource: res, Selector: v1alpha3.LabelNodePoolName, Local: true, Owner: ownerOf, Of: childrenOf, InUse: inUse}
	}
	return []reconcile.Children{
		child(dockyards.MachineDeployments, nil),
		child(dockyards.TalosConfigTemplates, machinesLeft),
		child(dockyards.KubevirtMachineTemplates, machinesLeft),
	}
}

// childrenOf selects what carries the name of a pool. A name that is no label's value has
// no children.
func childrenOf(pool reconcile.Key) string {
	if len(validation.IsValidLabelValue(pool.Name)) > 0 {
		return ""
	}
	return v1alpha3.LabelNodePoolName + "=" + pool.Name
}

// ownerOf is the pool that a child belongs to: by its ownerReference, or by the label that
// this function put on it. Cluster API makes the Cluster a second owner, and a garbage
// collector takes the reference to a pool that is gone off an object that still has
// another owner: a MachineDeployment would keep its machines for nobody.
func ownerOf(child *unstructured.Unstructured) (owner reconcile.Key, uid, installation string, ok bool) {
	for _, ref := range child.GetOwnerReferences() {
		if dockyards.NodePools.Is(ref.APIVersion, ref.Kind) {
			return reconcile.Key{Namespace: child.GetNamespace(), Name: ref.Name}, string(ref.UID), "", true
		}
	}
	pool := child.GetLabels()[v1alpha3.LabelNodePoolName]
	return reconcile.Key{Namespace: child.GetNamespace(), Name: pool}, "", "", pool != "" && labelled(child)
}

// labelled tells whether the label with the pool's name is this function's.
func labelled(child *unstructured.Unstructured) bool {
	manager := reconcile.Spec{Name: Name}.FieldManager()
	return slices.ContainsFunc(child.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+v1alpha3.LabelNodePoolName+`"`)
	})
}

// machinesLeft: the templates of a pool that is gone stay as long as anything keeps
// its machines.
func machinesLeft(ctx context.Context, r *read.Reader, cluster string, child *unstructured.Unstructured) (bool, error) {
	owner, _, _, _ := ownerOf(child)
	for _, res := range []kind.Resource{dockyards.MachineDeployments, dockyards.TalosControlPlanes} {
		obj, err := r.Get(ctx, cluster, res, owner.Namespace, owner.Name)
		if obj != nil || err != nil {
			return true, err
		}
	}
	return false, nil
}
