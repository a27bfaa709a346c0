package adapter

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// named is a client that lists and watches the objects of one name only. A receive
// adapter knows label selectors alone; this gives it a field selector, and so the
// API server sends nothing else, and rights can be limited to the name.
type named struct {
	dynamic.Interface
	name string
}

// Resource implements dynamic.Interface.
func (n named) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	client := n.Interface.Resource(resource)
	return namedResource{NamespaceableResourceInterface: client, objects: namedObjects{client, n.name}}
}

type namedResource struct {
	dynamic.NamespaceableResourceInterface
	objects namedObjects
}

// Namespace implements dynamic.NamespaceableResourceInterface.
func (r namedResource) Namespace(namespace string) dynamic.ResourceInterface {
	return namedObjects{r.NamespaceableResourceInterface.Namespace(namespace), r.objects.name}
}

// List implements dynamic.ResourceInterface.
func (r namedResource) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return r.objects.List(ctx, options)
}

// Watch implements dynamic.ResourceInterface.
func (r namedResource) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return r.objects.Watch(ctx, options)
}

type namedObjects struct {
	dynamic.ResourceInterface
	name string
}

// List implements dynamic.ResourceInterface.
func (o namedObjects) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return o.ResourceInterface.List(ctx, o.narrow(options))
}

// Watch implements dynamic.ResourceInterface.
func (o namedObjects) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return o.ResourceInterface.Watch(ctx, o.narrow(options))
}

func (o namedObjects) narrow(options metav1.ListOptions) metav1.ListOptions {
	options.FieldSelector = fields.OneTermEqualSelector("metadata.name", o.name).String()
	return options
}
