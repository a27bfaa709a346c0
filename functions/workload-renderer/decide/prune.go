package decide

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/render"
)

// prune plans the removal of what the template stopped giving. kept are the entries
// of the inventory that are not settled yet.
func (v *view) prune() (kept inventory, stages []plan.Stage) {
	unwanted := v.unwanted()
	kept = append(kept, v.forgetting...)
	v.lost = v.orphans()
	if v.workload.GetAnnotations()[AnnotationPruneOrphans] == "true" && v.invalid == "" {
		unwanted = append(unwanted, v.lost...)
		v.lost = nil
	}
	for _, found := range unwanted {
		kept = append(kept, newItem(found.Resource, found.Object.GetName(), string(found.Object.GetUID())))
	}
	stages, v.leaving = v.remove(unwanted, v.in.Settings.MaxPrune)
	return kept, stages
}

// unwanted are the objects of the old inventory that the template does not give any
// more, are still there, and are still the Workload's.
func (v *view) unwanted() []Found {
	var unwanted []Found
	for _, entry := range v.old {
		res, known := render.Find(v.in.Settings.Rules.Allowed, entry.Group, entry.Kind)
		if !known || v.wants(entry) {
			continue
		}
		live, ok := v.live(res, entry.Name)
		switch {
		case !ok:
		case live == nil && entry.UID == "":
			entry.UID = forgotten
			v.forgetting = append(v.forgetting, entry)
		case live == nil:
			v.reason("%s/%s is gone", entry.Kind, entry.Name)
		case v.relate(live) != own || (entry.known() && entry.UID != string(live.GetUID())):
			v.reason("%s/%s is another's now and is left", entry.Kind, entry.Name)
		default:
			unwanted = append(unwanted, Found{Resource: res, Object: live})
		}
	}
	return unwanted
}

func (v *view) wants(entry item) bool {
	return slices.ContainsFunc(v.objects, func(object render.Object) bool {
		return newItem(object.Resource, object.Intent.GetName(), "").compare(entry) == 0
	})
}

// orphans are labelled objects of the Workload that stand in no inventory and that the
// template does not give: made by upstream, or before the inventory was lost.
func (v *view) orphans() []Found {
	var orphans []Found
	for _, found := range v.in.Objects {
		entry := newItem(found.Resource, found.Object.GetName(), "")
		_, recorded := v.old.find(found.Resource, entry.Name)
		if !recorded && !v.wants(entry) && v.relate(found.Object) == own && found.Object.GetDeletionTimestamp() == nil {
			orphans = append(orphans, found)
		}
	}
	return sorted(orphans)
}

// sorted brings objects into the order in which they go: what brings something into
// a cluster first, namespaces last.
func sorted(objects []Found) []Found {
	slices.SortFunc(objects, func(a, b Found) int {
		return cmp.Or(render.Group(b.Resource)-render.Group(a.Resource),
			strings.Compare(a.Resource.Kind, b.Resource.Kind), strings.Compare(a.Object.GetName(), b.Object.GetName()))
	})
	return objects
}

// remove plans the removal of objects, at most so many; 0 is no bound. Sources and
// everything else stay until the last Kustomization and HelmRelease is gone: Flux
// needs them to clean up. leaving are those that somebody has to wait for.
func (v *view) remove(objects []Found, bound int) (stages []plan.Stage, leaving []Found) {
	objects = sorted(slices.Clone(objects))
	releases := slices.ContainsFunc(objects, func(found Found) bool { return render.IsRelease(found.Resource) && !stays(found) })
	deleted := 0
	for _, found := range objects {
		if releases && !render.IsRelease(found.Resource) {
			break
		}
		stage := render.GroupNames[render.Group(found.Resource)] + " that go"
		switch {
		case stays(found):
			stages = append(stages, plan.Stage{Name: stage, Entries: []plan.Entry{v.release(found)}})
			continue
		case found.Object.GetDeletionTimestamp() != nil:
		case bound > 0 && deleted == bound:
			v.capped = true
		default:
			deleted++
			stages = append(stages, plan.Stage{Name: stage, Entries: []plan.Entry{{
				Verb: plan.Delete, Resource: found.Resource, Base: found.Object, Reason: v.whyGo(),
			}}})
		}
		leaving = append(leaving, found)
	}
	return stages, leaving
}

func (v *view) whyGo() string {
	if v.deleting() {
		return "the Workload is being deleted"
	}
	return "the template does not give it any more"
}

// stays tells whether a person wants an object to stay, whatever becomes of the
// Workload. A Namespace goes only if a person says so: its content goes with it.
func stays(found Found) bool {
	prune := found.Object.GetAnnotations()[render.AnnotationPrune]
	if found.Resource.Kind == render.Namespaces.Kind {
		return prune != "true"
	}
	return prune == "false"
}

// release takes the Workload's claim off an object that stays.
func (v *view) release(found Found) plan.Entry {
	free := found.Object.DeepCopy()
	if !found.Resource.Namespaced {
		unstructured.RemoveNestedField(free.Object, "metadata", "annotations", render.AnnotationOwnerUID)
		unstructured.RemoveNestedField(free.Object, "metadata", "annotations", render.AnnotationOwner)
	}
	refs := slices.DeleteFunc(free.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == v.scope.UID })
	free.SetOwnerReferences(refs)
	if len(refs) == 0 {
		unstructured.RemoveNestedField(free.Object, "metadata", "ownerReferences")
	}
	return plan.Entry{
		Verb: plan.Patch, Resource: found.Resource, Base: found.Object, Object: free,
		Reason: "it stays, as annotation " + render.AnnotationPrune + " says",
	}
}
