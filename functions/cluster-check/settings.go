package clustercheck

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/functions/cluster-check/decide"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Settings are the whole environment of the function.
type Settings struct {
	// Settings are those that decisions depend on.
	decide.Settings
	// MaxConcurrentReconciles bounds the clusters that are checked at once within
	// a resync.
	MaxConcurrentReconciles int
	// RemoteTimeout bounds a request to a target cluster.
	RemoteTimeout time.Duration
	// LogLevel is debug, info, warn or error.
	LogLevel string
}

// variable is one environment variable: how it is documented and parsed. An
// empty value counts as unset.
type variable struct {
	reconcile.EnvVar
	allowed string
	parse   func(s *Settings, value string) bool
}

// variables are all that the function reads, in the order of its documentation.
var variables = []variable{
	{
		EnvVar:  reconcile.EnvVar{Name: "MAX_CONCURRENT_RECONCILES", Default: "5", Help: "clusters checked at once within a resync"},
		allowed: "a whole number from 1 to 1000",
		parse: func(s *Settings, value string) bool {
			n, err := strconv.Atoi(value)
			s.MaxConcurrentReconciles = n
			return err == nil && n >= 1 && n <= 1000
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "KUBEVIRT_CONFIGS_NAMESPACE", Default: "default", Help: "namespace of KubevirtConfigs, where they have one, and of their Secrets"},
		allowed: "a namespace's name",
		parse: func(s *Settings, value string) bool {
			s.ConfigsNamespace = value
			return len(validation.IsDNS1123Label(value)) == 0
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "REMOTE_TIMEOUT", Default: "10s", Help: "bound of a request to a target cluster"},
		allowed: "a duration above 0, like 10s",
		parse: func(s *Settings, value string) bool {
			d, err := time.ParseDuration(value)
			s.RemoteTimeout = d
			return err == nil && d > 0
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "LOG_LEVEL", Default: "info", Help: "what is logged"},
		allowed: "debug, info, warn or error",
		parse: func(s *Settings, value string) bool {
			s.LogLevel = value
			return slices.Contains([]string{"debug", "info", "warn", "error"}, value)
		},
	},
}

// ParseSettings reads the environment. A value that cannot be used is an
// error that says which, and what could stand there; nothing is guessed.
func ParseSettings(lookup func(name string) (string, bool)) (Settings, error) {
	s := Settings{Settings: decide.DefaultSettings()}
	for _, v := range variables {
		value, ok := lookup(v.Name)
		if !ok || value == "" {
			value = v.Default
		}
		if !v.parse(&s, value) {
			return Settings{}, fmt.Errorf("cannot use environment variable %s=%q: allowed is %s", v.Name, value, v.allowed)
		}
	}
	return s, nil
}
