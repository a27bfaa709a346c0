package adapter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"knative.dev/eventing/pkg/adapter/apiserver"
)

// unit is what one receive adapter watches: one API group, in one mode, in all
// namespaces or one, objects of any name or one, of any owner or one kind of owner, any
// change or those of some fields. A group of its own each, since a missing group ends
// the adapter that names it.
type unit struct {
	group, mode, namespace, name, owner string
	// fields are separated by line breaks, so that units can be compared.
	fields string
}

// compare puts units into an order.
func (u unit) compare(other unit) int {
	return cmp.Or(cmp.Compare(u.group, other.group), cmp.Compare(u.mode, other.mode),
		cmp.Compare(u.namespace, other.namespace), cmp.Compare(u.name, other.name), cmp.Compare(u.owner, other.owner),
		cmp.Compare(u.fields, other.fields))
}

// discoverer is the part of a discovery client that is needed here.
type discoverer interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// served asks discovery which resources of the group can be watched, and in
// which version. An error says nothing about what is served.
func served(discovery discoverer, resources []Resource, group string) (map[unit][]apiserver.ResourceWatch, error) {
	lists := map[schema.GroupVersion][]metav1.APIResource{}
	units := map[unit][]apiserver.ResourceWatch{}
	for _, resource := range resources {
		if resource.Group != group {
			continue
		}
		version, err := firstServed(discovery, lists, resource)
		if err != nil {
			return nil, err
		}
		if version == "" {
			continue
		}
		key := unit{
			group: group, mode: resource.Mode, namespace: resource.Namespace, name: resource.Name, owner: resource.Owner,
			fields: strings.Join(resource.Fields, "\n"),
		}
		units[key] = append(units[key], apiserver.ResourceWatch{
			GVR:           schema.GroupVersionResource{Group: group, Version: version, Resource: resource.Resource},
			LabelSelector: resource.Selector,
		})
	}
	return units, nil
}

// firstServed is the first version of the resource that can be watched; empty if
// there is none.
func firstServed(discovery discoverer, lists map[schema.GroupVersion][]metav1.APIResource, resource Resource) (string, error) {
	for _, version := range resource.Versions {
		gv := schema.GroupVersion{Group: resource.Group, Version: version}
		list, known := lists[gv]
		if !known {
			found, err := discovery.ServerResourcesForGroupVersion(gv.String())
			if err != nil && !apierrors.IsNotFound(err) {
				return "", fmt.Errorf("cannot ask whether %s is served: %w", gv, err)
			}
			if err == nil {
				list = found.APIResources
			}
			lists[gv] = list
		}
		if slices.ContainsFunc(list, resource.watchable) {
			return version, nil
		}
	}
	return "", nil
}

func (r Resource) watchable(found metav1.APIResource) bool {
	return found.Name == r.Resource && found.Kind == r.Kind &&
		slices.Contains(found.Verbs, "list") && slices.Contains(found.Verbs, "watch")
}
