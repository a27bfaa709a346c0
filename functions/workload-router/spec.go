package workloadrouter

import (
	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/setting"
)

// Name is the function's name.
const Name = "workload-router"

// concurrency is how many events one process takes at once: each spends its
// time waiting for API servers, and may hold an answer of the largest size.
const concurrency = 10

// Spec declares the function.
func Spec(settings Settings) reconcile.Spec {
	spec := reconcile.Spec{
		Name:             Name,
		Summary:          "makes the load balancers of workload clusters reachable through the shared Gateway",
		TakesOver:        "dockyards-kubevirt: DockyardsWorkloadReconciler",
		Reconciles:       dockyards.Workloads,
		Settings:         dockyards.SettingsConfigMap,
		Watches:          watches(settings),
		Grants:           grants(settings),
		TargetGrants:     targetGrants(),
		Connected:        mapper{settings: settings}.connected,
		ConcludesOutages: true,
		Concurrency:      concurrency,
		// What stands in an answer takes about twenty times its size, and fifty reconciles
		// may each have a page of every list in hand.
		Memory: "512Mi",
	}
	spec.Env = append(setting.Docs(dockyards.Variables(), shared...), setting.Docs(variables)...)
	return spec
}

// watches: Gateway API and Cluster API may be absent or come in another version, so
// the adapter watches them; and the one config map. Secrets are those that Cluster
// API has labelled. Mirrors carry no label, as upstream's do not, but Workloads own
// them; that somebody else's Service frees its name is noticed by the resync.
func watches(settings Settings) []reconcile.Watch {
	m := mapper{settings: settings}
	return []reconcile.Watch{
		{Resource: dockyards.Workloads, Keys: m.ofWorkload},
		{Resource: dockyards.Clusters, Keys: m.ofCluster},
		{Resource: dockyards.CAPIClusters, Adapter: true, Keys: m.ofCAPICluster},
		{Resource: dockyards.Gateways, Adapter: true, Keys: m.ofGateway},
		{Resource: kind.ConfigMaps, Adapter: true, Namespace: settings.ConfigMapNamespace, Names: []string{settings.ConfigMapName}, Keys: m.ofConfigMap},
		{Resource: kind.Secrets, Selector: dockyards.LabelCAPIClusterName, Keys: m.ofSecret},
		{Resource: dockyards.Services, Adapter: true, Owner: dockyards.Workloads, Keys: m.child(dockyards.Services)},
		{Resource: dockyards.HTTPRoutes, Adapter: true, Keys: m.child(dockyards.HTTPRoutes)},
		{Resource: dockyards.TLSRoutes, Adapter: true, Keys: m.child(dockyards.TLSRoutes)},
		{
			Resource: dockyards.Services, Selector: v1alpha3.LabelWorkloadName, Remote: true, Provider: reconcile.ProviderClusterAPI,
			Keys: m.ofRemoteService,
		},
	}
}

func grants(settings Settings) []reconcile.Grant {
	written := []string{"get", "list", "create", "patch", "delete"}
	return []reconcile.Grant{
		{Resource: dockyards.Workloads, Verbs: []string{"get", "list"}},
		{Resource: dockyards.Workloads, Subresource: "status", Verbs: []string{"patch"}},
		{Resource: dockyards.Clusters, Verbs: []string{"list"}},
		{Resource: dockyards.CAPIClusters, Verbs: []string{"get"}},
		{Resource: dockyards.Gateways, Verbs: []string{"get"}},
		{Resource: dockyards.Services, Verbs: written},
		{Resource: dockyards.HTTPRoutes, Verbs: written},
		{Resource: dockyards.TLSRoutes, Verbs: written},
		{Resource: kind.Secrets, Verbs: []string{"get"}},
		{Resource: kind.ConfigMaps, Verbs: []string{"get"}, Names: []string{settings.ConfigMapName}},
		{Resource: kind.Events, Verbs: []string{"create"}},
	}
}

func targetGrants() []reconcile.Grant {
	const why = "it is used on workload clusters only; test/dockyards/router goes there with these rights alone"
	return []reconcile.Grant{
		{Resource: dockyards.Services, Verbs: []string{"list"}, Provider: reconcile.ProviderClusterAPI, Implied: why},
		{Resource: dockyards.Services, Subresource: "status", Verbs: []string{"patch"}, Provider: reconcile.ProviderClusterAPI, Implied: why},
	}
}
