package workloadrenderer

import (
	"context"

	"github.com/slipway-dev/slipway/functions/workload-renderer/decide"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/render"
)

// Renderer renders; see reconcile.Function.
type Renderer func(ctx context.Context, request render.Request) (render.Result, error)

// Declare is the function with its three steps.
func Declare(settings Settings, renderer Renderer) reconcile.Function[decide.Input] {
	return reconcile.Function[decide.Input]{
		Spec:     Spec(settings),
		Gather:   gatherer{settings: settings}.gather,
		Render:   renderer,
		Decide:   decide.Decide,
		Conclude: decide.Conclude,
	}
}
