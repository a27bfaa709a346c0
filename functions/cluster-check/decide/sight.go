package decide

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// KubeconfigKey is the key of a kubeconfig in its Secret.
const KubeconfigKey = v1alpha1.KubeconfigKey

// Compared are KubeVirt's resources whose stored versions are compared between
// clusters.
func Compared() []kind.Resource {
	return []kind.Resource{kinds.VirtualMachines, kinds.VirtualMachineInstances}
}

// Sight is what was seen of a cluster.
type Sight struct {
	// Cluster is the name of its KubevirtConfig, or Management.
	Cluster string
	// Connection tells where it is, or why it cannot be asked at all.
	Connection plan.Connection
	// Unreachable is set when it did not answer.
	Unreachable *fault.Fault
	// NamespacesRefused is set when it refused to list namespaces.
	NamespacesRefused *fault.Fault
	// KubeVirts are the installations of KubeVirt, in any namespace.
	KubeVirts        []unstructured.Unstructured
	KubeVirtsRefused *fault.Fault
	// Stored are the versions in which it stores the compared resources, by
	// resource; one that it has no definition of is missing.
	Stored        map[string]string
	StoredRefused *fault.Fault
}

// StoredVersion is the version in which a definition has its objects stored.
func StoredVersion(definition *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedFieldNoCopy(definition.Object, "spec", "versions")
	list, _ := versions.([]any)
	for _, item := range list {
		if version, ok := item.(map[string]any); ok && version["storage"] == true {
			return text(version, "name")
		}
	}
	return ""
}

// Result is what a check comes to.
type Result string

const (
	// OK: as it should be.
	OK Result = "ok"
	// Warning: somebody should look at it; it stops nothing.
	Warning Result = "warning"
	// Failed: Machines cannot run as things stand.
	Failed Result = "failed"
	// Skipped: the check could not be made, for a reason that another one tells.
	Skipped Result = "skipped"
)

// Verdict is what a check comes to, and why.
type Verdict struct {
	Result Result
	// Reason is one word, the reason of a condition.
	Reason string
	// Message names what is wrong and the way out.
	Message string
	// Blind tells that nobody can know: a condition is Unknown then.
	Blind bool
}

// Connected checks that the cluster answers to the kubeconfig.
func (s Sight) Connected() Verdict {
	switch {
	case s.Connection.Refused == plan.KubeconfigInvalid:
		return Verdict{Result: Failed, Reason: v1alpha1.ReasonKubeconfigInvalid, Message: s.Connection.Message}
	case s.Connection.Refused != "":
		return Verdict{Result: Failed, Reason: v1alpha1.ReasonSecretNotFound, Message: s.Connection.Message}
	case s.Unreachable != nil && s.Unreachable.Answered() == fault.Unauthorized:
		return Verdict{
			Result: Failed, Reason: v1alpha1.ReasonUnauthorized,
			Message: s.server() + ": " + s.Unreachable.Cause() + ": put a valid token or client certificate there",
		}
	case s.Unreachable != nil:
		return Verdict{
			Result: Failed, Reason: v1alpha1.ReasonUnreachable,
			Message: s.server() + " does not answer: " + s.Unreachable.Cause() + ": check that it runs, and server and certificates in the kubeconfig",
		}
	case s.NamespacesRefused != nil:
		return Verdict{Result: Failed, Reason: v1alpha1.ReasonUnauthorized, Message: lacking(s.NamespacesRefused)}
	}
	return Verdict{Result: OK, Reason: v1alpha1.ReasonConnected, Message: s.server() + " answers"}
}

func (s Sight) server() string {
	if s.Connection.Server == "" {
		return "the API server"
	}
	return "the API server at " + s.Connection.Server
}

// dark tells that nothing can be seen of the cluster.
func (s Sight) dark() bool { return s.Connection.Refused != "" || s.Unreachable != nil }

