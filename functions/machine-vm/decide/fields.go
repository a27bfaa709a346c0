package decide

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// at is the value under a path of maps, or nil.
func at(content map[string]any, path ...string) any {
	var value any = content
	for _, name := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[name]
	}
	return value
}

// text is the string under a path; empty if there is none.
func text(content map[string]any, path ...string) string {
	s, _ := at(content, path...).(string)
	return s
}

// number is the whole number under a path.
func number(content map[string]any, path ...string) (int64, bool) {
	switch n := at(content, path...).(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}

// boolean is the truth value under a path.
func boolean(content map[string]any, path ...string) (value, ok bool) {
	value, ok = at(content, path...).(bool)
	return value, ok
}

// entries are the maps of the list under a path. Changing one changes content.
func entries(content map[string]any, path ...string) []map[string]any {
	items, _ := at(content, path...).([]any)
	fields := make([]map[string]any, 0, len(items))
	for _, item := range items {
		if entry, ok := item.(map[string]any); ok {
			fields = append(fields, entry)
		}
	}
	return fields
}

// texts are the strings of the list under a path.
func texts(content map[string]any, path ...string) []string {
	items, _ := at(content, path...).([]any)
	var found []string
	for _, item := range items {
		if s, ok := item.(string); ok {
			found = append(found, s)
		}
	}
	return found
}

// quantity is the quantity under a path, written as text or as a number.
func quantity(content map[string]any, path ...string) (resource.Quantity, bool) {
	if n, ok := number(content, path...); ok {
		return *resource.NewQuantity(n, resource.DecimalSI), true
	}
	q, err := resource.ParseQuantity(text(content, path...))
	return q, err == nil
}

// put sets the value under a path and makes the maps on the way.
func put(content map[string]any, value any, path ...string) {
	for _, name := range path[:len(path)-1] {
		child, ok := content[name].(map[string]any)
		if !ok {
			child = map[string]any{}
			content[name] = child
		}
		content = child
	}
	content[path[len(path)-1]] = value
}

// drop removes the value under a path, and the maps on the way that become
// empty by it.
func drop(content map[string]any, path ...string) {
	if len(path) > 1 {
		child, ok := content[path[0]].(map[string]any)
		if !ok {
			return
		}
		drop(child, path[1:]...)
		if len(child) > 0 {
			return
		}
	}
	delete(content, path[0])
}

// named is the entry of a list whose name is given, or nil.
func named(items []map[string]any, name string) map[string]any {
	i := slices.IndexFunc(items, func(entry map[string]any) bool { return text(entry, "name") == name })
	if i < 0 {
		return nil
	}
	return items[i]
}

// volumeClaim is the claim that a volume of a virtual machine uses; empty if
// it uses none.
func volumeClaim(volume map[string]any) string {
	if claim := text(volume, "persistentVolumeClaim", "claimName"); claim != "" {
		return claim
	}
	return text(volume, "dataVolume", "name")
}

// volumes are the volumes of a virtual machine.
func volumes(vm *unstructured.Unstructured) []map[string]any {
	if vm == nil {
		return nil
	}
	return entries(vm.Object, "spec", "template", "spec", "volumes")
}

// condition is the status condition of a type, as KubeVirt writes them; nil if
// there is none.
func condition(obj *unstructured.Unstructured, conditionType string) map[string]any {
	if obj == nil {
		return nil
	}
	for _, cond := range entries(obj.Object, "status", "conditions") {
		if text(cond, "type") == conditionType {
			return cond
		}
	}
	return nil
}

// with is a copy of a map with further entries.
func with(have, more map[string]string) map[string]string {
	all := make(map[string]string, len(have)+len(more))
	maps.Copy(all, have)
	maps.Copy(all, more)
	return all
}
