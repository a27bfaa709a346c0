package nodepool

import (
	"testing"

	provisioner "github.com/slipway-dev/slipway/functions/nodepool-provisioner"
)

func TestTheGeneratedRolesGrantWhatIsDeclared(t *testing.T) { suit.CheckManifest(t) }

func TestNoGrantIsOfEverything(t *testing.T) {
	for _, grant := range provisioner.DefaultSpec().Grants {
		for _, verb := range grant.Verbs {
			if verb == "*" || grant.Resource.Plural == "*" || grant.Resource.Group == "*" {
				t.Errorf("a grant of everything: %s %s", verb, grant.Resource)
			}
		}
		if grant.Resource.Plural == "configmaps" && len(grant.Names) == 0 {
			t.Error("every config map may be read, and one is needed")
		}
	}
}
