package worktreemirror

import (
	"github.com/slipway-dev/slipway/functions/worktree-mirror/decide"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Declare is the function with its three steps.
func Declare() reconcile.Function[decide.Input] {
	return reconcile.Function[decide.Input]{Spec: Spec(), Gather: gather, Decide: decide.Decide, Conclude: decide.Conclude}
}
