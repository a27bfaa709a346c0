package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

func TestFunctionsShareTheirWatches(t *testing.T) {
	maps := func(selector, namespace string, names ...string) reconcile.Watch {
		return reconcile.Watch{Resource: kind.ConfigMaps, Selector: selector, Namespace: namespace, Names: names}
	}
	through := func(watch reconcile.Watch) reconcile.Watch { watch.Adapter = true; return watch }
	cases := map[string]struct {
		reason     string
		have, want []reconcile.Watch
	}{
		"Same": {
			reason: "two functions with one wish need one watch",
			have:   []reconcile.Watch{maps("a", ""), maps("a", "")},
			want:   []reconcile.Watch{maps("a", "")},
		},
		"Selectors": {
			reason: "different selections are different watches",
			have:   []reconcile.Watch{maps("b", ""), maps("a", "")},
			want:   []reconcile.Watch{maps("a", ""), maps("b", "")},
		},
		"All": {
			reason: "who sees everything sees what the others want",
			have:   []reconcile.Watch{maps("b", ""), maps("", ""), maps("", "ns", "one")},
			want:   []reconcile.Watch{maps("", "")},
		},
		"Limited": {
			reason: "an ApiServerSource cannot be limited to a namespace, and the others are not moved because of that",
			have:   []reconcile.Watch{maps("a", ""), through(maps("", "ns"))},
			want:   []reconcile.Watch{through(maps("", "ns")), maps("a", "")},
		},
		"Namespace": {
			reason: "a whole namespace holds the names in it",
			have:   []reconcile.Watch{maps("", "ns", "one"), maps("", "ns"), maps("", "other", "one")},
			want:   []reconcile.Watch{through(maps("", "ns")), through(maps("", "other", "one"))},
		},
		"Names": {
			reason: "names are a set",
			have:   []reconcile.Watch{maps("", "ns", "two", "one", "two"), maps("", "ns", "one")},
			want:   []reconcile.Watch{through(maps("", "ns", "one", "two"))},
		},
		"Owner": {
			reason: "an ApiServerSource heeds no owner but the one in control",
			have:   []reconcile.Watch{{Resource: kind.ConfigMaps, Owner: kind.Secrets}, maps("a", "")},
			want:   []reconcile.Watch{{Resource: kind.ConfigMaps, Owner: kind.Secrets, Adapter: true}, maps("a", "")},
		},
		"Fields": {
			reason: "whoever wants to see every change sees those of some fields too",
			have: []reconcile.Watch{
				{Resource: kind.Secrets, Fields: []string{"/data"}},
				{Resource: kind.ConfigMaps, Fields: []string{"/data"}},
				maps("", ""),
			},
			want: []reconcile.Watch{maps("", ""), {Resource: kind.Secrets, Fields: []string{"/data"}, Adapter: true}},
		},
		"Adapter": {
			reason: "a kind that needs the adapter needs it for everyone",
			have:   []reconcile.Watch{maps("a", ""), through(maps("b", ""))},
			want:   []reconcile.Watch{through(maps("a", "")), through(maps("b", ""))},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			specs := make([]reconcile.Spec, len(tc.have))
			for i, watch := range tc.have {
				specs[i].Watches = []reconcile.Watch{watch}
			}
			if diff := cmp.Diff(tc.want, watched(specs)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestATriggerLetsThroughWhatItsFunctionWatches(t *testing.T) {
	routes := kind.Resource{Group: "cluster.x-k8s.io", Versions: []string{"v1beta2", "v1beta1"}, Kind: "Cluster", Plural: "clusters"}
	spec := reconcile.Spec{Watches: []reconcile.Watch{
		{Resource: routes},
		{Resource: kind.ConfigMaps, Namespace: "ns", Names: []string{"one", "two"}},
		{Resource: kind.Secrets, Selector: "a"},
		{Resource: kind.Secrets, Selector: "b"},
	}}
	want := []object{
		{"all": []any{
			object{"exact": object{"kind": "Cluster"}},
			object{"prefix": object{"apiversion": "cluster.x-k8s.io/"}},
		}},
		{"exact": object{"kind": "ConfigMap", "apiversion": "v1", "namespace": "ns", "name": "one"}},
		{"exact": object{"kind": "ConfigMap", "apiversion": "v1", "namespace": "ns", "name": "two"}},
		{"exact": object{"kind": "Secret", "apiversion": "v1"}},
	}
	if diff := cmp.Diff(want, kinds(spec)); diff != "" {
		t.Errorf("the group tells kinds of one name apart, limits keep others out (-want +got):\n%s", diff)
	}
}

func TestOnlyWhatIsRemoteIsWatchedThere(t *testing.T) {
	specs := []reconcile.Spec{
		{Watches: []reconcile.Watch{{Resource: kind.PersistentVolumeClaims, Selector: "a", Remote: true}, {Resource: kind.Secrets}}},
		{Watches: []reconcile.Watch{{Resource: kind.PersistentVolumeClaims}}},
		{Watches: []reconcile.Watch{{Resource: kind.Namespaces, Selector: "b", Remote: true, Provider: reconcile.ProviderClusterAPI}}},
	}
	want := []any{
		object{
			"provider": "KubevirtConfig", "namespace": "default", "key": "kubeconfig",
			"resources": []any{object{
				"kind": "PersistentVolumeClaim", "mode": "Reference", "resource": "persistentvolumeclaims", "selector": "a", "versions": []string{"v1"},
			}},
		},
		object{
			"provider": "capi", "key": "value",
			"resources": []any{object{
				"kind": "Namespace", "mode": "Reference", "resource": "namespaces", "selector": "b", "versions": []string{"v1"},
			}},
		},
	}
	if diff := cmp.Diff(want, remotes(specs)); diff != "" {
		t.Errorf("a watch of the management cluster does not widen one on targets (-want +got):\n%s", diff)
	}
	if got := watched(specs[2:]); got != nil {
		t.Errorf("what is watched on clusters of a provider is not watched here: %v", got)
	}
	if got := remotes(specs[1:2]); got != nil {
		t.Errorf("without remote watches there is no provider: %v", got)
	}
}
