package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// DefaultNamespace puts the objects that need a namespace and have none into the
// given one, as kubectl does. A kind that is not served is left as it is.
func DefaultNamespace(ctx context.Context, cfg *rest.Config, namespace string, objs ...*unstructured.Unstructured) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a, err := newApplier(cfg)
	if err != nil {
		return err
	}
	for _, obj := range objs {
		if obj.GetNamespace() != "" {
			continue
		}
		gvk := obj.GroupVersionKind()
		mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot tell whether %s %q needs a namespace: %w", obj.GetKind(), obj.GetName(), err)
		}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			obj.SetNamespace(namespace)
		}
	}
	return nil
}
