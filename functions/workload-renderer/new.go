package workloadrenderer

import (
	"os"

	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/render/worker"
)

// New makes the function for Knative's middleware, with its settings from the
// environment. Settings that cannot be parsed stop its start with a message. When the
// process was started to render, this does nothing else, and never returns.
func New() *reconcile.Host {
	worker.Hook()
	settings, err := ParseSettings(os.LookupEnv)
	if err != nil {
		return reconcile.Broken(DefaultSpec(), err)
	}
	return reconcile.New(Declare(settings, worker.New(settings.Workers).Render), reconcile.Options{})
}

// DefaultSpec is the declaration under default settings, which manifests and
// documents are generated from.
func DefaultSpec() reconcile.Spec {
	settings, err := ParseSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		panic(err) // the defaults always parse, which a test shows
	}
	return Spec(settings)
}
