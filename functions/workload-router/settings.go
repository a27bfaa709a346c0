package workloadrouter

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-dev/slipway/functions/workload-router/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/reconcile"
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
	// LogLevel is debug, info, warn or error.
	LogLevel string
}

// shared are the settings of all Dockyards functions that this one heeds.
var shared = []string{"GATEWAY_NAME", "GATEWAY_NAMESPACE", "CONFIG_MAP", "DOCKYARDS_NAMESPACE", "WORKLOAD_INGRESS"}

// variable is one environment variable: how it is documented and parsed. An
// empty value counts as unset.
type variable struct {
	reconcile.EnvVar
	allowed string
	parse   func(s *Settings, value string) bool
}

// variables are those that no other function has.
var variables = []variable{
	{
		EnvVar:  reconcile.EnvVar{Name: "MAX_SERVICES", Default: "100", Help: "Services of a Workload that are mirrored, the oldest first"},
		allowed: "a whole number from 1 to 1000",
		parse:   number(1000, func(s *Settings, n int) { s.Limits.Services = n }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "MAX_SERVICE_PORTS", Default: "100", Help: "ports of a Service that are mirrored"},
		allowed: "a whole number from 1 to 1000",
		parse:   number(1000, func(s *Settings, n int) { s.Limits.Ports = n }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "MAX_SERVICES_READ", Default: "5000", Help: "Services labelled for a Workload that are looked at"},
		allowed: "a whole number from 1 to 100000",
		parse:   number(100000, func(s *Settings, n int) { s.Limits.Read = n }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "REMOTE_TIMEOUT", Default: "5s", Help: "bound of a request to a workload cluster"},
		allowed: "a duration above 0, like 5s",
		parse: func(s *Settings, value string) bool {
			d, err := time.ParseDuration(value)
			s.RemoteTimeout = d
			return err == nil && d > 0
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "MAX_REMOTE_ANSWER_MIB", Default: "1", Help: "size in MiB of an answer of a workload cluster that is read"},
		allowed: "a whole number from 1 to 1000",
		parse:   number(1000, func(s *Settings, n int) { s.RemoteAnswer = int64(n) << 20 }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "MAX_CONCURRENT_RECONCILES", Default: "50", Help: "Workloads at once of one event or resync; with fewer than 50, one may wait for the dead cluster of another"},
		allowed: "a whole number from 1 to 1000",
		parse:   number(1000, func(s *Settings, n int) { s.MaxConcurrentReconciles = n }),
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

// ParseSettings reads the environment. A value that cannot be used is an
// error that says which, and what could stand there; nothing is guessed.
func ParseSettings(lookup func(name string) (string, bool)) (Settings, error) {
	all, err := dockyards.ParseSettings(lookup)
	if err != nil {
		return Settings{}, err
	}
	s := Settings{Settings: all}
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

// DefaultSettings are those of an empty environment.
func DefaultSettings() Settings {
	s, err := ParseSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		panic(err) // the defaults always parse, which a test shows
	}
	return s
}

func number(highest int, set func(s *Settings, n int)) func(*Settings, string) bool {
	return func(s *Settings, value string) bool {
		n, err := strconv.Atoi(value)
		set(s, n)
		return err == nil && n >= 1 && n <= highest
	}
}
