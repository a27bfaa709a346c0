package adapter

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// narrow is a client that asks for as little as a receive adapter needs.
//
// Of a list it needs the resourceVersion alone, to watch from: objects that exist
// already give no event. So one object is asked for, however many there are.
//
// A receive adapter knows label selectors alone. With a name, only objects of that name
// are watched, and so the API server sends nothing else, and rights can be limited to
// the name. With an owner, what others own is dropped here: a stock receive adapter
// heeds only the owner that controls an object, and what it drops it has decoded too.
// With changes, what has not changed in the fields that matter is dropped.
type narrow struct {
	dynamic.Interface
	name, owner string
	changes     *changes
	// kinds are what the objects of a resource are, whatever they say of themselves: a
	// remote cluster must not pass off its objects as others. One that is not there is
	// not looked at.
	kinds map[schema.GroupResource]string
}

// Resource implements dynamic.Interface.
func (n narrow) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	client := n.Interface.Resource(resource)
	kind := schema.GroupVersionKind{}
	if name := n.kinds[resource.GroupResource()]; name != "" {
		kind = resource.GroupVersion().WithKind(name)
	}
	return narrowResource{NamespaceableResourceInterface: client, objects: narrowObjects{client, n.name, n.owner, n.changes, kind}}
}

type narrowResource struct {
	dynamic.NamespaceableResourceInterface
	objects narrowObjects
}

// Namespace implements dynamic.NamespaceableResourceInterface.
func (r narrowResource) Namespace(namespace string) dynamic.ResourceInterface {
	objects := r.objects
	objects.ResourceInterface = r.NamespaceableResourceInterface.Namespace(namespace)
	return objects
}

// List implements dynamic.ResourceInterface.
func (r narrowResource) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return r.objects.List(ctx, options)
}

// Watch implements dynamic.ResourceInterface.
func (r narrowResource) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return r.objects.Watch(ctx, options)
}

type narrowObjects struct {
	dynamic.ResourceInterface
	name, owner string
	changes     *changes
	kind        schema.GroupVersionKind
}

// List implements dynamic.ResourceInterface. It returns no object.
func (o narrowObjects) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	options = o.narrow(options)
	// With any other resourceVersion an API server heeds no limit.
	options.ResourceVersion, options.ResourceVersionMatch, options.Limit, options.Continue = "", "", 1, ""
	list, err := o.ResourceInterface.List(ctx, options)
	if err != nil {
		return nil, err
	}
	list.Items = nil
	list.SetContinue("")
	list.SetRemainingItemCount(nil)
	return list, nil
}

// Watch implements dynamic.ResourceInterface.
func (o narrowObjects) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := o.ResourceInterface.Watch(ctx, o.narrow(options))
	if err != nil {
		return nil, err
	}
	if o.owner != "" {
		events = watch.Filter(events, o.owned)
	}
	if !o.kind.Empty() {
		events = watch.Filter(events, o.genuine)
	}
	if o.changes != nil {
		events = watch.Filter(events, o.changes.filter)
	}
	return events, nil
}

// owned drops an object that nobody of the wanted kind owns.
func (o narrowObjects) owned(event watch.Event) (watch.Event, bool) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Bookmark || event.Type == watch.Error {
		return event, true
	}
	return event, slices.ContainsFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		group, _, _ := strings.Cut(ref.APIVersion, "/")
		return ref.Kind+"."+group == o.owner
	})
}

func (o narrowObjects) narrow(options metav1.ListOptions) metav1.ListOptions {
	if o.name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", o.name).String()
	}
	return options
}

// genuine makes an object what it has to be, and drops one that cannot be it.
func (o narrowObjects) genuine(event watch.Event) (watch.Event, bool) {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
	case watch.Bookmark, watch.Error:
		return event, true
	}
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || len(validation.IsDNS1123Subdomain(object.GetName())) > 0 ||
		(object.GetNamespace() != "" && len(validation.IsDNS1123Label(object.GetNamespace())) > 0) {
		return event, false
	}
	object.SetGroupVersionKind(o.kind)
	return event, true
}
