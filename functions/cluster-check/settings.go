package clustercheck

import (
	"time"

	"github.com/slipway-dev/slipway/functions/cluster-check/decide"
	"github.com/slipway-dev/slipway/shared/setting"
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
}

// variables are all that the function reads, in the order of its documentation.
var variables = []setting.Variable[Settings]{
	{
		EnvVar:  setting.EnvVar{Name: "MAX_CONCURRENT_RECONCILES", Default: "5", Help: "clusters checked at once within a resync"},
		Allowed: setting.OneTo1000,
		Parse:   setting.Whole(func(s *Settings) *int { return &s.MaxConcurrentReconciles }, 1, 1000),
	},
	{
		EnvVar:  setting.EnvVar{Name: "KUBEVIRT_CONFIGS_NAMESPACE", Default: "default", Help: "namespace of KubevirtConfigs, where they have one, and of their Secrets"},
		Allowed: setting.ANamespace,
		Parse:   setting.Label(func(s *Settings) *string { return &s.ConfigsNamespace }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "REMOTE_TIMEOUT", Default: "10s", Help: "bound of a request to a target cluster"},
		Allowed: setting.TimeAbove0,
		Parse:   setting.Duration(func(s *Settings) *time.Duration { return &s.RemoteTimeout }),
	},
}

// ParseSettings reads the environment. A value that cannot be used is an
// error that says which, and what could stand there; nothing is guessed.
func ParseSettings(lookup func(name string) (string, bool)) (Settings, error) {
	s := Settings{Settings: decide.DefaultSettings()}
	if err := setting.Parse(&s, variables, lookup); err != nil {
		return Settings{}, err
	}
	return s, nil
}
