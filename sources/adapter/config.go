package adapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"sigs.k8s.io/yaml"
)

// Environment variables that win over the configuration file: those that a
// SinkBinding or a ContainerSource sets.
const (
	EnvSink        = "K_SINK"
	EnvCEOverrides = "K_CE_OVERRIDES"
	EnvNamespace   = "NAMESPACE"
)

// EnvTokenFile names the file with the token that the sink knows this process by
// (see [Relay]); nobody else's variable says that.
const EnvTokenFile = "K_SINK_TOKEN_FILE" //nolint:gosec // a name, not a token

// Config says what to watch and where to send it.
type Config struct {
	// Sink is the URL that the events are sent to.
	Sink string `json:"sink,omitempty"`
	// Namespace is the namespace that the source counts as being in; it travels
	// as the header Kn-Namespace.
	Namespace string `json:"namespace,omitempty"`
	// CEOverrides are put on every event.
	CEOverrides Overrides `json:"ceOverrides,omitempty"`
	// Resources are watched on the management cluster, as far as it serves them.
	Resources []Resource `json:"resources"`
	// Remotes are where other clusters come from, and what is watched there.
	Remotes []Remote `json:"remotes,omitempty"`
}

// Overrides is what is put on every event.
type Overrides struct {
	// Extensions are CloudEvents extensions.
	Extensions map[string]string `json:"extensions,omitempty"`
}

// Resource is one kind of object, in whichever of its versions is served.
type Resource struct {
	// Group is the API group; empty for the core group.
	Group string `json:"group,omitempty"`
	// Versions are tried in order; the first one that is served is watched.
	Versions []string `json:"versions"`
	// Resource is the plural, as discovery lists it.
	Resource string `json:"resource"`
	// Kind is compared with what discovery says, so that a foreign resource of
	// the same plural is not watched by mistake.
	Kind string `json:"kind"`
	// Selector is a label selector. An object that leaves it counts as deleted.
	Selector string `json:"selector,omitempty"`
	// Namespace limits the watch to one namespace.
	Namespace string `json:"namespace,omitempty"`
	// Name limits the watch to the objects of one name.
	Name string `json:"name,omitempty"`
	// Owner limits the watch to objects that one of this kind owns, as Kind.group.
	// One that loses its owner counts as never seen: it gives no event.
	Owner string `json:"owner,omitempty"`
	// Fields limits the watch to changes of these fields, as JSON pointers. An object
	// that is seen for the first time counts as changed.
	Fields []string `json:"fields,omitempty"`
	// Mode is Reference (the default: name only) or Resource (the whole object).
	Mode string `json:"mode,omitempty"`
}

// extensionName is what CloudEvents allows as the name of an extension.
var extensionName = regexp.MustCompile(`^[a-z0-9]{1,20}$`)

// Load reads the configuration at path, lets the environment win, fills in the
// defaults and checks the result.
func Load(path string, getenv func(string) string) (Config, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("cannot read the configuration: %w", err)
	}
	var config Config
	if err := yaml.UnmarshalStrict(raw, &config); err != nil {
		return Config{}, fmt.Errorf("cannot read the configuration %q: %w", path, err)
	}
	if err := config.overlay(getenv); err != nil {
		return Config{}, err
	}
	if err := config.complete(); err != nil {
		return Config{}, fmt.Errorf("cannot use the configuration %q: %w", path, err)
	}
	return config, nil
}

// overlay lets environment variables win over the file.
func (c *Config) overlay(getenv func(string) string) error {
	if sink := getenv(EnvSink); sink != "" {
		c.Sink = sink
	}
	if namespace := getenv(EnvNamespace); namespace != "" {
		c.Namespace = namespace
	}
	for i := range c.Remotes {
		c.Remotes[i].overlay(getenv)
	}
	overrides := getenv(EnvCEOverrides)
	if overrides == "" {
		return nil
	}
	var fromEnv Overrides
	if err := json.Unmarshal([]byte(overrides), &fromEnv); err != nil {
		return fmt.Errorf("cannot read the environment variable %s: %w", EnvCEOverrides, err)
	}
	for name, value := range fromEnv.Extensions {
		if c.CEOverrides.Extensions == nil {
			c.CEOverrides.Extensions = map[string]string{}
		}
		c.CEOverrides.Extensions[name] = value
	}
	return nil
}

