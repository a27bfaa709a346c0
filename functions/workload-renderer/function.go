package workloadrenderer

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/workload-renderer/decide"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/render"
)

// Renderer renders; see reconcile.Function.
type Renderer func(ctx context.Context, request render.Request) (render.Result, error)

// Declare is the function with its three steps.
func Declare(settings Settings, renderer Renderer) reconcile.Function[decide.Input] {
	return reconcile.Function[decide.Input]{
		Spec:   Spec(settings),
		Gather: gatherer{settings: settings}.gather,
		Render: renderer,
		Stays: func(root *unstructured.Unstructured, created plan.Entry) bool {
			return decide.Intends(root, settings.Rules.Allowed, created.Resource, created.Object.GetName())
		},
		Decide:   decide.Decide,
		Conclude: decide.Conclude,
	}
}
