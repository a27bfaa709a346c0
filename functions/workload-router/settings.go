package workloadrouter

import (
	"strconv"
	"time"

	"github.com/slipway-dev/slipway/functions/workload-router/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/setting"
)

// Settings are the whole environment of the function.
type Settings struct {
	// Settings are those of all Dockyards functions.
	dockyards.Settings
	// Limits keep what one workload cluster can ask for.
	Limits decide.Limits
	// RemoteTimeout bounds a request to a workload cluster, RemoteAnswer the size of
	// its answer in bytes.
	RemoteTimeout time.Duration
	RemoteAnswer  int64
	// MaxConcurrentReconciles bounds the Workloads at once of one event.
	MaxConcurrentReconciles int
}

// shared are the settings of all Dockyards functions that this one heeds.
var shared = []string{"GATEWAY_NAME", "GATEWAY_NAMESPACE", "CONFIG_MAP", "DOCKYARDS_NAMESPACE", "WORKLOAD_INGRESS"}

// variables are those that no other function has.
var variables = []setting.Variable[Settings]{
	{
		EnvVar:  setting.EnvVar{Name: "MAX_SERVICES", Default: "100", Help: "Services of a Workload that are mirrored, the oldest first"},
		Allowed: setting.OneTo1000,
		Parse:   setting.Whole(func(s *Settings) *int { return &s.Limits.Services }, 1, 1000),
	},
	{
		EnvVar:  setting.EnvVar{Name: "MAX_SERVICE_PORTS", Default: "100", Help: "ports of a Service that are mirrored"},
		Allowed: setting.OneTo1000,
		Parse:   setting.Whole(func(s *Settings) *int { return &s.Limits.Ports }, 1, 1000),
	},
	{
		EnvVar:  setting.EnvVar{Name: "MAX_SERVICES_READ", Default: "5000", Help: "Services labelled for a Workload that are looked at"},
		Allowed: "a whole number from 1 to 100000",
		Parse:   setting.Whole(func(s *Settings) *int { return &s.Limits.Read }, 1, 100000),
	},
	{
		EnvVar:  setting.EnvVar{Name: "REMOTE_TIMEOUT", Default: "5s", Help: "bound of a request to a workload cluster"},
		Allowed: setting.TimeAbove0,
		Parse:   setting.Duration(func(s *Settings) *time.Duration { return &s.RemoteTimeout }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "MAX_REMOTE_ANSWER_MIB", Default: "1", Help: "size in MiB of an answer of a workload cluster that is read"},
		Allowed: setting.OneTo1000,
		Parse: func(s *Settings, value string) bool {
			n, err := strconv.Atoi(value)
			s.RemoteAnswer = int64(n) << 20
			return err == nil && n >= 1 && n <= 1000
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "MAX_CONCURRENT_RECONCILES", Default: "50", Help: "Workloads at once of one event or resync; with fewer than 50, one may wait for the dead cluster of another"},
		Allowed: setting.OneTo1000,
		Parse:   setting.Whole(func(s *Settings) *int { return &s.MaxConcurrentReconciles }, 1, 1000),
	},
}

// ParseSettings reads the environment. A value that cannot be used is an
// error that says which, and what could stand there; nothing is guessed.
func ParseSettings(lookup func(name string) (string, bool)) (Settings, error) {
	all, err := dockyards.ParseSettings(lookup)
	if err != nil {
		return Settings{}, err
	}
	s := Settings{Settings: all}
	if err := setting.Parse(&s, variables, lookup); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// DefaultSettings are those of an empty environment.
func DefaultSettings() Settings {
	s, err := ParseSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		panic(err) // the defaults always parse, which a test shows
	}
	return s
}
