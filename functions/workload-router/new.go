package workloadrouter

import (
	"os"

	"github.com/slipway-dev/slipway/shared/reconcile"
)

// New makes the function for Knative's middleware, with its settings from the
// environment. Settings that cannot be parsed stop its start with a message.
func New() *reconcile.Host {
	settings, err := ParseSettings(os.LookupEnv)
	if err != nil {
		return reconcile.Broken(DefaultSpec(), err)
	}
	return reconcile.New(Declare(settings), Options(settings))
}

// Options are what the function's host is given.
func Options(settings Settings) reconcile.Options {
	return reconcile.Options{
		Parallel: settings.MaxConcurrentReconciles, RemoteTimeout: settings.RemoteTimeout, RemoteAnswer: settings.RemoteAnswer,
	}
}

// DefaultSpec is the declaration under default settings, which manifests and
// documents are generated from.
func DefaultSpec() reconcile.Spec { return Spec(DefaultSettings()) }
