package adapter

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// ProviderKubevirtConfig are the target clusters of Viti Stack: one KubevirtConfig
// each, which names the Secret with the kubeconfig. The cluster is called like the
// KubevirtConfig.
const ProviderKubevirtConfig = "KubevirtConfig"

var kubevirtConfigs = provider{
	resource: Resource{
		Group: "vitistack.io", Versions: []string{"v1alpha1"}, Resource: "kubevirtconfigs", Kind: "KubevirtConfig",
	},
	namespace: "default",
	key:       "kubeconfig",
	locate:    locateKubevirtConfig,
	label:     LabelWatch,
}

// locateKubevirtConfig reads a KubevirtConfig. Installations differ in whether
// they have a namespace; where they have, only those of the configured one count.
// One that is being deleted still counts: what runs on its cluster is still to be
// looked after.
func locateKubevirtConfig(settings Remote, config *unstructured.Unstructured) (location, bool) {
	namespace, name := config.GetNamespace(), config.GetName()
	if namespace != "" && namespace != settings.Namespace {
		return location{}, false
	}
	at := location{cluster: name, namespace: settings.Namespace, key: settings.Key}
	// A field of another type counts as absent: the definition forbids it.
	at.secret, _, _ = unstructured.NestedString(config.Object, "spec", "kubeconfigSecretRef")
	if given, _, _ := unstructured.NestedString(config.Object, "spec", "secretNamespace"); given != "" {
		at.namespace = given
	}
	return at, true
}
