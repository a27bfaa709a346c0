package baseline

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// refusing answers some requests with a code as long as it is set.
type refusing struct {
	code int
	is   func(suite.Call) bool
}

func (r *refusing) tap(c suite.Call) (*http.Response, error) {
	if r.code == 0 || !r.is(c) {
		return nil, nil
	}
	return suite.Answer(c.HTTP, r.code), nil
}

// TestNodesThatCannotBeSeenChangeNothing of what depends on hardware: it is neither
// made nor taken for switched off, and the rest goes on.
func TestNodesThatCannotBeSeenChangeNothing(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusInternalServerError} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			s := newScene(t, nil)
			nodes := &refusing{is: func(c suite.Call) bool { return c.Resource == "nodes" && c.Verb == "list" }}
			f := s.run(suite.WithTap(nodes.tap), suite.WithConfig(s.Env.As(t, suite.Home, "baseline-applier")))
			nodes.code = code
			s.Create(hardware)
			f.Resync()
			depends := []string{"usb-passthrough", "pci-passthrough", "vfio-assign", "numa-topology"}
			for _, name := range depends {
				if s.live(name) != nil || s.outcome(name) != decide.Unknown {
					t.Errorf("%s is %s, although nobody knows whether a node has the hardware", name, s.outcome(name))
				}
			}
			if s.outcome("psi-enable") != decide.InSync || s.told("")[decide.ReasonHardwareFailed] != 1 {
				t.Errorf("the rest is held up, or nobody was told: %s, %v", s.outcome("psi-enable"), s.told(""))
			}
			nodes.code = 0
			f.Resync()
			before := s.versions()
			nodes.code = code
			s.edit("admin", "psi-enable", `{"spec":{"kernelArguments":["psi=0"]}}`)
			f.Resync()
			f.Insist(suite.Changed("update", "v1", "Node", "", "full"))
			after := s.versions()
			for _, name := range depends {
				if before[name] == "" || before[name] != after[name] || s.must(name).GetLabels()[catalog.LabelManaged] != catalog.Manager {
					t.Errorf("%s was %q and is %q", name, before[name], after[name])
				}
			}
			if got := fmt.Sprint(s.value("psi-enable", "spec", "kernelArguments")); got != "[psi=1]" {
				t.Errorf("what does not depend on nodes is %s", got)
			}
			nodes.code = 0
			f.Resync()
			for _, name := range depends {
				if s.outcome(name) != decide.InSync {
					t.Errorf("%s is %s, and the nodes can be seen again", name, s.outcome(name))
				}
			}
		})
	}
}

// TestADryRunThatFailsIsNoDrift: while a webhook cannot be reached, say.
func TestADryRunThatFailsIsNoDrift(t *testing.T) {
	s := newScene(t, nil)
	try := &refusing{is: func(c suite.Call) bool { return c.DryRun && c.Resource == "nodehealthchecks" }}
	f := s.run(suite.WithTap(try.tap), suite.WithConfig(s.Env.As(t, suite.Home, "baseline-applier")))
	f.Resync()
	told := s.told(health)[decide.ReasonDriftDetected]
	for code, want := range map[int]int{http.StatusInternalServerError: http.StatusServiceUnavailable, http.StatusUnprocessableEntity: http.StatusNoContent} {
		try.code = code
		s.edit("admin", health, `{"spec":{"minHealthy":"10%"}}`)
		s.edit("admin", "psi-enable", `{"spec":{"kernelArguments":["psi=0"]}}`)
		if got := f.Send(s.changed(health)); got != want {
			t.Errorf("a dry-run that is answered %d ends in %d, want %d", code, got, want)
		}
		f.TryResync()
		if got := s.value(health, "spec", "minHealthy"); got != "10%" || s.told(health)[decide.ReasonDriftDetected] != told {
			t.Errorf("it was taken for drift: %v, %v", got, s.told(health))
		}
		if got := fmt.Sprint(s.value("psi-enable", "spec", "kernelArguments")); got != "[psi=1]" {
			t.Errorf("another asset is %s", got)
		}
	}
	if r := s.memory().Assets[health]; r.Outcome != decide.Failed || len(r.Oppositions) > 0 {
		t.Errorf("what the API refuses is told as %s: %+v", r.Outcome, r)
	}
	if got := grep(grep(f.Metrics(), "compliance"), `name="virt-node-health-check"`); !strings.HasSuffix(got, "} 0") {
		t.Errorf("it complies: %s", got)
	}
	try.code = 0
	f.Resync()
	if got := s.value(health, "spec", "minHealthy"); got != "51%" || s.outcome(health) != decide.InSync {
		t.Errorf("it is %v, %s", got, s.outcome(health))
	}
}

// TestAPausedHyperConvergedHoldsNobodyUp: the others go on by what it says.
func TestAPausedHyperConvergedHoldsNobodyUp(t *testing.T) {
	s := newScene(t, map[string]string{"platform.kubevirt.io/enable-loadaware": "true"})
	f := s.run()
	f.Resync()
	s.annotate(catalog.HCO, decide.AnnotationPaused, "true")
	s.edit("admin", catalog.HCO, `{"spec":{"liveMigrationConfig":{"parallelMigrationsPerCluster":45}}}`)
	s.edit("admin", "psi-enable", `{"spec":{"kernelArguments":["psi=0"]}}`)
	f.Insist(s.changed(catalog.HCO))
	if got := s.value(catalog.HCO, "spec", "liveMigrationConfig", "parallelMigrationsPerCluster"); got != int64(45) || s.outcome(catalog.HCO) != decide.Paused {
		t.Errorf("it is %v, %s", got, s.outcome(catalog.HCO))
	}
	if got := s.value("descheduler-loadaware", "spec", "evictionLimits", "total"); got != int64(45) {
		t.Errorf("the limit is %v", got)
	}
	if got := fmt.Sprint(s.value("psi-enable", "spec", "kernelArguments")); got != "[psi=1]" {
		t.Errorf("the arguments are %s", got)
	}
}

// TestARuleThatMayNotBeReadKeepsTheProfile and is no reason to try for ever.
func TestARuleThatMayNotBeReadKeepsTheProfile(t *testing.T) {
	s := newScene(t, map[string]string{"platform.kubevirt.io/enable-loadaware": "true"})
	rule := &refusing{is: func(c suite.Call) bool { return c.Resource == "prometheusrules" && c.Name == decide.RuleName }}
	f := s.run(suite.WithTap(rule.tap), suite.WithConfig(s.Env.As(t, suite.Home, "baseline-applier")))
	f.Resync()
	before := s.must("descheduler-loadaware").GetResourceVersion()
	rule.code = http.StatusForbidden
	f.Resync()
	if s.must("descheduler-loadaware").GetResourceVersion() != before || s.outcome("descheduler-loadaware") != decide.Failed {
		t.Errorf("it was written, or is %s", s.outcome("descheduler-loadaware"))
	}
	rule.code = http.StatusInternalServerError
	if code, _ := f.TryResync(); code != http.StatusServiceUnavailable || s.must("descheduler-loadaware").GetResourceVersion() != before {
		t.Errorf("what may be read later is answered %d", code)
	}
	rule.code = 0
	f.Resync()
	if s.outcome("descheduler-loadaware") != decide.InSync || s.Get(kind.ConfigMaps, decide.StateName) == nil {
		t.Errorf("it is %s", s.outcome("descheduler-loadaware"))
	}
}
