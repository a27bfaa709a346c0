package baselineapplier

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
)

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func TestSettingsOfAnEmptyEnvironmentAreTheDefaults(t *testing.T) {
	got, err := ParseSettings(environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Settings{Settings: decide.DefaultSettings()}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettingsThatCannotBeUsedStopTheStart(t *testing.T) {
	for variable, value := range map[string]string{
		"BASELINE_HCO_NAMESPACE": "a/b", "BASELINE_STATE_NAMESPACE": "A", "BASELINE_PATCH_NODE_KINDS": "no", "BASELINE_HCO_OPINIONS": "on",
		"BASELINE_MANAGEMENT_CPUS": "0-1; rm", "BASELINE_RUNBOOKS": "file:///x", "BASELINE_WRITE_CAPACITY": "0", "BASELINE_WRITE_WINDOW": "1ms",
		"BASELINE_PAUSE_AFTER": "x", "BASELINE_SLOW_COUNT": "-1", "BASELINE_SLOW_WINDOW": "1s",
	} {
		_, err := ParseSettings(environment(map[string]string{variable: value}))
		if err == nil {
			t.Errorf("%s=%q is accepted", variable, value)
			continue
		}
		for _, part := range []string{variable, value, "allowed is"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the message %q does not hold %q", err, part)
			}
		}
	}
}
