package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/shared/reconcile"
)

// watched is every watch of every function once, on the management cluster.
func watched(specs []reconcile.Spec) []reconcile.Watch {
	return collect(specs, func(watch reconcile.Watch) bool { return watch.Provider == "" })
}

// watchedRemotely is every watch of every function once, on the target clusters of
// a provider.
func watchedRemotely(specs []reconcile.Spec, provider string) []reconcile.Watch {
	return collect(specs, func(watch reconcile.Watch) bool { return watch.Remote && watch.Provider == provider })
}

// collect merges the watches of all functions that are wanted, sorted.
func collect(specs []reconcile.Spec, wanted func(reconcile.Watch) bool) []reconcile.Watch {
	byResource := map[string][]reconcile.Watch{}
	for _, spec := range specs {
		for _, watch := range spec.Watches {
			if wanted(watch) {
				name := watch.Resource.String()
				byResource[name] = append(byResource[name], watch)
			}
		}
	}
	var out []reconcile.Watch
	for _, same := range byResource {
		out = append(out, merge(same)...)
	}
	slices.SortFunc(out, compare)
	return out
}

// merge leaves of the watches of one resource those that are needed to see what
// all of them see: a watch that another one covers would only double its events.
// What one function needs through the adapter, because of what the kind is, all get
// through it; a watch of one namespace or name can go no other way.
func merge(same []reconcile.Watch) []reconcile.Watch {
	adapter := slices.ContainsFunc(same, func(watch reconcile.Watch) bool { return watch.Adapter && !limited(watch) })
	// Sorted and without repetitions, so that of two that cover each other the
	// first one stays.
	same = slices.Clone(same)
	for i := range same {
		same[i].Names = slices.Compact(slices.Sorted(slices.Values(same[i].Names)))
	}
	slices.SortStableFunc(same, compare)
	var out []reconcile.Watch
	for i, watch := range same {
		covered := slices.ContainsFunc(out, func(other reconcile.Watch) bool { return covers(other, watch) }) ||
			slices.ContainsFunc(same[i+1:], func(other reconcile.Watch) bool { return covers(other, watch) && !covers(watch, other) })
		if covered {
			continue
		}
		watch.Adapter = adapter || limited(watch)
		out = append(out, watch)
	}
	return out
}

// limited tells that an ApiServerSource, which is there for all namespaces, cannot
// carry the watch.
func limited(watch reconcile.Watch) bool {
	return watch.Namespace != "" || len(watch.Names) > 0 || watch.Owner.Kind != "" || len(watch.Fields) > 0
}

// covers tells that a sees every object that b sees.
func covers(a, b reconcile.Watch) bool {
	return (a.Selector == "" || a.Selector == b.Selector) &&
		(a.Namespace == "" || a.Namespace == b.Namespace) &&
		(a.Owner.Kind == "" || a.Owner.String() == b.Owner.String()) &&
		(len(a.Fields) == 0 || slices.Equal(a.Fields, b.Fields)) &&
		(len(a.Names) == 0 || len(b.Names) > 0 && !slices.ContainsFunc(b.Names, func(name string) bool { return !slices.Contains(a.Names, name) }))
}

func compare(a, b reconcile.Watch) int {
	return cmp.Or(
		strings.Compare(a.Resource.Group, b.Resource.Group), strings.Compare(a.Resource.Kind, b.Resource.Kind),
		strings.Compare(a.Selector, b.Selector), strings.Compare(a.Namespace, b.Namespace), slices.Compare(a.Names, b.Names),
		strings.Compare(a.Owner.Kind, b.Owner.Kind), strings.Compare(a.Owner.Group, b.Owner.Group),
		slices.Compare(a.Fields, b.Fields))
}