// KubeVirt checks that KubeVirt is there and works.
func (s Sight) KubeVirt() Verdict {
	switch {
	case s.dark():
		return Verdict{Result: Skipped, Reason: v1alpha1.ReasonWaiting, Message: "the cluster cannot be seen", Blind: true}
	case s.KubeVirtsRefused != nil:
		return Verdict{Result: Failed, Reason: v1alpha1.ReasonUnauthorized, Message: lacking(s.KubeVirtsRefused), Blind: true}
	case len(s.KubeVirts) == 0:
		return Verdict{
			Result: Failed, Reason: v1alpha1.ReasonKubeVirtMissing,
			Message: "no namespace holds a KubeVirt object: install KubeVirt on the cluster",
		}
	}
	installations := byName(s.KubeVirts)
	for _, kv := range installations {
		if status, _ := available(kv); status == v1alpha1.ConditionTrue {
			return Verdict{Result: OK, Reason: v1alpha1.ReasonKubeVirtAvailable, Message: called(kv) + " is available" + version(kv)}
		}
	}
	_, why := available(installations[0])
	return Verdict{
		Result: Failed, Reason: v1alpha1.ReasonKubeVirtNotAvailable,
		Message: called(installations[0]) + " is not available: " + firstOf(why, "it does not say why, look at its conditions"),
	}
}

func byName(objects []unstructured.Unstructured) []*unstructured.Unstructured {
	sorted := make([]*unstructured.Unstructured, 0, len(objects))
	for i := range objects {
		sorted = append(sorted, &objects[i])
	}
	slices.SortFunc(sorted, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return sorted
}

func called(kv *unstructured.Unstructured) string {
	return fmt.Sprintf("KubeVirt %q in namespace %q", kv.GetName(), kv.GetNamespace())
}

func version(kv *unstructured.Unstructured) string {
	if v := text(kv.Object, "status", "observedKubeVirtVersion"); v != "" {
		return " in version " + v
	}
	return ""
}

// available is the status of the condition Available, and what is said of it.
func available(kv *unstructured.Unstructured) (status, why string) {
	conditions, _, _ := unstructured.NestedSlice(kv.Object, "status", "conditions")
	for _, item := range conditions {
		if fields, ok := item.(map[string]any); ok && text(fields, "type") == "Available" {
			return text(fields, "status"), firstOf(text(fields, "message"), text(fields, "reason"))
		}
	}
	return "", ""
}

// Versions checks that the cluster stores KubeVirt's objects in the versions of
// the yardstick. Nil: the cluster is the yardstick itself.
func (s Sight) Versions(yardstick *Sight) Verdict {
	if verdict, blind := s.versionsUnread(); blind {
		return verdict
	}
	if yardstick == nil {
		return Verdict{Result: OK, Reason: v1alpha1.ReasonVersionsMatch, Message: "stored versions: " + s.versions()}
	}
	if _, blind := yardstick.versionsUnread(); blind {
		return Verdict{
			Result: Skipped, Reason: v1alpha1.ReasonWaiting, Blind: true,
			Message: fmt.Sprintf("the versions on cluster %q, the first by name, cannot be read", yardstick.Cluster),
		}
	}
	if s.versions() == yardstick.versions() {
		return Verdict{Result: OK, Reason: v1alpha1.ReasonVersionsMatch, Message: "stored versions: " + s.versions()}
	}
	return Verdict{
		Result: Warning, Reason: v1alpha1.ReasonVersionsDiffer,
		Message: fmt.Sprintf("stored versions: %s; on cluster %q, the first by name: %s; install the same version of KubeVirt on both",
			s.versions(), yardstick.Cluster, yardstick.versions()),
	}
}

// versionsUnread tells why the cluster's own versions are not known.
func (s Sight) versionsUnread() (Verdict, bool) {
	switch {
	case s.dark():
		return Verdict{Result: Skipped, Reason: s.Connected().Reason, Message: "the cluster cannot be seen", Blind: true}, true
	case s.StoredRefused != nil:
		return Verdict{Result: Warning, Reason: v1alpha1.ReasonUnauthorized, Message: lacking(s.StoredRefused), Blind: true}, true
	case len(s.Stored) == 0:
		return Verdict{
			Result: Skipped, Reason: v1alpha1.ReasonKubeVirtMissing, Blind: true,
			Message: "the cluster has no definitions of KubeVirt to compare",
		}, true
	}
	return Verdict{}, false
}

// versions reads "virtualmachines v1, virtualmachineinstances v1".
func (s Sight) versions() string {
	var list []string
	for _, res := range Compared() {
		list = append(list, res.Plural+" "+firstOf(s.Stored[res.Plural], "not there"))
	}
	return strings.Join(list, ", ")
}

// faults are what the cluster refused.
func (s Sight) faults() []*fault.Fault {
	var refused []*fault.Fault
	for _, f := range []*fault.Fault{s.NamespacesRefused, s.KubeVirtsRefused, s.StoredRefused} {
		if f != nil {
			refused = append(refused, f)
		}
	}
	return refused
}
