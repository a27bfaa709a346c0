package decide

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// recorded is the hostname that the route's host was made from, and the host that
// it leads to. Nothing is believed of a route that is not the Cluster's.
func (v *view) recorded() (hostname, leads string) {
	route := v.in.Route
	if route == nil || relate(route, v.in.Cluster) != mine {
		return "", ""
	}
	if hosts, _, _ := unstructured.NestedStringSlice(route.Object, "spec", "hostnames"); len(hosts) == 1 {
		leads = hosts[0]
	}
	return route.GetAnnotations()[v1alpha3.AnnotationRolloutInputs], leads
}

// decideRoute brings the TLSRoute to the host in force.
func (v *view) decideRoute() {
	route, res := v.in.Route, dockyards.TLSRoutes
	switch {
	case v.endpoint.drop:
		if route != nil && relate(route, v.in.Cluster) == mine && !dockyards.Going(route) {
			v.removals = append(v.removals, plan.Entry{Verb: plan.Delete, Resource: res, Base: route, Reason: "another Cluster has the host"})
		}
	case v.endpoint.host == "":
	case v.in.RouteVersion == "":
		v.route = waiting(v1alpha3.ReasonWaitingForGateway, "the API server serves no TLSRoutes: install those of Gateway API")
	case route == nil:
		v.writes = append(v.writes, plan.Entry{Verb: plan.Create, Resource: res, Object: v.newRoute(), Reason: "the API endpoint needs a route"})
	case dockyards.Going(route):
		v.route = going(res, route)
	default:
		v.updateRoute(route)
	}
}

func (v *view) newRoute() *unstructured.Unstructured {
	route := &unstructured.Unstructured{Object: map[string]any{}}
	route.SetAPIVersion(dockyards.TLSRoutes.Group + "/" + v.in.RouteVersion)
	route.SetKind(dockyards.TLSRoutes.Kind)
	route.SetNamespace(v.namespace)
	route.SetName(v.name)
	v.markRoute(route)
	route.Object["spec"] = map[string]any{"parentRefs": v.parents(), "hostnames": []any{v.endpoint.host}, "rules": v.rules()}
	return route
}

func (v *view) markRoute(route *unstructured.Unstructured) {
	v.own(route)
	if v.endpoint.record != "" {
		dockyards.SetAnnotation(route, v1alpha3.AnnotationRolloutInputs, v.endpoint.record)
	}
}

// updateRoute changes what differs in meaning, and leaves the rest byte for byte.
func (v *view) updateRoute(route *unstructured.Unstructured) {
	changed := route.DeepCopy()
	spec, _ := changed.Object["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
	}
	same := true
	set := func(field string, value []any, equal func(have any) bool) {
		if !equal(spec[field]) {
			spec[field], same = value, false
		}
	}
	set("hostnames", []any{v.endpoint.host}, func(have any) bool {
		hosts, _ := have.([]any)
		return len(hosts) == 1 && hosts[0] == v.endpoint.host
	})
	set("parentRefs", v.parents(), v.sameParents)
	set("rules", v.rules(), v.sameRules)
	changed.Object["spec"] = spec
	same = same && route.GetLabels()[v1alpha3.LabelClusterName] == v.name
	switch relate(route, v.in.Cluster) {
	case foreign:
		v.route = conflict(dockyards.TLSRoutes, route)
		return
	case unclaimed:
		if !same {
			v.route = conflict(dockyards.TLSRoutes, route)
			return
		}
	case mine:
	}
	v.markRoute(changed)
	v.writes = append(v.writes, plan.Entry{
		Verb: plan.Patch, Resource: dockyards.TLSRoutes, Base: route, Object: changed, Reason: "the route leads to the API endpoint's host",
	})
}

func (v *view) parents() []any {
	return []any{map[string]any{"name": v.in.Settings.GatewayName, "namespace": v.in.Settings.GatewayNamespace}}
}

func (v *view) rules() []any {
	return []any{map[string]any{"backendRefs": []any{map[string]any{"name": v.name + "-lb", "port": int64(apiPort)}}}}
}

// sameParents tells whether the one parent is the Gateway, as the API server has
// completed it.
func (v *view) sameParents(have any) bool {
	s, parent := v.in.Settings, only(have)
	if _, named := parent["namespace"]; !named && s.GatewayNamespace != v.namespace {
		return false
	}
	return alike(parent, map[string]any{
		"group": dockyards.Gateways.Group, "kind": dockyards.Gateways.Kind, "namespace": s.GatewayNamespace, "name": s.GatewayName,
	})
}

// sameRules tells whether the one rule has the one backend.
func (v *view) sameRules(have any) bool {
	rule := only(have)
	if rule == nil {
		return false
	}
	for field := range rule {
		if field != "backendRefs" && field != "name" {
			return false
		}
	}
	return alike(only(rule["backendRefs"]), map[string]any{
		"group": "", "kind": "Service", "namespace": v.namespace, "name": v.name + "-lb", "port": int64(apiPort), "weight": int64(1),
	})
}

// only is the one entry of a list; nil if there are others, or none.
func only(list any) map[string]any {
	entries, _ := list.([]any)
	if len(entries) != 1 {
		return nil
	}
	entry, _ := entries[0].(map[string]any)
	return entry
}

// alike tells whether a reference says what its completed form says. Only the name
// and the port have to be there: the rest has defaults.
func alike(have, complete map[string]any) bool {
	if have == nil {
		return false
	}
	for field, value := range have {
		if want, known := complete[field]; !known || want != value {
			return false
		}
	}
	_, named := have["name"]
	_, ported := have["port"]
	_, wanted := complete["port"]
	return named && ported == wanted
}
