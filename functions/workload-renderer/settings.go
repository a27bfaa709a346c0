package workloadrenderer

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/functions/workload-renderer/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/shared/setting"
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

// variables are all that the function reads, in the order of its documentation,
// besides those that all Dockyards functions share.
var variables = []setting.Variable[Settings]{
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_PUBLIC_NAMESPACES", Default: "dockyards-public", Help: "namespaces whose templates every Workload may use"},
		Allowed: "names of namespaces, separated by commas",
		Parse: func(s *Settings, value string) bool {
			s.PublicNamespaces = list(value)
			return !slices.ContainsFunc(s.PublicNamespaces, func(ns string) bool { return len(validation.IsDNS1123Label(ns)) > 0 })
		},
	},
	{
		EnvVar: setting.EnvVar{
			Name: "RENDERER_ALLOWED_KINDS", Default: render.FormatAllowed(render.DefaultAllowed()),
			Help: "kinds that templates may give; one that is added needs a rule in the function's role",
		},
		Allowed: "of " + render.FormatAllowed(render.Known()) + ", some",
		Parse: func(s *Settings, value string) bool {
			allowed, err := render.ParseAllowed(value)
			s.Rules.Allowed = allowed
			return err == nil
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_ALLOW_LOCAL_APPLY", Default: "false", Help: "allow Kustomizations and HelmReleases for the management cluster itself"},
		Allowed: setting.TrueOrFalse,
		Parse:   setting.Bool(func(s *Settings) *bool { return &s.Rules.LocalApply }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_KUBECONFIG_CONFIG_MAPS", Help: "config maps that spec.kubeConfig.configMapRef may name"},
		Allowed: "names of config maps, separated by commas",
		Parse: func(s *Settings, value string) bool {
			s.Rules.KubeConfigMaps = list(value)
			return !slices.ContainsFunc(s.Rules.KubeConfigMaps, func(name string) bool { return len(validation.IsDNS1123Subdomain(name)) > 0 })
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_ALLOW_CLOUD_IDENTITY", Default: "false", Help: "allow sources that Flux reads by its own cloud identity"},
		Allowed: setting.TrueOrFalse,
		Parse:   setting.Bool(func(s *Settings) *bool { return &s.Rules.CloudIdentity }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_MAX_SOURCE", Default: "512Ki", Help: "size of a template's source"},
		Allowed: aSize, Parse: size(func(s *Settings) *int { return &s.Limits.MaxSource }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_MAX_INPUT", Default: "256Ki", Help: "size of what a template is given"},
		Allowed: aSize, Parse: size(func(s *Settings) *int { return &s.Limits.MaxInput }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_MAX_OBJECT", Default: "1Mi", Help: "size of one object"},
		Allowed: aSize, Parse: size(func(s *Settings) *int { return &s.Limits.MaxObject }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_MAX_OUTPUT", Default: "4Mi", Help: "size of all objects together"},
		Allowed: aSize, Parse: size(func(s *Settings) *int { return &s.Limits.MaxOutput }),
	},
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_MAX_OBJECTS", Default: "64", Help: "number of objects"},
		Allowed: "a whole number from 1 to 64",
		Parse:   setting.Whole(func(s *Settings) *int { return &s.Limits.MaxObjects }, 1, 64),
	},
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_CPU", Default: "5s", Help: "processor time of one render"},
		Allowed: aTime, Parse: setting.DurationWithin(func(s *Settings) *time.Duration { return &s.Limits.CPU }, 1, wallMax),
	},
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_WALL", Default: "8s", Help: "time of one render"},
		Allowed: aTime, Parse: setting.DurationWithin(func(s *Settings) *time.Duration { return &s.Limits.Wall }, 1, wallMax),
	},
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_MEMORY", Default: "256Mi", Help: "memory of one render"},
		Allowed: "a size from 128Mi to 4Gi",
		Parse: func(s *Settings, value string) bool {
			q, err := resource.ParseQuantity(value)
			s.Limits.Memory = q.Value()
			return err == nil && s.Limits.Memory >= 128<<20 && s.Limits.Memory <= 4<<30
		},
	},
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_WORKERS", Default: "3", Help: "renders at once; the Service's memory limit has to have room for them"},
		Allowed: "a whole number from 2 to 32",
		Parse:   setting.Whole(func(s *Settings) *int { return &s.Workers }, 2, 32),
	},
	{
		EnvVar:  setting.EnvVar{Name: "RENDERER_MAX_PRUNE", Default: "20", Help: "deletions in one run"},
		Allowed: "a whole number from 1 to 100",
		Parse:   setting.Whole(func(s *Settings) *int { return &s.MaxPrune }, 1, 100),
	},
}

const (
	aSize = "a size above 0 and up to 64Mi, like 512Ki"
	aTime = "a duration above 0 and up to 20s, like 5s"
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
	if err := setting.Parse(&s, variables, lookup); err != nil {
		return Settings{}, err
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