// complete fills in defaults and names everything that is wrong.
func (c *Config) complete() error {
	if c.Namespace == "" {
		c.Namespace = "default"
	}
	var wrong []error
	sink, err := url.Parse(c.Sink)
	if err != nil || sink.Host == "" || (sink.Scheme != "http" && sink.Scheme != "https") {
		wrong = append(wrong, fmt.Errorf("sink %q is no http or https URL: set it, or the environment variable %s", c.Sink, EnvSink))
	}
	for name := range c.CEOverrides.Extensions {
		if !extensionName.MatchString(name) {
			wrong = append(wrong, fmt.Errorf("ceOverrides.extensions: %q is no name of a CloudEvents extension: use up to 20 lower case letters and digits", name))
		}
	}
	if len(c.Resources) == 0 {
		wrong = append(wrong, errors.New("resources is empty: name at least one"))
	}
	wrong = append(wrong, completeAll("", c.Resources)...)
	seen := map[string]bool{}
	for i := range c.Remotes {
		remote, at := &c.Remotes[i], fmt.Sprintf("remotes[%d]", i)
		if seen[remote.Provider] {
			wrong = append(wrong, fmt.Errorf("%s: the provider %q is there twice: put all resources into one entry", at, remote.Provider))
		}
		seen[remote.Provider] = true
		if err := remote.complete(); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", at, err))
		}
		wrong = append(wrong, completeAll(at+".", remote.Resources)...)
	}
	return errors.Join(wrong...)
}

// completeAll completes resources; at is where they stand.
func completeAll(at string, resources []Resource) []error {
	var wrong []error
	for i := range resources {
		if err := resources[i].complete(); err != nil {
			wrong = append(wrong, fmt.Errorf("%sresources[%d] (%s): %w", at, i, resources[i], err))
		}
	}
	return wrong
}

func (r *Resource) complete() error {
	if r.Mode == "" {
		r.Mode = sourcesv1.ReferenceMode
	}
	if r.Mode != sourcesv1.ReferenceMode && r.Mode != sourcesv1.ResourceMode {
		return fmt.Errorf("mode %q is unknown: use %s or %s", r.Mode, sourcesv1.ReferenceMode, sourcesv1.ResourceMode)
	}
	if r.Resource == "" || r.Kind == "" || len(r.Versions) == 0 {
		return errors.New("resource, kind and versions are required")
	}
	return r.checkLimits()
}

// checkLimits looks at what limits the watch to some objects and changes.
func (r *Resource) checkLimits() error {
	if _, err := labels.Parse(r.Selector); err != nil {
		return fmt.Errorf("cannot read selector %q: %w", r.Selector, err)
	}
	if kind, group, ok := strings.Cut(r.Owner, "."); r.Owner != "" && (!ok || kind == "" || group == "") {
		return fmt.Errorf("owner %q is no kind: write it as Kind.group", r.Owner)
	}
	for _, field := range r.Fields {
		if !strings.HasPrefix(field, "/") || len(field) < 2 {
			return fmt.Errorf("field %q is no JSON pointer: write it as /metadata/labels", field)
		}
	}
	if strings.ContainsAny(r.Namespace+r.Name, "/,= ") {
		return fmt.Errorf("namespace %q and name %q must be names of one object each", r.Namespace, r.Name)
	}
	return nil
}

// String is the resource as people write it: plural.group.
func (r Resource) String() string {
	if r.Group == "" {
		return r.Resource
	}
	return r.Resource + "." + r.Group
}
