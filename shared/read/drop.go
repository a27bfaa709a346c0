package read

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/kind"
)

// drop lets go of the fields that the resource's declaration does not want.
func drop(res kind.Resource, obj *unstructured.Unstructured) {
	for _, path := range res.Dropped {
		without(obj.Object, strings.Split(path, "."))
	}
	if res.Bare {
		maps.DeleteFunc(obj.Object, func(field string, _ any) bool {
			return field != "apiVersion" && field != "kind" && field != "metadata"
		})
	}
}

func without(fields map[string]any, path []string) {
	name, list := strings.CutSuffix(path[0], "[]")
	if len(path) == 1 {
		delete(fields, name)
		return
	}
	if !list {
		if child, ok := fields[name].(map[string]any); ok {
			without(child, path[1:])
		}
		return
	}
	items, _ := fields[name].([]any)
	for _, item := range items {
		if child, ok := item.(map[string]any); ok {
			without(child, path[1:])
		}
	}
}
