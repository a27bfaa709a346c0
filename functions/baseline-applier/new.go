package baselineapplier

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
	return reconcile.New(Declare(settings), reconcile.Options{})
}

// DefaultSpec is the declaration under default settings, which manifests and
// documents are generated from.
func DefaultSpec() reconcile.Spec { return Spec(DefaultSettings()) }

// DefaultSettings are those of an empty environment.
func DefaultSettings() Settings {
	settings, err := ParseSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		panic(err) // the defaults always parse, which a test shows
	}
	return settings
}
