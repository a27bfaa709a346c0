package dockyards

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// KubeconfigKey is the key of the kubeconfig in a workload cluster's Secret.
	KubeconfigKey = "value"
	// LabelCAPIClusterName is what Cluster API puts on the Secrets of a cluster.
	LabelCAPIClusterName = "cluster.x-k8s.io/cluster-name"

	kubeconfigSuffix = "-kubeconfig"
)

// KubeconfigSecret is the name of the Secret with a workload cluster's kubeconfig,
// in the namespace of its Cluster.
func KubeconfigSecret(cluster string) string { return cluster + kubeconfigSuffix }

// KubeconfigOf is the cluster whose kubeconfig a Secret of a name holds; ok is false
// for other Secrets.
func KubeconfigOf(secret string) (cluster string, ok bool) {
	cluster, ok = strings.CutSuffix(secret, kubeconfigSuffix)
	return cluster, ok && cluster != ""
}

// RemoteName is what a workload cluster is called among the remote clusters of a
// function, and in the extension "cluster" of events: "namespace/name" of its
// Cluster API Cluster. No name of an object holds a slash, so it is told from the
// clusters of KubevirtConfigs, which are called like these.
func RemoteName(namespace, name string) string { return namespace + "/" + name }

// ParseRemoteName reads what RemoteName has written; ok is false for the names of
// other remote clusters.
func ParseRemoteName(text string) (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(text, "/")
	ok = ok && len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
	if !ok {
		return "", "", false
	}
	return namespace, name, true
}
