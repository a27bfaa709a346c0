package machinevm

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/decide"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/setting"
)

// Name is the function's name.
const Name = "machine-vm"

// concurrency is how many events one process takes at once: each spends its
// time waiting for API servers.
const concurrency = 20

// Spec declares the function.
func Spec(settings Settings) reconcile.Spec {
	spec := reconcile.Spec{
		Name:         Name,
		Summary:      "turns a Machine into a KubeVirt VirtualMachine and brings its state back",
		TakesOver:    "Viti Stack kubevirt-operator",
		Reconciles:   kinds.Machines,
		Watches:      watches(settings),
		Grants:       grants(),
		TargetGrants: targetGrants(),
		Children:     children(settings),
		Targets:      gatherer{settings: settings.Settings}.targets,
		Connected:    mapper{settings: settings}.connected,
		Metrics:      metrics(),
		Gauges:       gauges(settings),
		Concurrency:  concurrency,
	}
	spec.Env = setting.Docs(variables)
	return spec
}

// watches: kinds of others come with a label only. Groups kubevirt.io and cdi.kubevirt.io, and
// NetworkNamespaces may be absent, so the adapter watches them.
func watches(settings Settings) []reconcile.Watch {
	m := mapper{settings: settings}
	return []reconcile.Watch{
		{Resource: kinds.Machines},
		{Resource: kinds.MachineClasses, Keys: m.ofClass},
		{Resource: kinds.KubevirtConfigs, Keys: m.ofConfig},
		{Resource: kinds.NetworkConfigurations, Keys: m.ofNetwork},
		{Resource: kinds.NetworkNamespaces, Adapter: true, Keys: m.ofNetworkNamespace},
		{Resource: kinds.VirtualMachines, Adapter: true, Remote: true, Keys: m.ofVM},
		{Resource: kinds.VirtualMachineInstances, Adapter: true, Remote: true, Keys: m.ofVM},
		{Resource: kind.PersistentVolumeClaims, Selector: v1alpha1.LabelMachine, Remote: true, Keys: m.ofClaim},
		{Resource: kinds.DataVolumes, Adapter: true, Remote: true, Keys: m.ofISO},
		{Resource: kind.Secrets, Selector: reconcile.LabelWatch, Keys: m.ofSecret},
		{Resource: kind.ConfigMaps, Selector: reconcile.LabelWatch, Keys: m.ofConfigMap},
	}
}

func grants() []reconcile.Grant {
	return []reconcile.Grant{
		{Resource: kinds.Machines, Verbs: []string{"get", "list", "patch"}},
		{Resource: kinds.Machines, Subresource: "status", Verbs: []string{"patch"}},
		{
			Resource: kinds.Machines, Subresource: "finalizers", Verbs: []string{"update"},
			Implied: "the record's owner reference blocks the Machine's deletion, which admission may ask this right for",
		},
		{Resource: kinds.MachineClasses, Verbs: []string{"get"}},
		{Resource: kinds.KubevirtConfigs, Verbs: []string{"list"}},
		{Resource: kinds.NetworkNamespaces, Verbs: []string{"get"}},
		{Resource: kinds.NetworkConfigurations, Verbs: []string{"get", "list", "create", "patch", "delete"}},
		{Resource: kind.Secrets, Verbs: []string{"get"}},
		{Resource: kind.ConfigMaps, Verbs: []string{"get"}},
		{Resource: kind.Namespaces, Verbs: []string{"get"}, Names: []string{"kube-system"}},
		{Resource: kind.Events, Verbs: []string{"create"}},
	}
}

func targetGrants() []reconcile.Grant {
	return []reconcile.Grant{
		{Resource: kinds.VirtualMachines, Verbs: []string{"get", "list", "create", "patch", "delete"}},
		{Resource: kinds.VirtualMachineInstances, Verbs: []string{"get", "delete"}},
		{Resource: kind.PersistentVolumeClaims, Verbs: []string{"get", "list", "create", "patch", "delete"}},
		{Resource: kind.Secrets, Verbs: []string{"get", "create", "patch", "delete"}},
		{
			Resource: kind.Namespaces, Verbs: []string{"get", "create"},
			Implied: "a Machine's namespace is looked for, and made, only on clusters other than the management cluster; test/clusters goes there",
		},
		{Resource: kind.StorageClasses, Verbs: []string{"list"}},
		{Resource: kinds.StorageProfiles, Verbs: []string{"get"}},
		{Resource: kinds.DataVolumes, Verbs: []string{"get", "delete"}},
		{Resource: kinds.NetworkAttachmentDefinitions, Verbs: []string{"get", "list", "create", "patch", "delete"}},
	}
}

// children are what a copy of the function that was cut off may have left.
// The Secret for cloud-init is not among them, since Secrets are never listed:
// its owner reference lets Kubernetes collect it, and the record too.
func children(settings Settings) []reconcile.Children {
	selector := managed(settings)
	return []reconcile.Children{
		{Resource: kinds.VirtualMachines, Selector: selector, Owner: ownerOf},
		{Resource: kind.PersistentVolumeClaims, Selector: selector, Owner: ownerOf, InUse: claimInUse},
	}
}

// managed selects what was made here. An object keeps the word that it was made or taken
// over under, so there may be two.
func managed(settings Settings) string {
	if settings.ManagedBy == v1alpha1.DefaultManagedBy {
		return v1alpha1.LabelManagedBy + "=" + settings.ManagedBy
	}
	return v1alpha1.LabelManagedBy + " in (" + v1alpha1.DefaultManagedBy + "," + settings.ManagedBy + ")"
}

// claimInUse: a claim that a virtual machine uses is kept, whosever it was.
func claimInUse(ctx context.Context, r *read.Reader, cluster string, claim *unstructured.Unstructured) (bool, error) {
	vms, err := r.List(ctx, cluster, kinds.VirtualMachines, claim.GetNamespace(), "")
	if err != nil {
		return false, err
	}
	return decide.ClaimUser(vms, claim.GetName()) != "", nil
}

// ownerOf reads the marks of a child. Without all of them it is not certainly
// ours.
func ownerOf(child *unstructured.Unstructured) (owner reconcile.Key, uid, installation string, ok bool) {
	annotations := child.GetAnnotations()
	owner = reconcile.Key{Namespace: child.GetNamespace(), Name: annotations[v1alpha1.AnnotationMachineName]}
	uid, installation = annotations[v1alpha1.AnnotationMachineUID], annotations[kind.AnnotationInstallation]
	return owner, uid, installation, owner.Name != "" && uid != "" && installation != ""
}
