package decide

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
)

// owned reads the fields of one entry.
func owned(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return fieldpath.NewSet()
	}
	return set
}

// isOurs tells the entries by which the function owns fields.
func isOurs(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == catalog.Manager && entry.Subresource == ""
}

// ours is everything that the function owns of an object, and whether it owns
// anything at all.
func ours(live *unstructured.Unstructured) (*fieldpath.Set, bool) {
	all, some := fieldpath.NewSet(), false
	for _, entry := range live.GetManagedFields() {
		if isOurs(entry) {
			all, some = all.Union(owned(entry)), true
		}
	}
	return all, some
}

// created tells that the function itself made an object: it owns fields by a create.
func created(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return isOurs(entry) && entry.Operation == metav1.ManagedFieldsOperationUpdate
	})
}

// holdsPath tells whether a set has a path, or something under it.
func holdsPath(set *fieldpath.Set, path fieldpath.Path) bool {
	if len(path) > 0 && set.Has(path) {
		return true
	}
	under := set
	for _, element := range path {
		under = under.WithPrefix(element)
	}
	return !under.Empty()
}

// without is an object whose function owns nothing at or below some paths, and
// whether that is another than before. The values stay as they are.
func without(live *unstructured.Unstructured, paths []fieldpath.Path) (*unstructured.Unstructured, bool) {
	if len(paths) == 0 {
		return live, false
	}
	drop := fieldpath.NewSet(paths...)
	changed := false
	var entries []metav1.ManagedFieldsEntry
	for _, entry := range live.GetManagedFields() {
		if isOurs(entry) {
			set := owned(entry)
			rest := set.RecursiveDifference(drop)
			if !rest.Equals(set) {
				changed = true
				if rest.Empty() {
					continue
				}
				raw, err := rest.ToJSON()
				if err != nil {
					return live, false
				}
				entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
			}
		}
		entries = append(entries, entry)
	}
	if !changed {
		return live, false
	}
	out := live.DeepCopy()
	setManaged(out, entries)
	return out, true
}

// setManaged replaces who owns what. A list with one empty entry takes all away;
// an empty list would be taken for one that was forgotten.
func setManaged(obj *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) {
	if len(entries) > 0 {
		obj.SetManagedFields(entries)
		return
	}
	_ = unstructured.SetNestedSlice(obj.Object, []any{map[string]any{}}, "metadata", "managedFields")
}

// released is an object that the baseline lets go of: its values stay, the label and
// the ownership go.
func released(live *unstructured.Unstructured) *unstructured.Unstructured {
	out := live.DeepCopy()
	labels := out.GetLabels()
	delete(labels, catalog.LabelManaged)
	out.SetLabels(labels)
	annotations := out.GetAnnotations()
	delete(annotations, AnnotationProblem)
	out.SetAnnotations(annotations)
	setManaged(out, slices.DeleteFunc(out.GetManagedFields(), isOurs))
	return out
}

// opponent is who changed the given paths last, or else the object.
func opponent(live *unstructured.Unstructured, paths []fieldpath.Path) string {
	name, newest, exact := "", time.Time{}, false
	for _, entry := range live.GetManagedFields() {
		if isOurs(entry) || entry.Subresource != "" || entry.Manager == PauseManager {
			continue
		}
		at := time.Time{}
		if entry.Time != nil {
			at = entry.Time.Time
		}
		set := owned(entry)
		has := slices.ContainsFunc(paths, func(p fieldpath.Path) bool { return holdsPath(set, p) })
		if name == "" || has && !exact || has == exact && at.After(newest) {
			name, newest, exact = entry.Manager, at, has
		}
	}
	return name
}
