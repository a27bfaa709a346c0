package decide

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// at is the value under a path; nil if there is none.
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

// anyList is a list as it stands in unstructured content.
func anyList(items []string) []any {
	list := make([]any, 0, len(items))
	for _, item := range items {
		list = append(list, item)
	}
	return list
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

// drop removes the value under a path.
func drop(content map[string]any, path ...string) {
	unstructured.RemoveNestedField(content, path...)
}

// blank tells whether a value says nothing: it is absent, empty, or holds nothing
// but what says nothing.
func blank(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, child := range v {
			if !blank(child) {
				return false
			}
		}
		return true
	}
	return false
}
