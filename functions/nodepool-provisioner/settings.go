package nodepoolprovisioner

import (
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/setting"
)

// Settings are the whole environment of the function.
type Settings struct {
	// Settings are those of all Dockyards functions.
	dockyards.Settings
	// MaxConcurrentReconciles bounds the reconciles at once within a resync.
	MaxConcurrentReconciles int
}

// used are the shared settings that this function depends on.
var used = []string{
	"CONFIG_MAP", "DOCKYARDS_NAMESPACE", "DATA_VOLUME_STORAGE_CLASS_NAME", "DATA_VOLUME_ACCESS_MODE", "USE_BLOCK_STORAGE",
	"ENABLE_MULTUS", "ALLOW_POD_BRIDGE_LIVE_MIGRATION", "VALID_NODE_IP_SUBNETS", "TALOS_VERSION",
}

// variables are those that no other function has.
var variables = []setting.Variable[Settings]{{
	EnvVar:  setting.EnvVar{Name: "MAX_CONCURRENT_RECONCILES", Default: "5", Help: "reconciles at once within a resync"},
	Allowed: setting.OneTo1000,
	Parse:   setting.Whole(func(s *Settings) *int { return &s.MaxConcurrentReconciles }, 1, 1000),
}}

// ParseSettings reads the environment.
func ParseSettings(lookup func(name string) (string, bool)) (Settings, error) {
	shared, err := dockyards.ParseSettings(lookup)
	if err != nil {
		return Settings{}, err
	}
	s := Settings{Settings: shared}
	if err := setting.Parse(&s, variables, lookup); err != nil {
		return Settings{}, err
	}
	return s, nil
}
