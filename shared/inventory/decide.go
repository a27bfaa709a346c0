package inventory

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/render"
)

// Annotations of a WorkloadInventory, which has no status: what Flux says of the
// object, and what is applied.
const (
	AnnotationReady    = "slipway.dev/ready"
	AnnotationReason   = "slipway.dev/reason"
	AnnotationRevision = "slipway.dev/revision"
)

// Reasons of conclusions and of Kubernetes Events.
const (
	ReasonMirrored = "Mirrored"
	ReasonIgnored  = "Ignored"
	ReasonNotOwned = "ObjectNotOwned"
	ReasonFreed    = "ClusterGone"
	ReasonWaiting  = "WaitingForCluster"
	ReasonFailed   = v1alpha3.ReasonReconcileFailed
)

// Input is all that one decision is made from.
type Input struct {
	Flavor Flavor
	// Object is the Kustomization or HelmRelease.
	Object *unstructured.Unstructured
	// Inventory is the WorkloadInventory of its name; nil if there is none.
	Inventory *unstructured.Unstructured
	// HasSecret tells, of an object on its way out, whether the kubeconfig is there.
	HasSecret bool
	// Cluster is, of an object on its way out, its Dockyards Cluster; nil if it is gone.
	Cluster *unstructured.Unstructured
}

// Concerns tells whether an object belongs to a Workload; everything else in a
// cluster is none of our business.
func Concerns(obj *unstructured.Unstructured) bool {
	labels := obj.GetLabels()
	return labels[v1alpha3.LabelWorkloadName] != "" && labels[v1alpha3.LabelClusterName] != ""
}

// KubeconfigSecret is the Secret that leads an object to its cluster; empty if it is
// found in another way, of which nothing is known here.
func KubeconfigSecret(obj *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(obj.Object, "spec", "kubeConfig", "secretRef", "name")
	return name
}

// Decide is what shall be written for an object.
func Decide(_ time.Time, in Input, _ plan.Answers) plan.Decision {
	switch {
	case !Concerns(in.Object):
		return plan.Decision{}
	case dockyards.Going(in.Object):
		return in.free()
	}
	return in.mirror()
}

// free lets an object go whose cluster is gone for good.
func (in Input) free() plan.Decision {
	if !in.stuck() || in.clusterStays() {
		return plan.Decision{}
	}
	p := plan.Plan{}
	p.Add("kubeConfig switch", plan.Entry{
		Verb: plan.Patch, Resource: in.Flavor.Resource, Base: in.Object, Object: in.Flavor.letGo(in.Object),
		Reason: "its cluster and the way there are gone: Flux would wait for ever",
	})
	return plan.Decision{Plan: p}
}

// stuck tells whether Flux would look for a cluster to which nothing leads.
func (in Input) stuck() bool {
	return KubeconfigSecret(in.Object) != "" && !in.HasSecret && in.Flavor.letGo(in.Object) != nil
}

// clusterStays: a kubeconfig that is being replaced is missing for a moment. What is
// in a living cluster is not left there.
func (in Input) clusterStays() bool { return in.Cluster != nil && !dockyards.Going(in.Cluster) }

func (in Input) mirror() plan.Decision {
	if in.foreign() != "" || dockyards.Going(in.Inventory) {
		return plan.Decision{}
	}
	obj, err := plan.Object(Inventories, in.wanted())
	if err != nil {
		return plan.Decision{Reasons: []string{err.Error()}}
	}
	p := plan.Plan{}
	p.Add("inventory", plan.Entry{
		Verb: plan.Apply, Resource: Inventories, Object: obj, Base: in.Inventory,
		Reason: "it tells how to find what Flux has applied, and how that is",
	})
	p.Continue = in.Inventory == nil // what is owned since the creation becomes owned by apply
	return plan.Decision{Plan: p}
}

// foreign says whose an inventory is that lies under the name and is not ours.
func (in Input) foreign() string {
	if in.Inventory == nil {
		return ""
	}
	for _, ref := range in.Inventory.GetOwnerReferences() {
		same := in.Flavor.Resource.Is(ref.APIVersion, ref.Kind) && ref.Name == in.Object.GetName()
		if ref.Controller != nil && *ref.Controller && !same {
			return ref.Kind + "/" + ref.Name
		}
	}
	return ""
}

