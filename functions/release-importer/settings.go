package releaseimporter

import (
	"slices"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// used are the settings, among those of all Dockyards functions, that this one
// looks at.
var used = []string{"DATA_VOLUME_STORAGE_CLASS_NAME", "DATA_VOLUME_ACCESS_MODE", "USE_BLOCK_STORAGE", "RELEASE_IMAGE_SIZE"}

// variables document them.
func variables() []reconcile.EnvVar {
	var env []reconcile.EnvVar
	for _, v := range dockyards.Variables() {
		if slices.Contains(used, v.Name) {
			env = append(env, reconcile.EnvVar{Name: v.Name, Default: v.Default, Help: v.Help})
		}
	}
	return env
}
