package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// dismantle takes down a pool that goes: first what keeps its machines, and its
// templates when that is gone. A control plane goes with the Cluster API Cluster, and
// is never deleted here.
func (v *view) dismantle() {
	v.reason("the pool is being deleted")
	if len(v.in.Refused) > 0 {
		return
	}
	if machines := v.in.Machines; machines != nil {
		if !v.controlPlane() && dockyards.OwnedBy(machines, v.in.Pool) && !dockyards.Going(machines) {
			v.plan.Add("machines", plan.Entry{
				Verb: plan.Delete, Resource: dockyards.MachineDeployments, Base: machines, Reason: "the pool is being deleted",
			})
		}
		return
	}
	var entries []plan.Entry
	for _, kept := range []struct {
		res kind.Resource
		all []unstructured.Unstructured
	}{{dockyards.KubevirtMachineTemplates, v.in.MachineTemplates}, {dockyards.TalosConfigTemplates, v.in.ConfigTemplates}} {
		for _, obj := range slices.DeleteFunc(byName(kept.all), dockyards.Going) {
			if dockyards.OwnedBy(obj, v.in.Pool) {
				v.remove(&entries, kept.res, obj, "the pool is being deleted and has no machines any more")
			}
		}
	}
	v.plan.Add("templates", entries...)
}
