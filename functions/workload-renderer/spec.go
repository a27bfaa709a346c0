package workloadrenderer

import (
	"slices"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/functions/workload-renderer/kinds"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/render"
	"github.com/slipway-dev/slipway/shared/setting"
)

// Name is the function's name.
const Name = "workload-renderer"

// Upstream is the field manager of dockyards-flux2.
const Upstream = "dockyards-flux2"

// concurrency is how many events one process takes at once.
const concurrency = 20

// memory is for as many renders at once as there are workers by default, each at its
// limit, and the process itself.
const memory = "1Gi"

// Spec declares the function.
func Spec(settings Settings) reconcile.Spec {
	spec := reconcile.Spec{
		Name:         Name,
		Summary:      "renders a Workload through its template into Flux objects",
		TakesOver:    "dockyards-flux2",
		Reconciles:   dockyards.Workloads,
		Watches:      watches(settings),
		Grants:       grants(settings),
		Predecessors: []string{Upstream},
		Settings:     dockyards.SettingsConfigMap,
		Concurrency:  concurrency,
		Memory:       memory,
		// One render of a sample takes about 60 MiB beside what rests.
		MemoryRequested: "96Mi",
	}
	spec.Env = append(setting.Docs(dockyards.Variables(), shared...), setting.Docs(variables)...)
	return spec
}

// watches: Flux may be absent or come in other versions, so the adapter watches its
// kinds; of kinds that others use too, only labelled objects count.
func watches(settings Settings) []reconcile.Watch {
	all := []reconcile.Watch{
		{Resource: dockyards.Workloads},
		{Resource: kinds.WorkloadTemplates, Keys: ofTemplate},
		{Resource: dockyards.Clusters, Keys: ofCluster},
	}
	for _, res := range settings.Rules.Allowed {
		watch := reconcile.Watch{Resource: res, Keys: mapper{res: res, allowed: settings.Rules.Allowed}.ofChild}
		switch {
		case isFlux(res):
			watch.Adapter = true
		case res.Group != v1alpha3.GroupName:
			watch.Selector = v1alpha3.LabelWorkloadName
		}
		all = append(all, watch)
	}
	return all
}

func isFlux(res kind.Resource) bool { return render.IsSource(res) || render.IsRelease(res) }

func grants(settings Settings) []reconcile.Grant {
	all := []reconcile.Grant{
		{Resource: dockyards.Workloads, Verbs: []string{"get", "list", "patch"}},
		{Resource: dockyards.Workloads, Subresource: "status", Verbs: []string{"patch"}},
		{
			Resource: dockyards.Workloads, Subresource: "finalizers", Verbs: []string{"update"},
			Implied: "the owner references of what is applied block the Workload's deletion, which admission may ask this right for",
		},
		{Resource: kinds.WorkloadTemplates, Verbs: []string{"get"}},
		{Resource: dockyards.Clusters, Verbs: []string{"get"}},
		{Resource: kind.Events, Verbs: []string{"create"}},
	}
	if !slices.ContainsFunc(settings.Rules.Allowed, func(res kind.Resource) bool { return res.Kind == kind.ConfigMaps.Kind }) {
		all = append(all, reconcile.Grant{Resource: kind.ConfigMaps, Verbs: []string{"get"}, Names: []string{settings.ConfigMapName}})
	}
	for _, res := range settings.Rules.Allowed {
		verbs := []string{"get", "list", "create", "patch", "delete"}
		if !res.Namespaced {
			verbs = []string{"get", "create", "patch", "delete"}
		}
		all = append(all, reconcile.Grant{Resource: res, Verbs: verbs})
	}
	return all
}
