package adapter

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ProviderClusterAPI are the workload clusters of Cluster API: one Cluster each, whose
// kubeconfig Cluster API keeps in the Secret <cluster>-kubeconfig beside it. A cluster
// is called "namespace/name" after its Cluster, which no KubevirtConfig can be called.
const ProviderClusterAPI = "capi"

var clusterAPI = provider{
	resource: Resource{
		Group: "cluster.x-k8s.io", Versions: []string{"v1beta2", "v1beta1"}, Resource: "clusters", Kind: "Cluster",
	},
	key:    "value",
	locate: locateCluster,
	keep:   keepCluster,
	label:  "cluster.x-k8s.io/cluster-name", everywhere: true,
	foreign: true,
}

// locateCluster reads a Cluster. Before its control plane is initialized there is
// nothing to reach; when it is being deleted, nothing there matters any more.
func locateCluster(settings Remote, cluster *unstructured.Unstructured) (location, bool) {
	namespace, name := cluster.GetNamespace(), cluster.GetName()
	if settings.Namespace != "" && namespace != settings.Namespace {
		return location{}, false
	}
	if cluster.GetDeletionTimestamp() != nil || !initialized(cluster) {
		return location{}, false
	}
	return location{cluster: namespace + "/" + name, namespace: namespace, secret: name + "-kubeconfig", key: settings.Key}, true
}

const conditionInitialized = "ControlPlaneInitialized"

// initialized tells whether a Cluster's control plane has been up. That is said in
// different places, by version; once it was, it stays so, and one place is enough.
func initialized(cluster *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"initialization", "controlPlaneInitialized"}, {"controlPlaneReady"}} {
		if is, _, _ := unstructured.NestedBool(cluster.Object, append([]string{"status"}, path...)...); is {
			return true
		}
	}
	for _, path := range [][]string{{"conditions"}, {"v1beta2", "conditions"}, {"deprecated", "v1beta1", "conditions"}} {
		value, _, _ := unstructured.NestedFieldNoCopy(cluster.Object, append([]string{"status"}, path...)...)
		conditions, _ := value.([]any)
		if slices.ContainsFunc(conditions, func(item any) bool {
			c, _ := item.(map[string]any)
			return c["type"] == conditionInitialized && c["status"] == "True"
		}) {
			return true
		}
	}
	return false
}

// keepCluster keeps of a Cluster what locateCluster reads.
func keepCluster(cluster *unstructured.Unstructured) map[string]any {
	return map[string]any{"status": map[string]any{
		"initialization": map[string]any{"controlPlaneInitialized": initialized(cluster)},
	}}
}
