package clusteranchor

import (
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/setting"
)

// Name is the function's name.
const Name = "cluster-anchor"

// concurrency is how many events one process takes at once: each spends its
// time waiting for the API server.
const concurrency = 20

// settingsInUse are the settings of all Dockyards functions that this one heeds.
var settingsInUse = []string{"GATEWAY_NAME", "GATEWAY_NAMESPACE", "CONFIG_MAP", "DOCKYARDS_NAMESPACE", "WORKLOAD_INGRESS"}

// Spec declares the function.
func Spec(settings dockyards.Settings) reconcile.Spec {
	spec := reconcile.Spec{
		Name:             Name,
		Summary:          "gives a Cluster its API endpoint, route, ingress Workload and KubevirtCluster",
		TakesOver:        "dockyards-kubevirt: DockyardsClusterReconciler, ClusterAPIClusterReconciler",
		Reconciles:       dockyards.Clusters,
		Settings:         dockyards.SettingsConfigMap,
		Watches:          watches(settings),
		Grants:           grants(settings),
		ConcludesOutages: true,
		Concurrency:      concurrency,
	}
	spec.Env = setting.Docs(dockyards.Variables(), settingsInUse...)
	return spec
}

// watches: Gateway API, Cluster API and its provider may be absent or come in
// another version, so the adapter watches them; and the one config map.
func watches(settings dockyards.Settings) []reconcile.Watch {
	m := mapper{settings: settings}
	return []reconcile.Watch{
		{Resource: dockyards.Clusters, Keys: m.ofCluster},
		{Resource: dockyards.Workloads, Keys: m.ofWorkload},
		{Resource: dockyards.CAPIClusters, Adapter: true, Keys: m.ofInfrastructure},
		{Resource: dockyards.KubevirtClusters, Adapter: true, Keys: m.ofInfrastructure},
		{Resource: dockyards.TLSRoutes, Adapter: true},
		{Resource: dockyards.Gateways, Adapter: true, Keys: m.ofGateway},
		{Resource: kind.ConfigMaps, Adapter: true, Namespace: settings.ConfigMapNamespace, Keys: m.ofConfigMap},
	}
}

func grants(settings dockyards.Settings) []reconcile.Grant {
	return []reconcile.Grant{
		{Resource: dockyards.Clusters, Verbs: []string{"get", "list"}},
		{Resource: dockyards.Clusters, Subresource: "status", Verbs: []string{"patch"}},
		{Resource: dockyards.Workloads, Verbs: []string{"get", "create", "patch", "delete"}},
		{Resource: dockyards.TLSRoutes, Verbs: []string{"get", "create", "patch", "delete"}},
		{Resource: dockyards.CAPIClusters, Verbs: []string{"get", "list", "patch"}},
		// Deleted is only what this function has just made while its Cluster went.
		{Resource: dockyards.KubevirtClusters, Verbs: []string{"get", "create", "patch", "delete"}},
		{Resource: dockyards.Gateways, Verbs: []string{"get"}},
		{Resource: kind.ConfigMaps, Verbs: []string{"get"}, Names: []string{settings.ConfigMapName}},
		{Resource: kind.Events, Verbs: []string{"create"}},
	}
}
