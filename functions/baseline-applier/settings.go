package baselineapplier

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// Settings are the whole environment of the function.
type Settings struct {
	// Settings are those that decisions depend on.
	decide.Settings
	// LogLevel is debug, info, warn or error.
	LogLevel string
}

// variable is one environment variable: how it is documented and parsed. An empty
// value counts as unset.
type variable struct {
	reconcile.EnvVar
	allowed string
	parse   func(s *Settings, value string) bool
}

var cpuList = regexp.MustCompile(`^\d+(-\d+)?(,\d+(-\d+)?)*$`)

// variables are all that the function reads, in the order of its documentation.
var variables = []variable{
	{
		EnvVar:  reconcile.EnvVar{Name: "BASELINE_HCO_NAMESPACE", Default: "openshift-cnv", Help: "namespace of the HyperConverged kubevirt-hyperconverged; others do not count"},
		allowed: "a namespace's name",
		parse:   func(s *Settings, value string) bool { return namespace(&s.HCONamespace, value) },
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "BASELINE_STATE_NAMESPACE", Default: "slipway-system", Help: "namespace of the ConfigMap baseline-applier with record and report"},
		allowed: "a namespace's name",
		parse:   func(s *Settings, value string) bool { return namespace(&s.StateNamespace, value) },
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "BASELINE_PATCH_NODE_KINDS", Default: "true", Help: "whether patches on MachineConfigs and KubeletConfigs are applied"},
		allowed: "true or false",
		parse:   func(s *Settings, value string) bool { return boolean(&s.PatchNodeKinds, value) },
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "BASELINE_HCO_OPINIONS", Default: "true", Help: "whether recommended values are set on the HyperConverged, or only the marks"},
		allowed: "true or false",
		parse:   func(s *Settings, value string) bool { return boolean(&s.Opinions, value) },
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "BASELINE_MANAGEMENT_CPUS", Default: "0-1,52-53", Help: "CPUs for management workloads in numa-topology; they depend on the hardware"},
		allowed: "a CPU list like 0-1,52-53",
		parse: func(s *Settings, value string) bool {
			s.ManagementCPUs = value
			return cpuList.MatchString(value)
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "BASELINE_RUNBOOKS", Default: decide.DefaultSettings().Runbooks, Help: "address below which the alerts' runbooks are"},
		allowed: "an http or https URL",
		parse: func(s *Settings, value string) bool {
			s.Runbooks = value
			u, err := url.Parse(value)
			return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "BASELINE_WRITE_CAPACITY", Default: "5", Help: "writes of one object that are allowed within BASELINE_WRITE_WINDOW"},
		allowed: "a whole number from 1 to 100",
		parse:   func(s *Settings, value string) bool { return number(&s.Capacity, value, 1, 100) },
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "BASELINE_WRITE_WINDOW", Default: "60s", Help: "see BASELINE_WRITE_CAPACITY"},
		allowed: "a duration from 1s to 1h",
		parse:   func(s *Settings, value string) bool { return duration(&s.Window, value, time.Second, time.Hour) },
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "BASELINE_PAUSE_AFTER", Default: "3", Help: "throttled oppositions after which an object is paused"},
		allowed: "a whole number from 1 to 100",
		parse:   func(s *Settings, value string) bool { return number(&s.PauseAfter, value, 1, 100) },
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "BASELINE_SLOW_COUNT", Default: "12", Help: "oppositions within BASELINE_SLOW_WINDOW after which an object is paused; 0 for none"},
		allowed: "a whole number from 0 to 100",
		parse:   func(s *Settings, value string) bool { return number(&s.SlowCount, value, 0, 100) },
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "BASELINE_SLOW_WINDOW", Default: "1h", Help: "see BASELINE_SLOW_COUNT"},
		allowed: "a duration from 1m to 24h",
		parse: func(s *Settings, value string) bool {
			return duration(&s.SlowWindow, value, time.Minute, 24*time.Hour)
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "LOG_LEVEL", Default: "info", Help: "what is logged"},
		allowed: "debug, info, warn or error",
		parse: func(s *Settings, value string) bool {
			s.LogLevel = value
			return slices.Contains([]string{"debug", "info", "warn", "error"}, value)
		},
	},
}

func namespace(to *string, value string) bool {
	*to = value
	return len(validation.IsDNS1123Label(value)) == 0
}

func boolean(to *bool, value string) bool {
	*to = value == "true"
	return value == "true" || value == "false"
}

func number(to *int, value string, least, most int) bool {
	n, err := strconv.Atoi(value)
	*to = n
	return err == nil && n >= least && n <= most
}

func duration(to *time.Duration, value string, least, most time.Duration) bool {
	d, err := time.ParseDuration(value)
	*to = d
	return err == nil && d >= least && d <= most
}

// ParseSettings reads the environment. A value that cannot be used is an error that
// says which, and what could stand there; nothing is guessed.
func ParseSettings(lookup func(name string) (string, bool)) (Settings, error) {
	s := Settings{Settings: decide.DefaultSettings()}
	for _, v := range variables {
		value, ok := lookup(v.Name)
		if !ok || value == "" {
			value = v.Default
		}
		if !v.parse(&s, value) {
			return Settings{}, fmt.Errorf("cannot use environment variable %s=%q: allowed is %s", v.Name, value, v.allowed)
		}
	}
	return s, nil
}
