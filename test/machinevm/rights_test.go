package machinevm

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

func TestTheGeneratedRolesGrantWhatIsDeclaredAndNothingElse(t *testing.T) { suit.CheckManifest(t) }

// TestAnImpliedRightIsNeeded takes each right away that no call asks for by itself.
func TestAnImpliedRightIsNeeded(t *testing.T) {
	broken := map[string]func(t *testing.T, w *world, f *suite.Copy){
		"machines/finalizers update": func(t *testing.T, w *world, f *suite.Copy) {
			f.Send(w.machineEvent(subject))
			if w.Get(kinds.NetworkConfigurations, subject) != nil {
				t.Error("the record was made all the same, with an owner reference that blocks the Machine's deletion")
			}
			if got := w.why(subject); !strings.HasPrefix(got, "False KubeVirtApiError: ") || !strings.Contains(got, "finalizers") {
				t.Errorf("Ready is %s", got)
			}
		},
	}
	// On the management cluster a Machine's namespace is always there.
	elsewhere := []string{"namespaces get", "namespaces create"}
	for _, r := range suite.Implied(machinevm.DefaultSpec()) {
		name := r.Resource + " " + r.Verb
		if slices.Contains(elsewhere, name) {
			continue
		}
		breaks, ok := broken[name]
		if !ok {
			t.Errorf("no test shows that something breaks without the right to %s", r)
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newSubject(t)
			breaks(t, w, w.copyOf(suite.WithConfig(w.Account(suite.Without(machinevm.DefaultSpec(), r.Verb, r.Resource)...))))
		})
		delete(broken, name)
	}
	for name := range broken {
		t.Errorf("%q is no implied right any more", name)
	}
}

// TestARightThatIsMissingIsSaidOnTheMachine takes rights away one by one: the Machine
// says what is refused, nobody tries again and again, and it heals with the right.
func TestARightThatIsMissingIsSaidOnTheMachine(t *testing.T) {
	type missing struct{ resource, verb string }
	all := []missing{
		{kinds.VirtualMachines.Plural, "create"},
		{kind.PersistentVolumeClaims.Plural, "create"},
		{kind.Secrets.Plural, "create"},
		{kind.Secrets.Plural, "get"},
		{kind.StorageClasses.Plural, "list"},
		{kinds.VirtualMachines.Plural, "get"},
	}
	suite.Each(t, all, func(m missing) string { return m.verb + " " + m.resource }, func(t *testing.T, m missing) {
		w := newSubject(t)
		f := w.copyOf(suite.WithConfig(w.Account(suite.Without(machinevm.DefaultSpec(), m.verb, m.resource)...)))
		if got := f.Send(w.machineEvent(subject)); got != http.StatusNoContent {
			t.Errorf("the event was answered %d: sending it again gives no right; the log:\n%s", got, f.Log)
		}
		if got := w.why(subject); !strings.HasPrefix(got, "False KubeVirtApiError: ") || !strings.Contains(got, m.resource) {
			t.Errorf("Ready is %s", got)
		}
		w.copyOf().Insist(w.machineEvent(subject))
		if got := w.condition(subject, "Ready"); got != "False Creating" {
			t.Errorf("the right is there again, and Ready is still %s", w.why(subject))
		}
	})
}

func TestEveryGrantIsForAResourceThatTheFunctionKnows(t *testing.T) {
	for _, grant := range machinevm.DefaultSpec().Grants {
		for _, verb := range grant.Verbs {
			if verb == "*" || grant.Resource.Plural == "*" || grant.Resource.Group == "*" {
				t.Errorf("a grant of everything: %s %s", verb, grant.Resource)
			}
		}
	}
}
