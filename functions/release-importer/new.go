package releaseimporter

import (
	"os"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// New makes the function for Knative's middleware, with its settings from the
// environment. Settings that cannot be parsed stop its start with a message.
func New() *reconcile.Host {
	settings, err := dockyards.ParseSettings(os.LookupEnv)
	if err != nil {
		return reconcile.Broken(DefaultSpec(), err)
	}
	return reconcile.New(Declare(settings), reconcile.Options{})
}
