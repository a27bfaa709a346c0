package releaseimporter

import (
	"slices"
	"testing"

	"github.com/slipway-dev/slipway/functions/release-importer/decide"
)

func TestImagesAreToldByTheFunctionsOwnFieldManager(t *testing.T) {
	if got := DefaultSpec().FieldManager(); got != decide.Manager {
		t.Errorf("the field manager is %q, and images are looked for by %q", got, decide.Manager)
	}
}

func TestTheSettingsAreThoseOfAllDockyardsFunctions(t *testing.T) {
	var names []string
	for _, v := range DefaultSpec().Env {
		names = append(names, v.Name)
	}
	if !slices.Equal(names, used) {
		t.Errorf("the documented settings are %v, want %v", names, used)
	}
}
