package worktreemirror

import "github.com/slipway-dev/slipway/shared/reconcile"

// New makes the function for Knative's middleware.
func New() *reconcile.Host { return reconcile.New(Declare(), reconcile.Options{}) }

// DefaultSpec is the declaration, which manifests and documents are generated from.
func DefaultSpec() reconcile.Spec { return Spec() }
