package decide

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/render"
)

// applyAll plans everything that a Workload which renders needs: what is recorded
// first, then the objects one after the other, then what has to go.
func (v *view) applyAll() {
	var stages []plan.Stage
	wanted := inventory{}
	for _, object := range v.objects {
		live, ok := v.liveAs(object.Resource, object.Intent)
		if !ok {
			continue
		}
		entry, uid := v.applyOne(object, live)
		wanted = append(wanted, newItem(object.Resource, object.Intent.GetName(), uid))
		if entry != nil {
			stages = append(stages, plan.Stage{Name: render.GroupNames[render.Group(object.Resource)], Entries: []plan.Entry{*entry}})
		}
	}
	kept, pruned := v.prune()
	if len(v.needs) > 0 || v.problem != nil {
		return
	}
	v.plan.Add("record", v.record(append(wanted, kept...))...)
	v.plan.Stages = append(v.plan.Stages, stages...)
	if len(v.going) == 0 {
		v.plan.Stages = append(v.plan.Stages, pruned...)
	}
	// What is made now has a UID that is recorded in another round, and what goes lets
	// something else go. A change that a person shall hear of is concluded at once; its
	// own event brings the rest.
	v.plan.Continue = !v.capped && len(v.reinstalled) == 0 && (len(pruned) > 0 || len(v.forgetting) > 0 || slices.ContainsFunc(stages, func(stage plan.Stage) bool {
		return stage.Entries[0].Base == nil || stage.Entries[0].Verb == plan.Patch
	}))
}

// applyOne plans one object, and tells the UID to record. An object that is on its
// way out is made again when it is gone.
func (v *view) applyOne(object render.Object, live *unstructured.Unstructured) (entry *plan.Entry, uid string) {
	if live == nil {
		return &plan.Entry{
			Verb: plan.Apply, Resource: object.Resource, Object: object.Intent, Reason: "the template gives it as " + object.Field,
		}, ""
	}
	uid = string(live.GetUID())
	if live.GetDeletionTimestamp() != nil {
		v.going = append(v.going, Found{Resource: object.Resource, Object: live})
		return nil, uid
	}
	if v.relate(live) == restored {
		return &plan.Entry{
			Verb: plan.Patch, Resource: object.Resource, Base: live, Object: v.reowned(live),
			Reason: "its owner was the Workload before it was restored",
		}, uid
	}
	if object.Resource.Kind == render.HelmReleases.Kind && reinstalls(live, object.Intent) {
		v.reinstalled = append(v.reinstalled, object.Intent.GetName())
	}
	return &plan.Entry{
		Verb: plan.Apply, Resource: object.Resource, Base: live, Object: object.Intent, Reason: "the template gives it as " + object.Field,
	}, uid
}

// reowned is an object with this Workload in place of the one before.
func (v *view) reowned(live *unstructured.Unstructured) *unstructured.Unstructured {
	obj := live.DeepCopy()
	refs := slices.DeleteFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return dockyards.Workloads.Is(ref.APIVersion, ref.Kind) && ref.Name == v.scope.Workload
	})
	obj.SetOwnerReferences(append(refs, render.OwnerReference(v.scope)))
	return obj
}

// reinstalls tells whether a change makes helm-controller remove a release and
// install it anew.
func reinstalls(live, intent *unstructured.Unstructured) bool {
	for _, field := range []string{"storageNamespace", "targetNamespace", "releaseName"} {
		have, had, _ := unstructured.NestedString(live.Object, "spec", field)
		want, wanted, _ := unstructured.NestedString(intent.Object, "spec", field)
		if had && wanted && have != want {
			return true
		}
	}
	return false
}

// record holds the Workload, and writes down what is about to be applied.
func (v *view) record(all inventory) []plan.Entry {
	changed := v.workload.DeepCopy()
	annotations := changed.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	reason := ""
	if !v.held() {
		changed.SetFinalizers(append(changed.GetFinalizers(), Finalizer))
		reason = "the Workload is held until what is applied for it is gone"
	}
	if text := all.text(); v.invalid == "" && annotations[AnnotationInventory] != text {
		annotations[AnnotationInventory] = text
		reason = "what is applied is recorded first"
	}
	if _, set := annotations[AnnotationQuarantine]; set {
		delete(annotations, AnnotationQuarantine)
		reason = "the template renders again"
	}
	if reason == "" {
		return nil
	}
	changed.SetAnnotations(annotations)
	return []plan.Entry{{Verb: plan.Patch, Resource: dockyards.Workloads, Base: v.workload, Object: changed, Reason: reason}}
}

// quarantine notes a render that was stopped, so that neither retries nor resyncs
// repeat its cost.
func (v *view) quarantine() {
	changed := v.workload.DeepCopy()
	dockyards.SetAnnotation(changed, AnnotationQuarantine, v.hash)
	v.plan.Add("quarantine", plan.Entry{
		Verb: plan.Patch, Resource: dockyards.Workloads, Base: v.workload, Object: changed,
		Reason: "this render is not tried again before template, input or Cluster change",
	})
}
