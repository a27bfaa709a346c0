package v1alpha3

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OwnerCluster is the name of the Cluster that an object belongs to, in the
// object's own namespace; empty if it belongs to none. The owner reference
// decides; the label dockyards.io/cluster-name stands in for a missing one.
func OwnerCluster(obj metav1.Object) string {
	if ref := OwnerClusterReference(obj); ref != nil {
		return ref.Name
	}
	return obj.GetLabels()[LabelClusterName]
}

// OwnerClusterReference is the first owner reference to a Cluster of this group,
// in any version, or nil. Cluster API has a kind of the same name.
func OwnerClusterReference(obj metav1.Object) *metav1.OwnerReference {
	return OwnerReference(obj, KindCluster)
}

// OwnerReference is the first owner reference to a kind of this group, in any
// version, or nil.
func OwnerReference(obj metav1.Object, kind string) *metav1.OwnerReference {
	refs := obj.GetOwnerReferences()
	for i := range refs {
		group, err := schema.ParseGroupVersion(refs[i].APIVersion)
		if err == nil && group.Group == GroupName && refs[i].Kind == kind {
			return &refs[i]
		}
	}
	return nil
}

// IsDefaultRelease tells whether a Release is marked as the default of its type.
func IsDefaultRelease(release metav1.Object) bool {
	_, marked := release.GetAnnotations()[AnnotationDefaultRelease]
	return marked
}

// Expiry is when an object that lives for a duration ends; nil if it does not.
func Expiry(obj metav1.Object, duration *metav1.Duration) *time.Time {
	if duration == nil {
		return nil
	}
	end := obj.GetCreationTimestamp().Add(duration.Duration)
	return &end
}
