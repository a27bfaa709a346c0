package main

import (
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

const (
	// configsNamespace is where the Secrets of KubevirtConfigs are unless they say
	// otherwise: the standard of the setting KUBEVIRT_CONFIGS_NAMESPACE.
	configsNamespace = "default"
	configsProvider  = "KubevirtConfig"
	targetAccnt      = "slipway"
)

// Resources that the adapter finds remote clusters by.
var (
	kubevirtConfigs = kind.Resource{
		Group: "vitistack.io", Versions: []string{"v1alpha1"}, Kind: configsProvider, Plural: "kubevirtconfigs",
	}
	capiClusters = kind.Resource{
		Group: "cluster.x-k8s.io", Versions: []string{"v1beta2", "v1beta1"}, Kind: "Cluster", Plural: "clusters",
	}
)

// adapter is the Deployment of sources/adapter with the list of the kinds that it
// watches, on the management cluster and on target clusters.
func adapter(specs []reconcile.Spec) []object {
	var here []any
	for _, watch := range watched(specs) {
		if watch.Adapter {
			here = append(here, entries(watch)...)
		}
	}
	config := object{"sink": brokerAddress, "resources": here}
	if remotes := remotes(specs); len(remotes) > 0 {
		config["remotes"] = remotes
	}
	// Maps of strings and lists always encode.
	text, _ := yaml.Marshal(config)
	return []object{
		{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(adapterName),
			"data": object{"config.yaml": string(text)},
		},
		adapterDeployment(),
	}
}

// remotes are the providers of remote clusters, with what is watched there.
func remotes(specs []reconcile.Spec) []any {
	var out []any
	for _, remote := range []struct {
		provider string
		config   object
	}{
		{"", object{"provider": configsProvider, "namespace": configsNamespace, "key": "kubeconfig"}},
		{reconcile.ProviderClusterAPI, object{"provider": reconcile.ProviderClusterAPI, "key": "value"}},
	} {
		var there []any
		for _, watch := range watchedRemotely(specs, remote.provider) {
			there = append(there, entries(watch)...)
		}
		if len(there) > 0 {
			remote.config["resources"] = there
			out = append(out, remote.config)
		}
	}
	return out
}

// entries are a watch as the adapter's configuration has it: one for each name.
func entries(watch reconcile.Watch) []any {
	var out []any
	for _, limit := range limits(watch) {
		entry := limit
		entry["versions"], entry["resource"] = watch.Resource.Versions, watch.Resource.Plural
		entry["kind"], entry["mode"] = watch.Resource.Kind, "Reference"
		if watch.Resource.Group != "" {
			entry["group"] = watch.Resource.Group
		}
		if watch.Selector != "" {
			entry["selector"] = watch.Selector
		}
		if watch.Owner.Kind != "" {
			entry["owner"] = watch.Owner.Kind + "." + watch.Owner.Group
		}
		if len(watch.Fields) > 0 {
			entry["fields"] = watch.Fields
		}
		out = append(out, entry)
	}
	return out
}

// adapterAccount may watch what the adapter watches, follow the definitions of the
// kinds that may come and go, and read the Secrets of remote clusters by name.
//
// It watches the names of Secrets, to notice a changed kubeconfig at once: those of
// KubevirtConfigs in one namespace, elsewhere such a change is noticed a little later;
// those of Cluster API's clusters, which lie beside them, wherever they are.
func adapterAccount(specs []reconcile.Spec) []object {
	grants := []reconcile.Grant{{Resource: kind.CRDs, Verbs: []string{"list", "watch"}}}
	for _, watch := range watched(specs) {
		if watch.Adapter {
			grants = append(grants, reconcile.Grant{Resource: watch.Resource, Verbs: []string{"list", "watch"}, Names: watch.Names})
		}
	}
	account := object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(adapterName)}
	var inNamespace []object
	if len(watchedRemotely(specs, "")) > 0 {
		grants = append(
			grants,
			reconcile.Grant{Resource: kubevirtConfigs, Verbs: []string{"list", "watch"}},
			reconcile.Grant{Resource: kind.Secrets, Verbs: []string{"get"}},
		)
		inNamespace = within(configsNamespace, role("slipway-"+adapterName+"-secrets", adapterName,
			[]reconcile.Grant{{Resource: kind.Secrets, Verbs: []string{"list", "watch"}}}))
	}
	if len(watchedRemotely(specs, reconcile.ProviderClusterAPI)) > 0 {
		grants = append(
			grants,
			reconcile.Grant{Resource: capiClusters, Verbs: []string{"list", "watch"}},
			reconcile.Grant{Resource: kind.Secrets, Verbs: []string{"get", "list", "watch"}},
		)
	}
	return append(append([]object{account}, role("slipway-"+adapterName, adapterName, grants)...), inNamespace...)
}

// within limits a role and its binding to one namespace.
func within(namespace string, role []object) []object {
	for _, obj := range role {
		obj["metadata"].(object)["namespace"] = namespace
		switch obj["kind"] {
		case "ClusterRole":
			obj["kind"] = "Role"
		case "ClusterRoleBinding":
			obj["kind"] = "RoleBinding"
			obj["roleRef"].(object)["kind"] = "Role"
		}
	}
	return role
}

// targetAccount is what a target cluster needs: an account whose token goes into
// the kubeconfig of a KubevirtConfig, with what the functions do there, and what the
// adapter watches.
func targetAccount(specs []reconcile.Spec) []object {
	grants := []reconcile.Grant{{Resource: kind.CRDs, Verbs: []string{"list", "watch"}}}
	for _, spec := range specs {
		grants = append(grants, spec.GrantsFor("")...)
	}
	for _, watch := range watchedRemotely(specs, "") {
		grants = append(grants, reconcile.Grant{Resource: watch.Resource, Verbs: []string{"list", "watch"}, Names: watch.Names})
	}
	out := []object{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace, "labels": object{"app.kubernetes.io/part-of": "slipway"}}},
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(targetAccnt)},
	}
	return append(out, role("slipway-target", targetAccnt, grants)...)
}

func adapterDeployment() object {
	labels := object{"app.kubernetes.io/name": adapterName}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(adapterName),
		"spec": object{
			"replicas": 1, "selector": object{"matchLabels": labels},
			"template": object{
				"metadata": object{"labels": labels},
				"spec": object{
					"serviceAccountName": adapterName,
					"containers": []any{object{
						"name": adapterName, "image": images + "sources/adapter/cmd",
						"args":           []string{"--config=/etc/source-adapter/config.yaml", "--health-listen=:8081"},
						"volumeMounts":   []any{object{"name": "config", "mountPath": "/etc/source-adapter"}},
						"livenessProbe":  object{"httpGet": object{"path": "/healthz", "port": 8081}},
						"readinessProbe": object{"httpGet": object{"path": "/readyz", "port": 8081}},
						"resources": object{
							"requests": object{"cpu": "20m", "memory": "64Mi"}, "limits": object{"memory": "256Mi"},
						},
						"securityContext": restricted(),
					}},
					"volumes": []any{object{"name": "config", "configMap": object{"name": adapterName}}},
				},
			},
		},
	}
}
