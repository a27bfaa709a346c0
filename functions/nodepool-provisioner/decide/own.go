package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// owns tells whether an object of the pool's namespace is the pool's: it says so, the
// Cluster API Cluster of the same Cluster owns it, or nobody does and it looks like
// what upstream makes for the pool.
func (v *view) owns(obj *unstructured.Unstructured, looksLike func(*unstructured.Unstructured) bool) bool {
	if obj == nil {
		return false
	}
	refs := obj.GetOwnerReferences()
	if dockyards.OwnedBy(obj, v.in.Pool) {
		return true
	}
	if slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool {
		return dockyards.NodePools.Is(ref.APIVersion, ref.Kind) && ref.Name != v.name
	}) {
		return false
	}
	return (len(refs) == 0 && looksLike(obj)) || slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool {
		return dockyards.CAPIClusters.Is(ref.APIVersion, ref.Kind) && ref.Name == v.clusterName
	})
}

// findLive finds what keeps the pool's machines.
func (v *view) findLive() {
	obj := v.in.Machines
	switch {
	case obj == nil:
	case !v.owns(obj, v.looksUpstream):
		v.machines.add(taken(v.roller().res.Kind, v.name))
		v.handsOff = true
	default:
		v.live = obj
		if v.handsOff = dockyards.Going(obj); v.handsOff {
			v.machines.add(waiting(v1alpha3.ReasonDeleting, "%s %q is being deleted", v.roller().res.Kind, v.name))
		}
	}
}

// looksUpstream tells whether an object that nobody owns is what upstream would have
// made for the pool.
func (v *view) looksUpstream(obj *unstructured.Unstructured) bool {
	if v.infrastructureOf(obj) != v.name {
		return false
	}
	if v.controlPlane() {
		return text(obj.Object, "spec", "controlPlaneConfig", "controlplane", "generateType") == "controlplane"
	}
	return text(obj.Object, "spec", "clusterName") == v.clusterName
}

// marked is a copy of an object that says whose it is. What others say on it stays.
func (v *view) marked(obj *unstructured.Unstructured) *unstructured.Unstructured {
	marked := obj.DeepCopy()
	dockyards.SetOwner(marked, dockyards.Reference(dockyards.NodePools, v.in.Pool))
	labels := map[string]string{}
	for key, value := range map[string]string{v1alpha3.LabelClusterName: v.clusterName, v1alpha3.LabelNodePoolName: v.name} {
		if labelValue(value) {
			labels[key] = value
		}
	}
	dockyards.SetLabels(marked, labels)
	return marked
}

// marks says on the pool's templates whose they are.
func (v *view) marks() []plan.Entry {
	var entries []plan.Entry
	for _, s := range v.shelves() {
		for _, obj := range s.own {
			v.patch(&entries, s.res, obj, v.marked(obj), "the template does not say whose it is")
		}
	}
	return entries
}

func equalObjects(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}
