package decide

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
)

// relation is what an object under a wanted name is to the Cluster.
type relation int

const (
	// mine: one of its owners says so.
	mine relation = iota
	// unclaimed: it has no owner. It is the Cluster's if it is what would be made.
	unclaimed
	// foreign: it has owners, and they are others.
	foreign
)

func relate(obj *unstructured.Unstructured, owners ...*unstructured.Unstructured) relation {
	for _, owner := range owners {
		if dockyards.OwnedBy(obj, owner) {
			return mine
		}
	}
	if len(obj.GetOwnerReferences()) > 0 {
		return foreign
	}
	return unclaimed
}

// conflict is the verdict on an object that lies in the way.
func conflict(res kind.Resource, obj *unstructured.Unstructured) verdict {
	return wrong(v1alpha3.ReasonNameConflict,
		res.Kind+" "+quote(obj.GetName())+" is not this Cluster's and stays as it is: remove or rename it")
}

// going is the verdict on an object that is on its way out.
func going(res kind.Resource, obj *unstructured.Unstructured) verdict {
	return waiting(v1alpha3.ReasonDeleting, res.Kind+" "+quote(obj.GetName())+" is being deleted; it is made anew once it is gone")
}
