package apply

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// verdict tells whether applying an intent would change a live object.
type verdict int

const (
	equal verdict = iota
	different
	// unsure: only the server, with the schema, can tell.
	unsure
)

// compare judges an intent against the live object: every leaf must be equal,
// and the leaves that manager owns must be exactly the intent's.
func compare(intent, live *unstructured.Unstructured, manager string) (verdict, error) {
	c := comparison{owned: fieldpath.NewSet()}
	c.fields(fieldpath.Path{}, "", intent.Object, live.Object)
	if c.worst == different {
		return different, nil
	}
	owned, err := ownedBy(live, manager)
	if err != nil {
		return different, err
	}
	if owned.Leaves().Equals(c.owned.Leaves()) {
		return c.worst, nil
	}
	// Equal values, another owner. Whether that is really so depends on which
	// maps and lists are atomic, which only the server knows for certain.
	return unsure, nil
}

// ownedBy is the set of fields that manager owns, by apply or since it created
// the object.
func ownedBy(live *unstructured.Unstructured, manager string) (*fieldpath.Set, error) {
	owned := fieldpath.NewSet()
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != manager || entry.Subresource != "" {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("cannot read the managed fields of %s %q: %w", live.GetKind(), live.GetName(), err)
		}
		owned = owned.Union(set)
	}
	return owned, nil
}

// notOwned are the fields that identify an object; nobody owns them.
var notOwned = map[string]bool{
	".apiVersion": true, ".kind": true, ".metadata.name": true, ".metadata.namespace": true,
	".metadata.resourceVersion": true, ".metadata.uid": true,
}

type comparison struct {
	owned *fieldpath.Set
	worst verdict
}

func (c *comparison) judge(v verdict) {
	if c.worst == equal || v == different {
		c.worst = v
	}
}

func (c *comparison) fields(path fieldpath.Path, dotted string, intent, live map[string]any) {
	for name, want := range intent {
		child := dotted + "." + name
		if notOwned[child] {
			continue
		}
		have, present := live[name]
		if !present && hollow(want) {
			// Whether the server keeps what holds nothing depends on the type.
			c.judge(unsure)
			continue
		}
		if !present {
			c.judge(different)
		}
		c.value(append(path.Copy(), fieldpath.PathElement{FieldName: &name}), child, want, have)
	}
}

func (c *comparison) value(path fieldpath.Path, dotted string, want, have any) {
	switch w := want.(type) {
	case map[string]any:
		if len(w) == 0 {
			c.owned.Insert(path)
		}
		h, ok := have.(map[string]any)
		if !ok {
			c.judge(different)
		}
		c.fields(path, dotted, w, h)
	case []any:
		if dotted == ownerReferences {
			c.owners(path, w, have)
			return
		}
		// Whether a list is atomic or has keys only the server knows: one that is
		// not equal, or not owned as a whole, makes the verdict unsure.
		c.owned.Insert(path)
		c.judge(leaf(want, have))
	default:
		c.owned.Insert(path)
		c.judge(leaf(want, have))
	}
}

// hollow tells whether a value holds nothing: no leaf at all.
func hollow(v any) bool {
	switch w := v.(type) {
	case nil:
		return true
	case []any:
		return len(w) == 0
	case map[string]any:
		for _, child := range w {
			if !hollow(child) {
				return false
			}
		}
		return true
	}
	return false
}

// ownerReferences are a keyed list on every object, whose items are atomic.
const ownerReferences = ".metadata.ownerReferences"

func (c *comparison) owners(path fieldpath.Path, want []any, have any) {
	live, _ := have.([]any)
	for _, item := range want {
		reference, ok := item.(map[string]any)
		if !ok {
			c.judge(different)
			continue
		}
		keys := []string{"uid"}
		c.owned.Insert(append(path.Copy(), fieldpath.PathElement{Key: fieldpath.KeyByFields(keyValues(reference, keys)...)}))
		if !reflect.DeepEqual(normal(reference), normal(find(live, reference, keys))) {
			c.judge(different)
		}
	}
}

func keyValues(item map[string]any, keys []string) []any {
	pairs := make([]any, 0, 2*len(keys))
	for _, key := range keys {
		pairs = append(pairs, key, item[key])
	}
	return pairs
}

func find(items []any, like map[string]any, keys []string) map[string]any {
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		match := true
		for _, key := range keys {
			match = match && equality.Semantic.DeepEqual(normal(fields[key]), normal(like[key]))
		}
		if match {
			return fields
		}
	}
	return nil
}

// leaf compares two scalars or atomic values. Two different strings that are
// the same quantity may be equal to the server: that depends on the schema.
func leaf(want, have any) verdict {
	if reflect.DeepEqual(normal(want), normal(have)) {
		return equal
	}
	a, errA := resource.ParseQuantity(fmt.Sprint(want))
	b, errB := resource.ParseQuantity(fmt.Sprint(have))
	if errA == nil && errB == nil && a.Cmp(b) == 0 {
		return unsure
	}
	switch want.(type) {
	case []any, map[string]any:
		// Inside an atomic value the server may add defaults.
		return unsure
	}
	return different
}

// normal brings the numbers that JSON and Go spell differently to one type.
func normal(v any) any {
	switch n := v.(type) {
	case int:
		return int64(n)
	case int32:
		return int64(n)
	case float64:
		if n == float64(int64(n)) {
			return int64(n)
		}
	case map[string]any:
		out := make(map[string]any, len(n))
		for key, child := range n {
			out[key] = normal(child)
		}
		return out
	case []any:
		out := make([]any, len(n))
		for i, child := range n {
			out[i] = normal(child)
		}
		return out
	}
	return v
}

// sameObject compares a dry-run's answer with the live object, without what
// changes by the mere attempt: resourceVersion and the times of managed fields.
func sameObject(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(normal(settled(a)), normal(settled(b)))
}

func settled(obj *unstructured.Unstructured) map[string]any {
	clone := obj.DeepCopy()
	fields := clone.GetManagedFields()
	for i := range fields {
		fields[i].Time = nil
	}
	clone.SetManagedFields(fields)
	clone.SetResourceVersion("")
	unstructured.RemoveNestedField(clone.Object, "metadata", "generation")
	return clone.Object
}
