package main

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

type object = map[string]any

const (
	namespace     = "slipway-system"
	brokerName    = "default"
	sourceAccnt   = "event-source"
	archive       = "event-archive"
	adapterName   = "source-adapter"
	brokerAddress = "http://broker-ingress.knative-eventing.svc.cluster.local/" + namespace + "/" + brokerName
)

func meta(name string, more ...object) object {
	m := object{"name": name, "namespace": namespace, "labels": object{"app.kubernetes.io/part-of": "slipway"}}
	for _, extra := range more {
		maps.Copy(m, extra)
	}
	return m
}

func kustomization(resources ...string) object {
	slices.Sort(resources)
	return object{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources}
}

// broker is asynchronous: the default synchronous one lets one failing
// delivery stop a whole watch. Order is not needed, an event is only a key.
func broker() object {
	return object{
		"apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
		"metadata": meta(brokerName, object{"annotations": object{
			"eventing.knative.dev/broker.class":   "MTChannelBasedBroker",
			"messaging.knative.dev/async-handler": "true",
		}}),
		"spec": object{
			"config":   object{"apiVersion": "v1", "kind": "ConfigMap", "name": "config-br-default-channel", "namespace": "knative-eventing"},
			"delivery": delivery(),
		},
	}
}

func delivery() object {
	return object{
		"retry": 5, "backoffPolicy": "exponential", "backoffDelay": "PT0.5S", "timeout": "PT30S",
		"deadLetterSink": sink("serving.knative.dev/v1", "Service", archive),
	}
}

func sink(apiVersion, kindName, name string) object {
	return object{"ref": object{"apiVersion": apiVersion, "kind": kindName, "name": name, "namespace": namespace}}
}

// watched is every watch of every function once. A watch without a selector
// holds what those with one would see; what one function needs through the
// adapter, all get through it, so that no event comes twice.
func watched(specs []reconcile.Spec) []reconcile.Watch {
	byResource := map[string][]reconcile.Watch{}
	for _, spec := range specs {
		for _, watch := range spec.Watches {
			byResource[watch.Resource.String()] = append(byResource[watch.Resource.String()], watch)
		}
	}
	var out []reconcile.Watch
	for _, same := range byResource {
		out = append(out, merge(same)...)
	}
	slices.SortFunc(out, func(a, b reconcile.Watch) int {
		return cmp.Or(strings.Compare(a.Resource.Group, b.Resource.Group), strings.Compare(a.Resource.Kind, b.Resource.Kind), strings.Compare(a.Selector, b.Selector))
	})
	return out
}

func merge(same []reconcile.Watch) []reconcile.Watch {
	adapter, remote := false, false
	bySelector := map[string]reconcile.Watch{}
	for _, watch := range same {
		adapter, remote = adapter || watch.Adapter, remote || watch.Remote
		bySelector[watch.Selector] = watch
	}
	if all, ok := bySelector[""]; ok {
		bySelector = map[string]reconcile.Watch{"": all}
	}
	out := make([]reconcile.Watch, 0, len(bySelector))
	for _, watch := range bySelector {
		watch.Adapter, watch.Remote = adapter, remote
		out = append(out, watch)
	}
	return out
}

// apiServerSources is one source per API group: an absent kind in a group is
// skipped, an absent group would crash the whole source. All are in Reference
// mode, so that nothing of an object travels but its name.
func apiServerSources(specs []reconcile.Spec) []object {
	byGroup := map[string][]any{}
	for _, watch := range watched(specs) {
		if watch.Adapter {
			continue
		}
		entry := object{"apiVersion": watch.Resource.APIVersion(), "kind": watch.Resource.Kind}
		if watch.Selector != "" {
			entry["selector"] = selector(watch.Selector)
		}
		byGroup[watch.Resource.Group] = append(byGroup[watch.Resource.Group], entry)
	}
	var out []object
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		out = append(out, object{
			"apiVersion": "sources.knative.dev/v1", "kind": "ApiServerSource", "metadata": meta(sourceName(group)),
			"spec": object{
				"serviceAccountName": sourceAccnt, "mode": "Reference", "namespaceSelector": object{},
				"resources": byGroup[group], "sink": sink("eventing.knative.dev/v1", "Broker", brokerName),
			},
		})
	}
	return out
}

// selector turns "key=value" or "key" (exists) into a label selector.
func selector(text string) object {
	key, value, equals := strings.Cut(text, "=")
	if equals {
		return object{"matchLabels": object{key: value}}
	}
	return object{"matchExpressions": []any{object{"key": key, "operator": "Exists"}}}
}

func sourceName(group string) string {
	if group == "" {
		return "core"
	}
	return strings.ReplaceAll(group, ".", "-")
}

