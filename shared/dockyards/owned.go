package dockyards

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/kind"
)

// Reference is the ownerReference to an object as upstream writes it: neither
// controller nor blocking its deletion.
func Reference(res kind.Resource, owner *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: res.APIVersion(), Kind: res.Kind, Name: owner.GetName(), UID: owner.GetUID()}
}

// OwnedBy reports whether one of the object's ownerReferences has the UID of the
// owner.
func OwnedBy(obj, owner *unstructured.Unstructured) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() })
}

// OwnerName is the name of the first owner of a kind, in any version of its
// group; empty for none. The owner lies in the object's own namespace.
func OwnerName(obj *unstructured.Unstructured, res kind.Resource) string {
	for _, ref := range obj.GetOwnerReferences() {
		if res.Is(ref.APIVersion, ref.Kind) {
			return ref.Name
		}
	}
	return ""
}

// ClusterOf is the name of the Dockyards Cluster that an object belongs to: its
// owner, else the one that its label names; empty for none.
func ClusterOf(obj *unstructured.Unstructured) string {
	if owner := OwnerName(obj, Clusters); owner != "" {
		return owner
	}
	return obj.GetLabels()["dockyards.io/cluster-name"]
}

// SetOwner adds an ownerReference to an object: one of the same UID keeps its
// place and flags, those of others stay.
func SetOwner(obj *unstructured.Unstructured, ref metav1.OwnerReference) {
	refs := obj.GetOwnerReferences()
	for i := range refs {
		if refs[i].UID == ref.UID {
			refs[i].APIVersion, refs[i].Kind, refs[i].Name = ref.APIVersion, ref.Kind, ref.Name
			obj.SetOwnerReferences(refs)
			return
		}
	}
	obj.SetOwnerReferences(append(refs, ref))
}

// SetLabels adds labels to those that an object has.
func SetLabels(obj *unstructured.Unstructured, labels map[string]string) {
	have := obj.GetLabels()
	if have == nil {
		have = map[string]string{}
	}
	for key, value := range labels {
		have[key] = value
	}
	if len(have) > 0 {
		obj.SetLabels(have)
	}
}

// SetAnnotation sets one annotation beside those that an object has.
func SetAnnotation(obj *unstructured.Unstructured, key, value string) {
	have := obj.GetAnnotations()
	if have == nil {
		have = map[string]string{}
	}
	have[key] = value
	obj.SetAnnotations(have)
}

// Going reports whether an object is being deleted.
func Going(obj *unstructured.Unstructured) bool {
	return obj != nil && obj.GetDeletionTimestamp() != nil
}

// Older orders objects by who was first: creation, then namespace, then name.
// Where two compete for one thing, the older has it.
func Older(a, b *unstructured.Unstructured) int {
	return cmp.Or(
		a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		strings.Compare(a.GetNamespace(), b.GetNamespace()),
		strings.Compare(a.GetName(), b.GetName()),
	)
}
