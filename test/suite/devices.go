package suite

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// DevicesByName sorts the devices of a KubeVirt VirtualMachine by name: they are made in
// the order in which they were met. Other objects stay as they are.
func DevicesByName(obj *unstructured.Unstructured) {
	if obj.GetKind() != "VirtualMachine" {
		return
	}
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec", "template", "spec")
	for _, path := range [][]string{{"volumes"}, {"networks"}, {"domain", "devices", "disks"}, {"domain", "devices", "interfaces"}} {
		items, found, _ := unstructured.NestedSlice(spec, path...)
		if !found {
			continue
		}
		slices.SortFunc(items, func(a, b any) int { return strings.Compare(nameOf(a), nameOf(b)) })
		_ = unstructured.SetNestedSlice(spec, items, path...)
	}
	_ = unstructured.SetNestedMap(obj.Object, spec, "spec", "template", "spec")
}

func nameOf(item any) string {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}
