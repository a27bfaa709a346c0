package read

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/vault"
)

// Overlay are objects of the management cluster that a Reader reads instead of what is
// there: what would be decided if somebody applied them. They are opened objects, as a
// server would send them.
type Overlay []*unstructured.Unstructured

// Over gives a reader an overlay. It is set before the first read.
func (r *Reader) Over(overlay Overlay) { r.overlay = overlay }

// sealed is a copy of an overlaid object as it is read.
func sealed(res kind.Resource, obj *unstructured.Unstructured, v *vault.Vault) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	drop(res, obj)
	v.SealObject(res, obj)
	return obj
}

// over answers a get.
func (o Overlay) over(need plan.Need, v *vault.Vault, live func() plan.Answer) plan.Answer {
	for _, obj := range o {
		if o.is(need, obj) && obj.GetName() == need.Name && obj.GetNamespace() == need.Resource.Within(need.Namespace) {
			return plan.Answer{Object: sealed(need.Resource, obj, v)}
		}
	}
	return live()
}

// onto changes the answer to a list.
func (o Overlay) onto(need plan.Need, answer plan.Answer, v *vault.Vault) plan.Answer {
	if answer.Fault != nil {
		return answer
	}
	selector, err := labels.Parse(need.Selector)
	if err != nil {
		return answer
	}
	for _, obj := range o {
		if !o.is(need, obj) || (need.Namespace != "" && obj.GetNamespace() != need.Namespace) {
			continue
		}
		kept := answer.Items[:0:0]
		for _, item := range answer.Items {
			if item.GetName() != obj.GetName() || item.GetNamespace() != obj.GetNamespace() {
				kept = append(kept, item)
			}
		}
		if part := sealed(need.Resource, obj, v); selector.Matches(labels.Set(obj.GetLabels())) && (need.Only == nil || need.Only(part)) {
			kept = append(kept, *part)
		}
		answer.Items = ordered(kept)
	}
	return answer
}

// covers tells whether an object is read as the overlay has it.
func (o Overlay) covers(need plan.Need, live *unstructured.Unstructured) bool {
	for _, obj := range o {
		if o.is(need, obj) && obj.GetName() == live.GetName() && obj.GetNamespace() == live.GetNamespace() {
			return true
		}
	}
	return false
}

func (Overlay) is(need plan.Need, obj *unstructured.Unstructured) bool {
	return need.Cluster == "" && need.Resource.Is(obj.GetAPIVersion(), obj.GetKind())
}
