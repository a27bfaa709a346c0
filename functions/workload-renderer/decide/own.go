package decide

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/render"
)

// relation says whose a live object is.
type relation int

const (
	// foreign: somebody else's, or nobody's that we know of.
	foreign relation = iota
	// own: its controller is this very Workload.
	own
	// restored: its controller was a Workload of this name that is gone, as after a
	// restore from a backup.
	restored
	// adoptable: it has no controller, and both our labels.
	adoptable
)

// relate tells whose an object is. What has no namespace cannot have an owner there:
// an annotation stands for the reference.
func (v *view) relate(obj *unstructured.Unstructured) relation {
	if obj.GetNamespace() == "" {
		if obj.GetAnnotations()[render.AnnotationOwnerUID] == string(v.scope.UID) {
			return own
		}
		return foreign
	}
	controller := metav1.GetControllerOfNoCopy(obj)
	switch {
	case controller == nil:
		labels := obj.GetLabels()
		if labels[v1alpha3.LabelWorkloadName] == v.scope.Workload && labels[v1alpha3.LabelClusterName] == v.scope.Cluster {
			return adoptable
		}
		return foreign
	case controller.UID == v.scope.UID:
		return own
	case dockyards.Workloads.Is(controller.APIVersion, controller.Kind) && controller.Name == v.scope.Workload:
		// There is one Workload of a name, and this one has another UID.
		return restored
	}
	return foreign
}

// checkOwners looks at what lies under the names of all outputs.
func (v *view) checkOwners(Reference) {
	for _, object := range v.objects {
		live, ok := v.liveAs(object.Resource, object.Intent)
		if !ok || live == nil || v.relate(live) != foreign {
			continue
		}
		v.stop(ReasonNotOwned, "output %q is %s, which is %s", object.Field, object.Name(), owner(live))
		return
	}
}

func owner(obj *unstructured.Unstructured) string {
	if controller := metav1.GetControllerOfNoCopy(obj); controller != nil {
		return "controlled by " + controller.Kind + "/" + controller.Name
	}
	if of := obj.GetAnnotations()[render.AnnotationOwner]; of != "" {
		return "of Workload " + clip.Line(of, messageMax)
	}
	return "not the Workload's: it was made by others and has no labels of this Workload"
}
