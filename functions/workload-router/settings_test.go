package workloadrouter

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/workload-router/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
)

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func TestSettingsOfAnEmptyEnvironmentAreTheDefaults(t *testing.T) {
	want := Settings{
		Settings: dockyards.DefaultSettings(), Limits: decide.DefaultLimits(), RemoteTimeout: 5 * time.Second, RemoteAnswer: 1 << 20,
		MaxConcurrentReconciles: 50,
	}
	if diff := cmp.Diff(want, DefaultSettings()); diff != "" {
		t.Errorf("section 5 (-want +got):\n%s", diff)
	}
}

func TestSettingsThatCannotBeUsedStopTheStart(t *testing.T) {
	for variable, value := range map[string]string{
		"GATEWAY_NAME": "Not A Name", "WORKLOAD_INGRESS": "maybe", "MAX_SERVICES": "0", "MAX_SERVICE_PORTS": "1001", "MAX_SERVICES_READ": "many",
		"REMOTE_TIMEOUT": "0s", "MAX_REMOTE_ANSWER_MIB": "-1", "MAX_CONCURRENT_RECONCILES": "x",
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

func TestEverySettingIsDocumentedOnce(t *testing.T) {
	var names []string
	for _, v := range DefaultSpec().Env {
		if v.Help == "" || slices.Contains(names, v.Name) {
			t.Errorf("%s is documented %q", v.Name, v.Help)
		}
		names = append(names, v.Name)
	}
	if len(names) != len(shared)+len(variables) {
		t.Errorf("documented are %v", names)
	}
}

func TestTheNameOfAWorkloadClusterIsReadAsItWasWritten(t *testing.T) {
	if ns, name, ok := dockyards.ParseRemoteName(dockyards.RemoteName("team-a", "prod.v1")); !ok || ns != "team-a" || name != "prod.v1" {
		t.Errorf("it is read as %q %q %t", ns, name, ok)
	}
	for _, text := range []string{"", "/", "east", "a/", "/b", "a/b/c", "a/../b", "A/b", "a b/c", "a.b/c"} {
		if ns, name, ok := dockyards.ParseRemoteName(text); ok || ns+name != "" {
			t.Errorf("%q is taken for %q %q", text, ns, name)
		}
	}
}
