package main

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

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
	// recordingsAddress is where functions send recordings of reconciles.
	recordingsAddress = "http://event-archive." + namespace + ".svc.cluster.local/recordings"
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

// triggers hand each function the events of the kinds it is woken by, and its
// resyncs.
func triggers(specs []reconcile.Spec) []object {
	var out []object
	for _, spec := range specs {
		out = append(out, trigger(spec.Name, wakes(spec)))
	}
	return out
}

// wakes are the filters of what wakes a function; each lets something through.
func wakes(spec reconcile.Spec) []any {
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
	return matches
}

func trigger(name string, matches []any) object {
	return object{
		"apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
		"metadata": meta(name, object{"labels": object{
			"app.kubernetes.io/part-of": "slipway", "eventing.knative.dev/broker": brokerName,
		}}),
		"spec": object{
			"broker":     brokerName,
			"filters":    []any{object{"any": matches}},
			"subscriber": sink("serving.knative.dev/v1", "Service", name),
			"delivery":   delivery(),
		},
	}
}

// kinds are the filters of what a function watches. A watch that is limited to a
// namespace or to names lets nothing else through, whatever others watch.
func kinds(spec reconcile.Spec) []object {
	byResource := map[string][]reconcile.Watch{}
	for _, watch := range spec.Watches {
		// Events tell neither labels, nor owners, nor what has changed.
		watch.Selector, watch.Owner, watch.Fields = "", kind.Resource{}, nil
		name := watch.Resource.String()
		byResource[name] = append(byResource[name], watch)
	}
	var out []object
	for _, name := range slices.Sorted(maps.Keys(byResource)) {
		for _, watch := range merge(byResource[name]) {
			for _, limit := range limits(watch) {
				out = append(out, match(watch.Resource, limit))
			}
		}
	}
	return out
}

// limits are what objects of a watch have in common, one for each name.
func limits(watch reconcile.Watch) []object {
	names := watch.Names
	if len(names) == 0 {
		names = []string{""}
	}
	out := make([]object, 0, len(names))
	for _, name := range names {
		limit := object{}
		if watch.Namespace != "" {
			limit["namespace"] = watch.Namespace
		}
		if name != "" {
			limit["name"] = name
		}
		out = append(out, limit)
	}
	return out
}

func match(resource kind.Resource, limit object) object {
	exact := maps.Clone(limit)
	exact["kind"] = resource.Kind
	if resource.Group == "" {
		exact["apiversion"] = "v1"
		return object{"exact": exact}
	}
	// Whatever version the adapter found served.
	return object{"all": []any{
		object{"exact": exact},
		object{"prefix": object{"apiversion": resource.Group + "/"}},
	}}
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

// sourceAccount may watch exactly the kinds of the ApiServerSources. Its binding
// names the account itself: Knative's own access check does not see groups.
func sourceAccount(specs []reconcile.Spec) []object {
	var grants []reconcile.Grant
	for _, watch := range watched(specs) {
		if !watch.Adapter {
			grants = append(grants, reconcile.Grant{Resource: watch.Resource, Verbs: watching})
		}
	}
	return append([]object{{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(sourceAccnt)}},
		role("slipway-"+sourceAccnt, sourceAccnt, grants)...)
}

// watching are the verbs of whoever watches.
var watching = []string{"get", "list", "watch"}
