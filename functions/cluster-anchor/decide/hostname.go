package decide

import (
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/shared/dockyards"
)

// label is the first label of a Cluster's host. Different Clusters can have the
// same one: a-b and c, a and b-c.
func label(namespace, name string) string { return namespace + "-" + name }

// host is a Cluster's host under a hostname, or why there can be none.
func host(namespace, name, hostname string) (string, error) {
	first := label(namespace, name)
	if len(first) > validation.DNS1123LabelMaxLength {
		return "", fmt.Errorf("%q is longer than %d characters: choose a shorter name for the Cluster", first, validation.DNS1123LabelMaxLength)
	}
	// A dot would make it two labels, of which the second is somebody else's to give.
	if len(validation.IsDNS1123Label(first)) > 0 {
		return "", fmt.Errorf("%q is no DNS label: choose a name without dots for the Cluster", first)
	}
	full := first + "." + hostname
	if !validHost(full) {
		return "", fmt.Errorf("the Cluster's name under the host of config map key %s is no DNS name", dockyards.KeyExternalURL)
	}
	return full, nil
}

// validHost tells whether a text is a DNS name that a route accepts.
func validHost(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return false
	}
	for part := range strings.SplitSeq(text, ".") {
		if len(part) > validation.DNS1123LabelMaxLength {
			return false
		}
	}
	return len(validation.IsDNS1123Subdomain(text)) == 0
}

// Namesakes are the namespaces and names of the other Clusters that would get the
// same host as a Cluster, whether they exist or not.
func Namesakes(namespace, name string) []types.NamespacedName {
	full := label(namespace, name)
	if len(validation.IsDNS1123Label(full)) > 0 {
		return nil
	}
	var found []types.NamespacedName
	for i := range full {
		if full[i] != '-' || i == len(namespace) {
			continue
		}
		other := types.NamespacedName{Namespace: full[:i], Name: full[i+1:]}
		if len(validation.IsDNS1123Label(other.Namespace)) == 0 && len(validation.IsDNS1123Label(other.Name)) == 0 {
			found = append(found, other)
		}
	}
	return found
}

// stored is the endpoint in a Cluster's status.
func stored(cluster *unstructured.Unstructured) (hostname string, port int64) {
	hostname, _, _ = unstructured.NestedString(cluster.Object, "status", "apiEndpoint", "host")
	port, _, _ = unstructured.NestedInt64(cluster.Object, "status", "apiEndpoint", "port")
	return hostname, port
}

// KeepsForeignHost tells whether the host in a Cluster's status is none that was
// made from its name: then any other Cluster may have it too.
func KeepsForeignHost(cluster *unstructured.Unstructured) bool {
	have, port := stored(cluster)
	first, _, _ := strings.Cut(have, ".")
	return port != 0 && validHost(have) && first != label(cluster.GetNamespace(), cluster.GetName())
}

// rival is the Cluster that has a better claim on this one's host; nil for none. A
// host that is made from a Cluster's name belongs to the oldest such Cluster; one
// that is only found in the status, to nobody else's name, and then to the oldest.
func (v *view) rival() *unstructured.Unstructured {
	mine := label(v.namespace, v.name)
	have, _ := stored(v.in.Cluster)
	first, _, _ := strings.Cut(have, ".")
	foreign := KeepsForeignHost(v.in.Cluster)
	var found *unstructured.Unstructured
	for i := range v.in.Clusters {
		other := &v.in.Clusters[i]
		if other.GetUID() == v.in.Cluster.GetUID() {
			continue
		}
		named := label(other.GetNamespace(), other.GetName())
		theirs, _ := stored(other)
		older := dockyards.Older(other, v.in.Cluster) < 0
		if (named == mine && older) || (foreign && (named == first || (theirs == have && older))) {
			if found == nil || dockyards.Older(other, found) < 0 {
				found = other
			}
		}
	}
	return found
}
