package decide

import (
	"slices"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/render"
)

// dismantle removes what was applied for a Workload that goes: Kustomizations and
// HelmReleases first, and when they are gone the rest, then the finalizer. Neither
// template nor Cluster is asked.
func (v *view) dismantle() {
	if !v.held() {
		v.reason("nothing is held for the Workload")
		return
	}
	if v.invalid != "" {
		v.reason("the inventory cannot be used: %s; the Workload's marks are", v.invalid)
	}
	objects := append(v.unwanted(), v.goingToo()...)
	if len(v.needs) > 0 || v.problem != nil {
		return
	}
	stages, leaving := v.remove(objects, 0)
	v.plan.Stages = stages
	v.plan.Continue = true
	v.leaving = slices.DeleteFunc(leaving, func(found Found) bool { return !render.IsRelease(found.Resource) })
	if len(v.leaving) == 0 {
		v.plan.Add("finalizer", v.released())
	}
}

// goingToo are the Workload's objects that stand in no inventory: the garbage
// collector would take them anyway.
func (v *view) goingToo() []Found {
	var objects []Found
	for _, found := range v.in.Objects {
		if _, recorded := v.old.find(found.Resource, found.Object.GetName()); !recorded && v.relate(found.Object) == own {
			objects = append(objects, found)
		}
	}
	return objects
}

func (v *view) released() plan.Entry {
	free := v.workload.DeepCopy()
	free.SetFinalizers(slices.DeleteFunc(free.GetFinalizers(), func(name string) bool { return name == Finalizer }))
	if len(free.GetFinalizers()) == 0 {
		free.SetFinalizers(nil)
	}
	return plan.Entry{
		Verb: plan.Patch, Resource: dockyards.Workloads, Base: v.workload, Object: free,
		Reason: "nothing applied for the Workload is left that has to be waited for",
	}
}
