package clustercheck

import (
	"github.com/slipway-dev/slipway/functions/cluster-check/decide"
	"github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/setting"
)

// Name is the function's name.
const Name = "cluster-check"

// concurrency is how many events one process takes at once: each spends its
// time waiting for API servers, but KubeVirt's definitions are large to decode.
const concurrency = 5

// Spec declares the function.
func Spec(settings Settings) reconcile.Spec {
	m := mapper{settings: settings.Settings}
	spec := reconcile.Spec{
		Name:       Name,
		Summary:    "checks the clusters that Machines run on and says on their KubevirtConfigs whether they can",
		TakesOver:  "Viti Stack kubevirt-operator",
		Reconciles: kinds.KubevirtConfigs,
		Watches: []reconcile.Watch{
			{Resource: kinds.KubevirtConfigs, Keys: m.ofConfig},
			{Resource: kind.Secrets, Selector: reconcile.LabelWatch, Keys: m.ofSecret},
		},
		Grants:       grants(),
		TargetGrants: targetGrants(),
		Connected:    m.connected,
		Concurrency:  concurrency,
	}
	spec.Env = setting.Docs(variables)
	return spec
}

func grants() []reconcile.Grant {
	return []reconcile.Grant{
		{Resource: kinds.KubevirtConfigs, Verbs: []string{"get", "list"}},
		{Resource: kinds.KubevirtConfigs, Subresource: "status", Verbs: []string{"patch"}},
		{Resource: kind.Secrets, Verbs: []string{"get"}},
		{Resource: kind.CRDs, Verbs: []string{"get"}, Names: names(decide.Expected())},
		{Resource: kind.Events, Verbs: []string{"create"}},
	}
}

// remoteOnly is why the rights on targets are not seen in use on the management
// cluster.
const remoteOnly = "the account in a KubevirtConfig's kubeconfig needs it on its own cluster; test/clustercheck takes it away there"

func targetGrants() []reconcile.Grant {
	return []reconcile.Grant{
		{Resource: kind.Namespaces, Verbs: []string{"list"}, Implied: remoteOnly},
		{Resource: kinds.KubeVirts, Verbs: []string{"list"}, Implied: remoteOnly},
		{Resource: kinds.Definitions, Verbs: []string{"get"}, Names: names(decide.Compared()), Implied: remoteOnly},
	}
}

func names(resources []kind.Resource) []string {
	list := make([]string, 0, len(resources))
	for _, res := range resources {
		list = append(list, res.String())
	}
	return list
}
