package baselineapplier

import (
	"net/url"
	"regexp"
	"time"

	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/shared/setting"
)

// Settings are the whole environment of the function.
type Settings struct {
	// Settings are those that decisions depend on.
	decide.Settings
}

var cpuList = regexp.MustCompile(`^\d+(-\d+)?(,\d+(-\d+)?)*$`)

// variables are all that the function reads, in the order of its documentation.
var variables = []setting.Variable[Settings]{
	{
		EnvVar:  setting.EnvVar{Name: "BASELINE_HCO_NAMESPACE", Default: "openshift-cnv", Help: "namespace of the HyperConverged kubevirt-hyperconverged; others do not count"},
		Allowed: setting.ANamespace,
		Parse:   setting.Label(func(s *Settings) *string { return &s.HCONamespace }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "BASELINE_STATE_NAMESPACE", Default: "slipway-system", Help: "namespace of the ConfigMap baseline-applier with record and report"},
		Allowed: setting.ANamespace,
		Parse:   setting.Label(func(s *Settings) *string { return &s.StateNamespace }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "BASELINE_PATCH_NODE_KINDS", Default: "true", Help: "whether patches on MachineConfigs and KubeletConfigs are applied"},
		Allowed: setting.TrueOrFalse,
		Parse:   setting.Bool(func(s *Settings) *bool { return &s.PatchNodeKinds }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "BASELINE_HCO_OPINIONS", Default: "true", Help: "whether recommended values are set on the HyperConverged, or only the marks"},
		Allowed: setting.TrueOrFalse,
		Parse:   setting.Bool(func(s *Settings) *bool { return &s.Opinions }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "BASELINE_MANAGEMENT_CPUS", Default: "0-1,52-53", Help: "CPUs for management workloads in numa-topology; they depend on the hardware"},
		Allowed: "a CPU list like 0-1,52-53",
		Parse: func(s *Settings, value string) bool {
			s.ManagementCPUs = value
			return cpuList.MatchString(value)
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "BASELINE_RUNBOOKS", Default: decide.DefaultSettings().Runbooks, Help: "address below which the alerts' runbooks are"},
		Allowed: "an http or https URL",
		Parse: func(s *Settings, value string) bool {
			s.Runbooks = value
			u, err := url.Parse(value)
			return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "BASELINE_WRITE_CAPACITY", Default: "5", Help: "writes of one object that are allowed within BASELINE_WRITE_WINDOW"},
		Allowed: "a whole number from 1 to 100",
		Parse:   setting.Whole(func(s *Settings) *int { return &s.Capacity }, 1, 100),
	},
	{
		EnvVar:  setting.EnvVar{Name: "BASELINE_WRITE_WINDOW", Default: "60s", Help: "see BASELINE_WRITE_CAPACITY"},
		Allowed: "a duration from 1s to 1h",
		Parse:   setting.DurationWithin(func(s *Settings) *time.Duration { return &s.Window }, time.Second, time.Hour),
	},
	{
		EnvVar:  setting.EnvVar{Name: "BASELINE_PAUSE_AFTER", Default: "3", Help: "throttled oppositions after which an object is paused"},
		Allowed: "a whole number from 1 to 100",
		Parse:   setting.Whole(func(s *Settings) *int { return &s.PauseAfter }, 1, 100),
	},
	{
		EnvVar:  setting.EnvVar{Name: "BASELINE_SLOW_COUNT", Default: "12", Help: "oppositions within BASELINE_SLOW_WINDOW after which an object is paused; 0 for none"},
		Allowed: "a whole number from 0 to 100",
		Parse:   setting.Whole(func(s *Settings) *int { return &s.SlowCount }, 0, 100),
	},
	{
		EnvVar:  setting.EnvVar{Name: "BASELINE_SLOW_WINDOW", Default: "1h", Help: "see BASELINE_SLOW_COUNT"},
		Allowed: "a duration from 1m to 24h",
		Parse:   setting.DurationWithin(func(s *Settings) *time.Duration { return &s.SlowWindow }, time.Minute, 24*time.Hour),
	},
}

// ParseSettings reads the environment. A value that cannot be used is an error that
// says which, and what could stand there; nothing is guessed.
func ParseSettings(lookup func(name string) (string, bool)) (Settings, error) {
	s := Settings{Settings: decide.DefaultSettings()}
	if err := setting.Parse(&s, variables, lookup); err != nil {
		return Settings{}, err
	}
	return s, nil
}
