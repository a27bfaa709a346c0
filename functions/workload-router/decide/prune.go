package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// prune takes away what the Workload has and no Service of the workload cluster
// wants any more. After an incomplete list nobody knows what is not wanted.
func (v *view) prune() {
	for _, k := range routeKinds {
		live, _ := v.routesOf(k)
		for _, route := range v.leftovers(k.resource, live) {
			// A route that catches what is not its own goes at once, whatever else
			// fails; so does one for which no hostname is left.
			greedy := gone(hostnames(route), v.zones.hostnames) || len(hostnames(route)) == 0
			entry := plan.Entry{Verb: plan.Delete, Resource: k.resource, Base: route, Reason: "no Service, port or hostname wants the route"}
			switch {
			case greedy && (!v.in.Remote.Incomplete || !slices.ContainsFunc(hostnames(route), v.allowed)):
				v.revocations = append(v.revocations, entry)
			case greedy:
				v.giveUp(k.resource, route, func(host string) bool { return !v.allowed(host) })
			case !v.in.Remote.Incomplete:
				v.removals = append(v.removals, entry)
			}
		}
	}
	if v.in.Remote.Incomplete {
		return
	}
	for _, mirror := range v.leftovers(dockyards.Services, v.in.Services) {
		v.removals = append(v.removals, plan.Entry{Verb: plan.Delete, Resource: dockyards.Services, Base: mirror, Reason: "no Service of the workload cluster wants the mirror"})
	}
}

func (v *view) allowed(host string) bool { return slices.Contains(v.zones.hostnames, host) }

// leftovers are the Workload's objects of a kind that are not wanted, sorted.
func (v *view) leftovers(res kind.Resource, live []unstructured.Unstructured) []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for i := range live {
		obj := &live[i]
		if v.alone(obj) && !v.wanted[res.Kind][obj.GetName()] && !dockyards.Going(obj) {
			list = append(list, obj)
		}
	}
	slices.SortFunc(list, byName)
	return list
}

// giveUpOthers takes from the Workload's routes the hostnames that are others' by
// now. It is all that is done while the workload cluster cannot be asked: a tenant
// who keeps the cluster from answering must not thereby keep a hostname.
func (v *view) giveUpOthers() {
	for _, k := range routeKinds {
		live, _ := v.routesOf(k)
		for _, route := range v.leftovers(k.resource, live) {
			if slices.ContainsFunc(hostnames(route), v.others) {
				v.giveUp(k.resource, route, v.others)
			}
		}
	}
}

// giveUp takes hostnames from a route; without any it would catch all, so it goes.
func (v *view) giveUp(res kind.Resource, route *unstructured.Unstructured, given func(host string) bool) {
	changed := route.DeepCopy()
	left := slices.DeleteFunc(hostnames(route), given)
	if len(left) == 0 {
		v.revocations = append(v.revocations, plan.Entry{Verb: plan.Delete, Resource: res, Base: route, Reason: "its hostnames belong to others"})
		return
	}
	list := make([]any, 0, len(left))
	for _, host := range left {
		list = append(list, host)
	}
	specOf(changed)["hostnames"] = list
	v.change(res, route, changed, "hostnames that belong to others are given up")
}
