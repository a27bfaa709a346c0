package adapter

import (
	"encoding/json"
	"fmt"
	"maps"

	"knative.dev/eventing/pkg/adapter/apiserver"
)

// sinkTimeout is how many seconds a receive adapter waits for the sink's answer.
// An ApiServerSource knows no such limit: there a sink that hangs blocks the
// watch for ever.
const sinkTimeout = "30"

// silent keeps the receive adapter from exporting telemetry of its own.
const silent = `{"metrics":{"protocol":"none"},"tracing":{"protocol":"none"},"runtime":{"profiling":"disabled"}}`

// environment is the environment of a receive adapter that watches the given
// resources on the named cluster.
func (c Config) environment(cluster string, key unit, watches []apiserver.ResourceWatch) (Environment, error) {
	namespaces := []string{}
	if key.namespace != "" {
		namespaces = append(namespaces, key.namespace)
	}
	source, err := json.Marshal(apiserver.Config{
		Namespaces:    namespaces,
		AllNamespaces: key.namespace == "",
		Resources:     watches,
		EventMode:     key.mode,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the configuration of a receive adapter: %w", err)
	}
	overrides, err := json.Marshal(Overrides{Extensions: c.extensions(cluster)})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the overrides of a receive adapter: %w", err)
	}
	return Environment{
		EnvSink:                  c.Sink,
		EnvNamespace:             c.Namespace,
		EnvCEOverrides:           string(overrides),
		"NAME":                   "source-adapter",
		"K_SOURCE_CONFIG":        string(source),
		"K_SINK_TIMEOUT":         sinkTimeout,
		"K_LOGGING_CONFIG":       "",
		"K_OBSERVABILITY_CONFIG": silent,
	}, nil
}

// extensions are those of every event of the named cluster.
func (c Config) extensions(cluster string) map[string]string {
	extensions := maps.Clone(c.CEOverrides.Extensions)
	if cluster == "" {
		return extensions
	}
	if extensions == nil {
		extensions = map[string]string{}
	}
	extensions[ExtensionCluster] = cluster
	return extensions
}
