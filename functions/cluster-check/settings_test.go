package clustercheck

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/cluster-check/decide"
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
	want := Settings{Settings: decide.DefaultSettings(), MaxConcurrentReconciles: 5, RemoteTimeout: 10 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettingsThatCannotBeUsedStopTheStart(t *testing.T) {
	for variable, value := range map[string]string{
		"MAX_CONCURRENT_RECONCILES": "0", "KUBEVIRT_CONFIGS_NAMESPACE": "a/b", "REMOTE_TIMEOUT": "0s",
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
