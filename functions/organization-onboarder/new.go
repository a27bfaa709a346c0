package organizationonboarder

import "github.com/slipway-dev/slipway/shared/reconcile"

// New makes the function for Knative's middleware. It has no settings of its own.
func New() *reconcile.Host { return reconcile.New(Declare(), reconcile.Options{}) }
