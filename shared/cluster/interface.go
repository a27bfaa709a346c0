package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/shared/kind"
)

// Interface is the way to the objects of a resource in a version: to those of one
// namespace, or, with "", to all. A resource of which only the metadata counts is listed
// without the rest.
func (c *Client) Interface(ctx context.Context, res kind.Resource, namespace string) (dynamic.ResourceInterface, error) {
	gvr, err := c.Resource(ctx, res)
	if err != nil {
		return nil, err
	}
	whole := within(c.Dynamic, gvr, namespace)
	if !res.Bare {
		return whole, nil
	}
	return bare{ResourceInterface: whole, metadata: within(c.metadata, gvr, namespace), kind: gvr.GroupVersion().WithKind(res.Kind)}, nil
}

func within(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace != "" {
		return client.Resource(gvr).Namespace(namespace)
	}
	return client.Resource(gvr)
}

// bare lists objects by their metadata. They say what they are as whole ones do.
type bare struct {
	dynamic.ResourceInterface
	metadata dynamic.ResourceInterface
	kind     schema.GroupVersionKind
}

// List implements dynamic.ResourceInterface.
func (b bare) List(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := b.metadata.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	list.SetGroupVersionKind(b.kind.GroupVersion().WithKind(b.kind.Kind + "List"))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(b.kind)
	}
	return list, nil
}
