package machinevm

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/decide"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// mapper tells which Machines an event concerns, from the name of the object
// alone. Names of Machines that do not exist are harmless.
type mapper struct{ settings Settings }

// shortened is the end of a name that may have been shortened; only its
// Machine's own name can tell.
var shortened = regexp.MustCompile(`-[0-9a-f]{10}$`)

// shortenedMin is the length below which no shortened name can be: a shortened
// name lacks some separators at most.
const shortenedMin = v1alpha1.MaxNameLength - 64

func maybeShortened(name string) bool {
	return len(name) >= shortenedMin && shortened.MatchString(name)
}

// ofVM: a virtual machine, or instance, is called like its Machine, with or
// without a prefix.
func (m mapper) ofVM(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	keys := []reconcile.Key{{Namespace: e.Namespace, Name: e.Name}}
	for _, prefix := range []string{m.settings.VMNamePrefix, v1alpha1.DefaultVMNamePrefix} {
		if rest, ok := strings.CutPrefix(e.Name, prefix); ok && rest != "" {
			keys = appendKey(keys, e.Namespace, rest)
		}
	}
	if !maybeShortened(e.Name) {
		return keys, nil
	}
	return m.join(ctx, r, keys, e.Namespace, func(machine *unstructured.Unstructured) bool {
		return slices.Contains(decide.VMNames(machine.GetName(), m.settings.Settings), e.Name)
	})
}

// ofClaim: a claim is called like its Machine and a disk. Both may hold dashes,
// and a name that becomes free may be what another Machine waits for.
func (m mapper) ofClaim(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	keys := []reconcile.Key{{Namespace: e.Namespace, Name: e.Name}}
	for i, c := range e.Name {
		if c == '-' && i > 0 {
			keys = appendKey(keys, e.Namespace, e.Name[:i])
		}
	}
	if !maybeShortened(e.Name) {
		return keys, nil
	}
	return m.join(ctx, r, keys, e.Namespace, func(machine *unstructured.Unstructured) bool {
		return slices.Contains(decide.ClaimNames(machine, m.settings.Settings, nil, true), e.Name)
	})
}

// ofISO: a boot image's DataVolume is called like its Machine.
func (m mapper) ofISO(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	keys := []reconcile.Key{{Namespace: e.Namespace, Name: e.Name}}
	if name, ok := strings.CutSuffix(e.Name, "-iso"); ok && name != "" {
		keys = appendKey(keys, e.Namespace, name)
	}
	if !maybeShortened(e.Name) {
		return keys, nil
	}
	return m.join(ctx, r, keys, e.Namespace, func(machine *unstructured.Unstructured) bool {
		return v1alpha1.ISOName(machine.GetName()) == e.Name
	})
}

// ofNetwork: the Machine whose record it is, which is no network; else those that
// attach to the network.
func (m mapper) ofNetwork(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	keys := []reconcile.Key{{Namespace: e.Namespace, Name: e.Name}}
	obj, err := r.Get(ctx, "", kinds.NetworkConfigurations, e.Namespace, e.Name)
	if err != nil {
		return nil, err
	}
	if obj != nil && decide.IsRecord(obj) {
		return keys, nil
	}
	return m.join(ctx, r, keys, e.Namespace, func(machine *unstructured.Unstructured) bool {
		return slices.Contains(decide.Attachments(machine), v1alpha1.AttachmentName(e.Name))
	})
}

func (m mapper) ofNetworkNamespace(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	return m.join(ctx, r, nil, e.Namespace, func(machine *unstructured.Unstructured) bool {
		name, _, _ := unstructured.NestedString(machine.Object, "spec", "network", "networkNamespaceName")
		return name == e.Name
	})
}

func (m mapper) ofClass(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	return m.join(ctx, r, nil, "", func(machine *unstructured.Unstructured) bool {
		class, _, _ := unstructured.NestedString(machine.Object, "spec", "machineClass")
		instanceType, _, _ := unstructured.NestedString(machine.Object, "spec", "instanceType")
		return class == e.Name || instanceType == e.Name
	})
}

// ofConfig: the Machines that name the cluster, and those without placement.
func (m mapper) ofConfig(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	return m.onCluster(ctx, r, e.Name)
}

// onCluster are the Machines of any of some clusters.
func (m mapper) onCluster(ctx context.Context, r *read.Reader, clusters ...string) ([]reconcile.Key, error) {
	return m.join(ctx, r, nil, "", func(machine *unstructured.Unstructured) bool {
		spec, _, _ := unstructured.NestedString(machine.Object, "spec", "kubevirtConfigRef")
		status, _, _ := unstructured.NestedString(machine.Object, "status", "kubevirtConfigRef")
		names := []string{spec, status, machine.GetAnnotations()[v1alpha1.AnnotationKubevirtConfig]}
		return strings.Join(names, "") == "" || slices.ContainsFunc(names, func(name string) bool { return slices.Contains(clusters, name) })
	})
}

// connected: a cluster came or went.
func (m mapper) connected(ctx context.Context, r *read.Reader, cluster string) ([]reconcile.Key, error) {
	return m.onCluster(ctx, r, cluster)
}

// ofSecret: the Machines on the clusters whose kubeconfig it holds; else those
// whose cloud-init names it, and the one that it was made for.
func (m mapper) ofSecret(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	configs, err := r.List(ctx, decide.Management, kinds.KubevirtConfigs, "", "")
	if err != nil {
		return nil, err
	}
	var clusters []string
	for i := range configs {
		if ns, name := decide.KubeconfigSecret(&configs[i], m.settings.Settings); ns == e.Namespace && name == e.Name {
			clusters = append(clusters, configs[i].GetName())
		}
	}
	if len(clusters) > 0 {
		return m.onCluster(ctx, r, clusters...)
	}
	return m.join(ctx, r, nil, e.Namespace, func(machine *unstructured.Unstructured) bool {
		return slices.Contains(decide.CloudInitSecrets(machine), e.Name) || v1alpha1.CloudInitName(machine.GetName()) == e.Name
	})
}

func (m mapper) ofConfigMap(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	return m.join(ctx, r, nil, e.Namespace, func(machine *unstructured.Unstructured) bool {
		return slices.Contains(decide.CloudInitConfigMaps(machine), e.Name)
	})
}

// join adds the Machines of a namespace, or of all, that an event concerns.
func (m mapper) join(ctx context.Context, r *read.Reader, keys []reconcile.Key, namespace string, concerned func(*unstructured.Unstructured) bool) ([]reconcile.Key, error) {
	var joined []reconcile.Key
	err := r.Within(ctx, "", kinds.Machines, namespace, func(machine *unstructured.Unstructured) bool {
		if !concerned(machine) {
			return false
		}
		joined = append(joined, reconcile.Key{Namespace: machine.GetNamespace(), Name: machine.GetName()})
		return true
	})
	slices.SortFunc(joined, func(a, b reconcile.Key) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, key := range joined {
		keys = appendKey(keys, key.Namespace, key.Name)
	}
	return keys, err
}

func appendKey(keys []reconcile.Key, namespace, name string) []reconcile.Key {
	key := reconcile.Key{Namespace: namespace, Name: name}
	if slices.Contains(keys, key) {
		return keys
	}
	return append(keys, key)
}