// adapter is the Deployment of sources/adapter with the list of the kinds that
// it watches.
func adapter(specs []reconcile.Spec) []object {
	var resources []any
	for _, watch := range watched(specs) {
		if !watch.Adapter {
			continue
		}
		entry := object{
			"group": watch.Resource.Group, "versions": watch.Resource.Versions,
			"resource": watch.Resource.Plural, "kind": watch.Resource.Kind, "mode": "Reference",
		}
		if watch.Selector != "" {
			entry["selector"] = watch.Selector
		}
		resources = append(resources, entry)
	}
	// A struct of strings and lists always encodes.
	text, _ := yaml.Marshal(object{"sink": brokerAddress, "resources": resources})
	labels := object{"app.kubernetes.io/name": adapterName}
	return []object{
		{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(adapterName),
			"data": object{"config.yaml": string(text)},
		},
		{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(adapterName),
			"spec": object{
				"replicas": 1, "selector": object{"matchLabels": labels},
				"template": object{
					"metadata": object{"labels": labels},
					"spec": object{
						"serviceAccountName": sourceAccnt,
						"containers": []any{object{
							"name": adapterName, "image": "ko://github.com/slipway-dev/slipway/sources/adapter/cmd",
							"args":           []string{"--config=/etc/source-adapter/config.yaml", "--health-listen=:8081"},
							"volumeMounts":   []any{object{"name": "config", "mountPath": "/etc/source-adapter"}},
							"livenessProbe":  object{"httpGet": object{"path": "/healthz", "port": 8081}},
							"readinessProbe": object{"httpGet": object{"path": "/readyz", "port": 8081}},
							"resources": object{
								"requests": object{"cpu": "20m", "memory": "64Mi"}, "limits": object{"memory": "256Mi"},
							},
							"securityContext": restricted(),
						}},
						"volumes": []any{object{"name": "config", "configMap": object{"name": adapterName}}},
					},
				},
			},
		},
	}
}

// triggers hand each function the events of the kinds it is woken by, and its
// resyncs.
func triggers(specs []reconcile.Spec) []object {
	var out []object
	for _, spec := range specs {
		matches := []any{
			object{"exact": object{"type": event.TypePing, event.ExtFunction: spec.Name}},
			object{"exact": object{"type": event.TypeResync, event.ExtFunction: spec.Name}},
		}
		if spec.Connected != nil {
			matches = append(matches, object{"exact": object{"type": event.TypeConnected}}, object{"exact": object{"type": event.TypeDisconnected}})
		}
		for _, res := range kinds(spec) {
			matches = append(matches, res)
		}
		out = append(out, object{
			"apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
			"metadata": meta(spec.Name, object{"labels": object{
				"app.kubernetes.io/part-of": "slipway", "eventing.knative.dev/broker": brokerName,
			}}),
			"spec": object{
				"broker":     brokerName,
				"filters":    []any{object{"any": matches}},
				"subscriber": sink("serving.knative.dev/v1", "Service", spec.Name),
				"delivery":   delivery(),
			},
		})
	}
	return out
}

func kinds(spec reconcile.Spec) []object {
	filters := map[string]object{}
	for _, watch := range spec.Watches {
		match := object{"exact": object{"kind": watch.Resource.Kind, "apiversion": "v1"}}
		if group := watch.Resource.Group; group != "" {
			match = object{"all": []any{
				object{"exact": object{"kind": watch.Resource.Kind}},
				object{"prefix": object{"apiversion": group + "/"}},
			}}
		}
		filters[watch.Resource.String()] = match
	}
	out := make([]object, 0, len(filters))
	for _, name := range slices.Sorted(maps.Keys(filters)) {
		out = append(out, filters[name])
	}
	return out
}

// resyncs tick every five minutes, each function at a minute and second of its
// own.
func resyncs(specs []reconcile.Spec) []object {
	var out []object
	for _, spec := range specs {
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(spec.Name))
		at := sum.Sum32() % 300
		out = append(out, object{
			"apiVersion": "sources.knative.dev/v1", "kind": "PingSource", "metadata": meta("resync-" + spec.Name),
			"spec": object{
				"schedule": fmt.Sprintf("%d %d/5 * * * *", at%60, at/60), "contentType": "application/json", "data": "{}",
				"ceOverrides": object{"extensions": object{event.ExtFunction: spec.Name}},
				"sink":        sink("eventing.knative.dev/v1", "Broker", brokerName),
			},
		})
	}
	return out
}

// sourceAccount may watch exactly the watched kinds. Its binding names the
// account itself: Knative's own access check does not see groups.
func sourceAccount(specs []reconcile.Spec) []object {
	// The adapter follows the definitions of the kinds that may come and go.
	grants := []reconcile.Grant{{Resource: kind.CRDs, Verbs: []string{"get", "list", "watch"}}}
	for _, watch := range watched(specs) {
		grants = append(grants, reconcile.Grant{Resource: watch.Resource, Verbs: []string{"get", "list", "watch"}})
	}
	return append([]object{{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(sourceAccnt)}},
		role("slipway-"+sourceAccnt, sourceAccnt, grants)...)
}
