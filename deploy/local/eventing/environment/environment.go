// Package environment sets the environment variables that Knative's packages
// read while they are initialised.
//
// It must be initialised before them, and is: Go initialises packages in the
// order of their import paths as far as their imports allow, this package
// imports nothing but os, and "github.com" sorts before "knative.dev". Set any
// later, SYSTEM_NAMESPACE would already have been read, and a package of
// Knative's tests that is linked along would have put its own value in place.
package environment

import "os"

// SystemNamespace is where Knative Eventing lives.
const SystemNamespace = "knative-eventing"

var variables = map[string]string{
	"SYSTEM_NAMESPACE":          SystemNamespace,
	"CONFIG_LOGGING_NAME":       "config-logging",
	"CONFIG_OBSERVABILITY_NAME": "config-observability",
	"METRICS_DOMAIN":            "knative.dev/eventing",
	"POD_NAME":                  "local",
	"CONTAINER_NAME":            "local",
	// Images of the containers that the reconcilers would start. Nothing pulls
	// them: what they hold runs inside this process.
	"APISERVER_RA_IMAGE": "local",
	"DISPATCHER_IMAGE":   "local",
	"MT_PING_IMAGE":      "local",
	// Limits the PingSource adapter's wait for its sink, in seconds.
	"K_SINK_TIMEOUT": "30",
}

func init() {
	for name, value := range variables {
		// Setenv fails for malformed names only.
		_ = os.Setenv(name, value)
	}
}
