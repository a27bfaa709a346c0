package workloadrenderer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/functions/workload-renderer/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/render"
)

// Settings are the whole environment of the function.
type Settings struct {
	// Settings are those that decisions depend on.
	decide.Settings
	// ConfigMapNamespace and ConfigMapName name the config map that all Dockyards
	// controllers share.
	ConfigMapNamespace, ConfigMapName string
	// Workers is how many renders run at once.
	Workers int
}

// wallMax lies below the deadline of a call, with time for reads and writes.
const wallMax = 20 * time.Second

// variable is one environment variable: how it is documented and parsed.
type variable struct {
	reconcile.EnvVar
	allowed string
	parse   func(s *Settings, value string) bool
}

// variables are all that the function reads, in the order of its documentation,
// besides those that all Dockyards functions share.
var variables = []variable{
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_PUBLIC_NAMESPACES", Default: "dockyards-public", Help: "namespaces whose templates every Workload may use"},
		allowed: "names of namespaces, separated by commas",
		parse: func(s *Settings, value string) bool {
			s.PublicNamespaces = list(value)
			return !slices.ContainsFunc(s.PublicNamespaces, func(ns string) bool { return len(validation.IsDNS1123Label(ns)) > 0 })
		},
	},
	{
		EnvVar: reconcile.EnvVar{
			Name: "RENDERER_ALLOWED_KINDS", Default: render.FormatAllowed(render.DefaultAllowed()),
			Help: "kinds that templates may give; one that is added needs a rule in the function's role",
		},
		allowed: "of " + render.FormatAllowed(render.Known()) + ", some",
		parse: func(s *Settings, value string) bool {
			allowed, err := render.ParseAllowed(value)
			s.Rules.Allowed = allowed
			return err == nil
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_ALLOW_LOCAL_APPLY", Default: "false", Help: "allow Kustomizations and HelmReleases for the management cluster itself"},
		allowed: trueOrFalse,
		parse:   truth(func(s *Settings) *bool { return &s.Rules.LocalApply }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_KUBECONFIG_CONFIG_MAPS", Help: "config maps that spec.kubeConfig.configMapRef may name"},
		allowed: "names of config maps, separated by commas",
		parse: func(s *Settings, value string) bool {
			s.Rules.KubeConfigMaps = list(value)
			return !slices.ContainsFunc(s.Rules.KubeConfigMaps, func(name string) bool { return len(validation.IsDNS1123Subdomain(name)) > 0 })
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_ALLOW_CLOUD_IDENTITY", Default: "false", Help: "allow sources that Flux reads by its own cloud identity"},
		allowed: trueOrFalse,
		parse:   truth(func(s *Settings) *bool { return &s.Rules.CloudIdentity }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_MAX_SOURCE", Default: "512Ki", Help: "size of a template's source"},
		allowed: aSize, parse: size(func(s *Settings) *int { return &s.Limits.MaxSource }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_MAX_INPUT", Default: "256Ki", Help: "size of what a template is given"},
		allowed: aSize, parse: size(func(s *Settings) *int { return &s.Limits.MaxInput }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_MAX_OBJECT", Default: "1Mi", Help: "size of one object"},
		allowed: aSize, parse: size(func(s *Settings) *int { return &s.Limits.MaxObject }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_MAX_OUTPUT", Default: "4Mi", Help: "size of all objects together"},
		allowed: aSize, parse: size(func(s *Settings) *int { return &s.Limits.MaxOutput }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_MAX_OBJECTS", Default: "64", Help: "number of objects"},
		allowed: "a whole number from 1 to 64",
		parse:   number(func(s *Settings) *int { return &s.Limits.MaxObjects }, 64),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_CPU", Default: "5s", Help: "processor time of one render"},
		allowed: aTime, parse: duration(func(s *Settings) *time.Duration { return &s.Limits.CPU }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_WALL", Default: "8s", Help: "time of one render"},
		allowed: aTime, parse: duration(func(s *Settings) *time.Duration { return &s.Limits.Wall }),
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_MEMORY", Default: "256Mi", Help: "memory of one render"},
		allowed: "a size from 128Mi to 4Gi",
		parse: func(s *Settings, value string) bool {
			q, err := resource.ParseQuantity(value)
			s.Limits.Memory = q.Value()
			return err == nil && s.Limits.Memory >= 128<<20 && s.Limits.Memory <= 4<<30
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_WORKERS", Default: "3", Help: "renders at once; the Service's memory limit has to have room for them"},
		allowed: "a whole number from 2 to 32",
		parse: func(s *Settings, value string) bool {
			n, err := strconv.Atoi(value)
			s.Workers = n
			return err == nil && n >= 2 && n <= 32
		},
	},
	{
		EnvVar:  reconcile.EnvVar{Name: "RENDERER_MAX_PRUNE", Default: "20", Help: "deletions in one run"},
		allowed: "a whole number from 1 to 100",
		parse:   number(func(s *Settings) *int { return &s.MaxPrune }, 100),
	},
}

const (
	trueOrFalse = "true or false"
	aSize       = "a size above 0 and up to 64Mi, like 512Ki"
	aTime       = "a duration above 0 and up to 20s, like 5s"
)

// shared are the settings of all Dockyards functions that this one heeds.
var shared = []string{"CONFIG_MAP", "DOCKYARDS_NAMESPACE"}

// ParseSettings reads the environment. A value that cannot be used is an error that
// says which, and what could stand there; nothing is guessed.
func ParseSettings(lookup func(name string) (string, bool)) (Settings, error) {
	common, err := dockyards.ParseSettings(func(name string) (string, bool) {
		if !slices.Contains(shared, name) {
			return "", false
		}
		return lookup(name)
	})
	if err != nil {
		return Settings{}, err
	}
	s := Settings{Settings: decide.DefaultSettings(), ConfigMapNamespace: common.ConfigMapNamespace, ConfigMapName: common.ConfigMapName}
	for _, v := range variables {
		value, ok := lookup(v.Name)
		if !ok || value == "" {
			value = v.Default
		}
		if value == "" {
			continue
		}
		if !v.parse(&s, value) {
			return Settings{}, fmt.Errorf("cannot use environment variable %s=%q: allowed is %s", v.Name, value, v.allowed)
		}
	}
	s.Rules.MaxFiles = s.Limits.MaxObject
	return s, nil
}

func list(value string) []string {
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" && !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	return items
}

func truth(field func(*Settings) *bool) func(*Settings, string) bool {
	return func(s *Settings, value string) bool {
		b, err := strconv.ParseBool(value)
		*field(s) = b
		return err == nil
	}
}

func size(field func(*Settings) *int) func(*Settings, string) bool {
	return func(s *Settings, value string) bool {
		q, err := resource.ParseQuantity(value)
		if err != nil || q.Sign() <= 0 || q.Value() > 64<<20 {
			return false
		}
		*field(s) = int(q.Value())
		return true
	}
}

func number(field func(*Settings) *int, most int) func(*Settings, string) bool {
	return func(s *Settings, value string) bool {
		n, err := strconv.Atoi(value)
		*field(s) = n
		return err == nil && n >= 1 && n <= most
	}
}

func duration(field func(*Settings) *time.Duration) func(*Settings, string) bool {
	return func(s *Settings, value string) bool {
		d, err := time.ParseDuration(value)
		*field(s) = d
		return err == nil && d > 0 && d <= wallMax
	}
}
