package adapter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// EnvConfigsNamespace is the environment variable that names the namespace of
// KubevirtConfigs, the same as for the functions that read them.
const EnvConfigsNamespace = "KUBEVIRT_CONFIGS_NAMESPACE"

// LabelWatch marks the Secrets of KubevirtConfigs whose changes are noticed at once.
const LabelWatch = "slipway.dev/watch"

// Remote is one provider of clusters and what is watched on each of them.
type Remote struct {
	// Provider names the kind of object that stands for a cluster.
	Provider string `json:"provider"`
	// Namespace is where such objects are, if they have a namespace, and where
	// their Secrets are unless they say otherwise.
	Namespace string `json:"namespace,omitempty"`
	// Key is the key of the kubeconfig in a Secret.
	Key string `json:"key,omitempty"`
	// Resources are watched on every cluster, as far as it serves them.
	Resources []Resource `json:"resources"`
	// Refresh is how often every Secret is read without a reason: a change of one
	// without the provider's label is seen by no watch.
	Refresh metav1.Duration `json:"refresh,omitzero"`
	// Timeout bounds the wait for a cluster's answer.
	Timeout metav1.Duration `json:"timeout,omitzero"`
	// Heartbeat is how often a cluster is asked whether it is there; after three
	// failures in a row it counts as gone.
	Heartbeat metav1.Duration `json:"heartbeat,omitzero"`
}

// provider knows which objects of the management cluster stand for clusters.
type provider struct {
	// resource are those objects.
	resource Resource
	// namespace and key are the defaults of the configuration.
	namespace, key string
	// keep is what is kept of an object besides its metadata, as locate reads it; nil:
	// everything.
	keep func(object *unstructured.Unstructured) map[string]any
	// label is that of the Secrets whose changes are noticed at once, in the namespaces
	// that clusters name, or everywhere.
	label      string
	everywhere bool
	// foreign tells that the clusters are not ours: what they answer is bounded.
	foreign bool
	// locate tells where the kubeconfig of an object's cluster is; false for an
	// object that is no cluster, or not one yet.
	locate func(settings Remote, object *unstructured.Unstructured) (location, bool)
}

// location is a cluster and the place of its kubeconfig.
type location struct {
	cluster                string
	namespace, secret, key string
}

// providers are all that are known. Another one is another entry here, with a
// file of its own.
var providers = map[string]provider{
	ProviderKubevirtConfig: kubevirtConfigs,
	ProviderClusterAPI:     clusterAPI,
}

func (r *Remote) overlay(getenv func(string) string) {
	if namespace := getenv(EnvConfigsNamespace); namespace != "" && r.Provider == ProviderKubevirtConfig {
		r.Namespace = namespace
	}
}

// complete fills in defaults and names what is wrong.
func (r *Remote) complete() error {
	known, ok := providers[r.Provider]
	if !ok {
		return fmt.Errorf("provider %q is unknown: use one of %s", r.Provider, strings.Join(slices.Sorted(maps.Keys(providers)), ", "))
	}
	if len(r.Resources) == 0 {
		return fmt.Errorf("provider %q: resources is empty: name at least one, or leave the provider out", r.Provider)
	}
	for _, text := range []struct {
		field    *string
		standard string
	}{{&r.Namespace, known.namespace}, {&r.Key, known.key}} {
		if *text.field == "" {
			*text.field = text.standard
		}
	}
	for _, duration := range []struct {
		field    *metav1.Duration
		standard time.Duration
	}{{&r.Refresh, time.Minute}, {&r.Timeout, 10 * time.Second}, {&r.Heartbeat, 10 * time.Second}} {
		if duration.field.Duration < 0 {
			return errors.New("refresh, timeout and heartbeat must not be negative")
		}
		if duration.field.Duration == 0 {
			duration.field.Duration = duration.standard
		}
	}
	return nil
}
