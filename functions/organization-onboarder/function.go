package organizationonboarder

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/organization-onboarder/decide"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Declare is the function with its three steps.
func Declare() reconcile.Function[decide.Input] {
	return reconcile.Function[decide.Input]{
		Spec: DefaultSpec(), Gather: gather, Decide: decide.Decide, Conclude: decide.Conclude,
	}
}

// gather: the Organization says all there is to know.
func gather(_ context.Context, _ *read.Reader, root *unstructured.Unstructured) (decide.Input, error) {
	return decide.Input{Organization: root}, nil
}
