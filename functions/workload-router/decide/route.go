package decide

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
)

// routeKind is one kind of route and the port that it is for.
type routeKind struct {
	resource kind.Resource
	port     int64
	// matched tells that the API server adds a match to a rule without one.
	matched bool
}

var routeKinds = []routeKind{
	{resource: dockyards.HTTPRoutes, port: 80, matched: true},
	{resource: dockyards.TLSRoutes, port: 443},
}

func (v *view) routesOf(k routeKind) (live []unstructured.Unstructured, version string) {
	if k.resource.Kind == dockyards.HTTPRoutes.Kind {
		return v.in.HTTPRoutes, v.in.HTTPRouteVersion
	}
	return v.in.TLSRoutes, v.in.TLSRouteVersion
}

// route brings the routes from the Gateway to the mirrors.
func (v *view) route() {
	for _, k := range routeKinds {
		live, version := v.routesOf(k)
		names := v.routeNames(k)
		for _, w := range v.ways {
			if !w.has(k.port, corev1.ProtocolTCP) {
				continue
			}
			v.said.routed = true
			if version == "" && len(names[w]) > 0 {
				v.fail(fmt.Sprintf("the API server serves no %ss: install those of Gateway API", k.resource.Kind))
				break
			}
			for i, name := range names[w] {
				hosts := v.zones.hostnames[i*hostnamesPerRoute : min((i+1)*hostnamesPerRoute, len(v.zones.hostnames))]
				v.bring(k.resource, find(live, v.namespace, name), version, name, "the Cluster's hostnames lead to the Service",
					func(live *unstructured.Unstructured) bool { return v.sameRoute(live, k, w.name, hosts) },
					func(obj *unstructured.Unstructured) { v.setRoute(obj, k, w.name, hosts) })
			}
		}
	}
}

func (v *view) fail(text string) {
	if !slices.Contains(v.said.errors, text) {
		v.said.errors = append(v.said.errors, text)
	}
}

// routeNames are the names of the routes of one kind to each mirror: the first one's
// is the mirror's, further ones have a number. A name that another mirror has is not
// taken.
func (v *view) routeNames(k routeKind) map[*way][]string {
	names, taken := map[*way][]string{}, map[string]bool{}
	for _, w := range v.ways {
		taken[w.name] = true
	}
	count := (len(v.zones.hostnames) + hostnamesPerRoute - 1) / hostnamesPerRoute
	for _, w := range v.ways {
		for i := range count {
			name := w.name
			if i > 0 && w.has(k.port, corev1.ProtocolTCP) {
				name = v.furtherName(w, i+1, taken)
				taken[name] = true
			}
			names[w] = append(names[w], name)
		}
	}
	return names
}

func (v *view) furtherName(w *way, number int, taken map[string]bool) string {
	name := w.name + "-" + strconv.Itoa(number)
	for i := 0; taken[name]; i++ {
		name = w.name + "-" + strconv.Itoa(number) + "-" + hash(w.service, digits[min(i, len(digits)-1)])
	}
	return name
}

func (v *view) parents() []any {
	return []any{map[string]any{"name": v.in.Settings.GatewayName, "namespace": v.in.Settings.GatewayNamespace}}
}

func rules(backend string, port int64) []any {
	return []any{map[string]any{"backendRefs": []any{map[string]any{"name": backend, "port": port}}}}
}

// setRoute writes what a route is into one, where it says something else.
func (v *view) setRoute(obj *unstructured.Unstructured, k routeKind, backend string, hosts []string) {
	spec := specOf(obj)
	if have, _ := spec["parentRefs"].([]any); !same(plainParents(have, v.namespace), v.parents()) {
		spec["parentRefs"] = v.parents()
	}
	if have, _ := spec["rules"].([]any); !same(plainRules(have, k.matched, v.namespace), rules(backend, k.port)) {
		spec["rules"] = rules(backend, k.port)
	}
	if !equalSets(hostnames(obj), hosts) {
		list := make([]any, 0, len(hosts))
		for _, host := range hosts {
			list = append(list, host)
		}
		spec["hostnames"] = list
	}
}

// sameRoute tells whether a route says what is wanted.
func (v *view) sameRoute(live *unstructured.Unstructured, k routeKind, backend string, hosts []string) bool {
	wanted := live.DeepCopy()
	v.setRoute(wanted, k, backend, hosts)
	return same(live.Object, wanted.Object)
}

// plainParents are references without what the API server has added. A reference
// without a namespace is to the route's own.
func plainParents(refs []any, namespace string) []any {
	return plain(refs, map[string]any{"group": dockyards.Gateways.Group, "kind": dockyards.Gateways.Kind}, map[string]any{"namespace": namespace})
}

// plainRules are rules without what the API server has added. A rule may have a
// name.
func plainRules(have []any, matched bool, namespace string) []any {
	added := []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}}
	list := make([]any, 0, len(have))
	for _, item := range have {
		rule, _ := item.(map[string]any)
		out := map[string]any{}
		for field, value := range rule {
			backends, _ := value.([]any)
			switch {
			case field == "name", field == "matches" && matched && same(value, added):
			case field == "backendRefs":
				out[field] = without(plain(backends, map[string]any{"group": "", "kind": dockyards.Services.Kind, "weight": int64(1)}, nil), "namespace", namespace)
			default:
				out[field] = value
			}
		}
		list = append(list, out)
	}
	return list
}

// plain are the entries of a list without fields that have their default, and with
// fields that are absent because they would have it.
func plain(list []any, defaults, implied map[string]any) []any {
	out := make([]any, 0, len(list))
	for _, item := range list {
		entry, _ := item.(map[string]any)
		short := map[string]any{}
		for field, value := range entry {
			if standard, known := defaults[field]; !known || value != standard {
				short[field] = value
			}
		}
		for field, value := range implied {
			if _, set := short[field]; !set {
				short[field] = value
			}
		}
		out = append(out, short)
	}
	return out
}

// without drops a field from entries that have it with a value.
func without(list []any, field string, value any) []any {
	for _, item := range list {
		if entry, _ := item.(map[string]any); entry[field] == value {
			delete(entry, field)
		}
	}
	return list
}

// hostnames are those of a route.
func hostnames(obj *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedStringSlice(obj.Object, "spec", "hostnames")
	return list
}

// equalSets tells whether two lists of hostnames have the same ones. No hostname at
// all stands for every one, and equals nothing.
func equalSets(a, b []string) bool {
	return len(a) > 0 && len(a) == len(b) && !gone(a, b) && !gone(b, a)
}

// gone tells whether any of the first is not among the second.
func gone(a, b []string) bool {
	return slices.ContainsFunc(a, func(host string) bool { return !slices.Contains(b, host) })
}

func same(a, b any) bool { return reflect.DeepEqual(a, b) }