func (in Input) wanted() *v1alpha3.WorkloadInventory {
	reference := dockyards.Reference(in.Flavor.Resource, in.Object)
	reference.APIVersion = in.Object.GetAPIVersion()
	labels := map[string]string{}
	for key, value := range in.Object.GetLabels() {
		if render.InDomain(key, v1alpha3.GroupName) {
			labels[key] = value
		}
	}
	annotations := map[string]string{}
	if ready := readyOf(in.Object); ready != nil {
		annotations[AnnotationReady] = string(ready.Status)
		annotations[AnnotationReason] = ready.Reason
	}
	if revision := in.Flavor.revision(in.Object); revision != "" {
		annotations[AnnotationRevision] = revision
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	return &v1alpha3.WorkloadInventory{
		ObjectMeta: metav1.ObjectMeta{
			Name: in.Flavor.Name(in.Object.GetName()), Namespace: in.Object.GetNamespace(),
			Labels: labels, Annotations: annotations, OwnerReferences: []metav1.OwnerReference{reference},
		},
		Spec: v1alpha3.WorkloadInventorySpec{Selector: metav1.LabelSelector{MatchLabels: in.Flavor.selector(in.Object)}},
	}
}

// readyOf is what Flux says of an object. Its message is never copied: it may hold
// values.
func readyOf(obj *unstructured.Unstructured) *metav1.Condition {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range list {
		fields, _ := item.(map[string]any)
		if fields["type"] != v1alpha3.ConditionReady {
			continue
		}
		status, _ := fields["status"].(string)
		reason, _ := fields["reason"].(string)
		return &metav1.Condition{Status: metav1.ConditionStatus(status), Reason: reason}
	}
	return nil
}

// Conclude says what came of it. The object's status is Flux' own.
func Conclude(_ time.Time, in Input, _ plan.Answers, outcomes plan.Outcomes) plan.Conclusion {
	failed := outcomes.Faults()
	switch {
	case !Concerns(in.Object):
		return plan.Conclusion{Class: plan.Done, Reason: ReasonIgnored}
	case len(failed) > 0:
		message := clip.Line(failed[0].Fault.Error(), 256)
		return plan.Conclusion{
			Class: plan.Terminal, Reason: ReasonFailed, Message: message,
			Events: []plan.Event{{Warning: true, Reason: ReasonFailed, Message: message}},
		}
	case dockyards.Going(in.Object):
		return in.concludeGoing(outcomes)
	}
	if whose := in.foreign(); whose != "" {
		return plan.Conclusion{Class: plan.Terminal, Reason: ReasonNotOwned, Message: fmt.Sprintf(
			"WorkloadInventory %q belongs to %s", in.Inventory.GetName(), whose)}
	}
	return plan.Conclusion{Class: plan.Done, Reason: ReasonMirrored}
}

func (in Input) concludeGoing(outcomes plan.Outcomes) plan.Conclusion {
	if !in.stuck() {
		return plan.Conclusion{Class: plan.Done, Reason: v1alpha3.ReasonDeleting}
	}
	event := plan.Event{Warning: true, Reason: ReasonFreed, Message: fmt.Sprintf(
		"Secret %q and Cluster %q are gone: what was applied there is left, so that this object can go",
		KubeconfigSecret(in.Object), in.Object.GetLabels()[v1alpha3.LabelClusterName])}
	c := plan.Conclusion{Class: plan.Done, Reason: ReasonFreed}
	if len(outcomes) == 0 {
		c.Class, c.Reason = plan.Waiting, ReasonWaiting
		event.Reason, event.Message = ReasonWaiting, fmt.Sprintf(
			"Secret %q does not exist, and Cluster %q does: waits until one of them changes", KubeconfigSecret(in.Object), in.Cluster.GetName())
	}
	c.Message, c.Events = event.Message, []plan.Event{event}
	return c
}
