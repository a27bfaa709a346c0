package baseline

import (
	"strings"
	"testing"

	baselineapplier "github.com/slipway-dev/slipway/functions/baseline-applier"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/shared/cluster"
)

// TestASurveyTellsWhatTheFunctionWouldDo: with the code that applies, and without a
// write.
func TestASurveyTellsWhatTheFunctionWouldDo(t *testing.T) {
	s := newScene(t, map[string]string{"platform.kubevirt.io/enable-loadaware": "true"})
	client, err := cluster.New(cluster.Management, "test", s.Env.Config)
	if err != nil {
		t.Fatal(err)
	}
	survey := func() map[string]decide.Finding {
		view, err := baselineapplier.Survey(t.Context(), cluster.NewSet(client), s.settings.Settings)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]decide.Finding{}
		for _, f := range view.Findings {
			out[f.Asset.Name] = f
		}
		return out
	}
	before := survey()
	if got := before["descheduler-loadaware"].Record.Outcome; got != decide.Drifted || s.live("descheduler-loadaware") != nil {
		t.Errorf("before the first pass it is %s, or was made", got)
	}
	f := s.run()
	f.Resync()
	s.annotate(health, decide.AnnotationPatch, `[{"op":"replace","path":"/spec/minHealthy","value":"80%"}]`)
	after := survey()
	for name, finding := range after {
		want := s.outcome(name)
		if name == health {
			want = decide.Drifted
		}
		if finding.Record.Outcome != want {
			t.Errorf("%s is told as %s, the function says %s", name, finding.Record.Outcome, want)
		}
	}
	if differs := after[health].Record.Differs; len(differs) != 1 || differs[0].Path != "/spec/minHealthy" || differs[0].Want != "80%" {
		t.Errorf("it differs at %v", differs)
	}
	s.settings.HCONamespace = "elsewhere"
	if _, err := baselineapplier.Survey(t.Context(), cluster.NewSet(client), s.settings.Settings); err == nil || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("no HyperConverged: %v", err)
	}
}
