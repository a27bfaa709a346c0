package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-dev/slipway/shared/kind"
)

// Object turns a typed object into an intent: its apiVersion and kind are set
// from res, and what Go types invent on their own (a null creationTimestamp,
// an empty status) is left out.
func Object(res kind.Resource, typed any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("cannot convert %s: %w", res.Kind, err)
	}
	obj := &unstructured.Unstructured{Object: content}
	obj.SetGroupVersionKind(res.GVK())
	if status, ok := content["status"].(map[string]any); ok && len(status) == 0 {
		delete(content, "status")
	}
	dropNullTimestamps(content)
	obj.Object, _ = signed(content).(map[string]any)
	return obj, nil
}

// Typed turns an object as read into a typed one. Nil stays nil.
func Typed[T any](obj *unstructured.Unstructured) (*T, error) {
	if obj == nil {
		return nil, nil
	}
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed); err != nil {
		return nil, fmt.Errorf("cannot read %s %q: %w", obj.GetKind(), obj.GetNamespace()+"/"+obj.GetName(), err)
	}
	return typed, nil
}

// signed turns the unsigned integers that the converter leaves into the signed
// ones that every other part of unstructured objects expects.
func signed(value any) any {
	switch v := value.(type) {
	case uint64:
		if v > math.MaxInt64 {
			return float64(v)
		}
		return int64(v)
	case map[string]any:
		for key := range v {
			v[key] = signed(v[key])
		}
	case []any:
		for i := range v {
			v[i] = signed(v[i])
		}
	}
	return value
}

func dropNullTimestamps(value any) {
	switch v := value.(type) {
	case map[string]any:
		if ts, ok := v["creationTimestamp"]; ok && ts == nil {
			delete(v, "creationTimestamp")
			if len(v) == 0 {
				return
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			dropNullTimestamps(v[key])
			if child, ok := v[key].(map[string]any); ok && key == "metadata" && len(child) == 0 {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			dropNullTimestamps(v[i])
		}
	}
}
