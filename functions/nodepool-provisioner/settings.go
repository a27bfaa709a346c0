package nodepoolprovisioner

import (
	"fmt"
	"strconv"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/reconcile"
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

// parallel is the setting that this function has besides.
var parallel = reconcile.EnvVar{Name: "MAX_CONCURRENT_RECONCILES", Default: "5", Help: "reconciles at once within a resync"}

// ParseSettings reads the environment.
func ParseSettings(lookup func(name string) (string, bool)) (Settings, error) {
	shared, err := dockyards.ParseSettings(lookup)
	if err != nil {
		return Settings{}, err
	}
	s := Settings{Settings: shared}
	value, ok := lookup(parallel.Name)
	if !ok || value == "" {
		value = parallel.Default
	}
	if s.MaxConcurrentReconciles, err = strconv.Atoi(value); err != nil || s.MaxConcurrentReconciles < 1 {
		return Settings{}, fmt.Errorf("cannot use environment variable %s=%q: allowed is a whole number from 1", parallel.Name, value)
	}
	return s, nil
}
