package read

import (
	"context"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Get reads one object as a type; nil when it is absent.
func Get[T any](ctx context.Context, r *Reader, clusterName string, res kind.Resource, namespace, name string) (*T, error) {
	obj, err := r.Get(ctx, clusterName, res, namespace, name)
	if err != nil {
		return nil, err
	}
	return plan.Typed[T](obj)
}

// List reads objects as a type.
func List[T any](ctx context.Context, r *Reader, clusterName string, res kind.Resource, namespace, selector string) ([]T, error) {
	objects, err := r.List(ctx, clusterName, res, namespace, selector)
	if err != nil {
		return nil, err
	}
	typed := make([]T, 0, len(objects))
	for i := range objects {
		obj, err := plan.Typed[T](&objects[i])
		if err != nil {
			return nil, err
		}
		typed = append(typed, *obj)
	}
	return typed, nil
}
