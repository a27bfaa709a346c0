package decide

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

const (
	// manager is the value of the annotation on a Workload that this function made
	// or adopted.
	manager         = "cluster-anchor"
	targetNamespace = "ingress-nginx"
	templateName    = "ingress-nginx"
	templateKind    = "WorkloadTemplate"
)

// decideIngress brings the ingress Workload to what the Cluster asks for.
func (v *view) decideIngress() {
	if unwanted, _, _ := unstructured.NestedBool(v.in.Cluster.Object, "spec", "noDefaultIngressProvider"); unwanted {
		v.ingress = v.withoutIngress()
		return
	}
	v.ingress = v.withIngress()
}

// withoutIngress takes the Workload away, if it is known to be made here.
func (v *view) withoutIngress() verdict {
	if f := v.in.Faults.Workload; f != nil {
		return v.failed(f)
	}
	workload := v.in.Workload
	if workload == nil || dockyards.Going(workload) {
		return done(v1alpha3.ReasonNoDefaultIngressProvider, "")
	}
	stays := func(why string) verdict {
		return done(v1alpha3.ReasonNoDefaultIngressProvider, "Workload "+quote(workload.GetName())+" stays: "+why)
	}
	switch {
	case skipped(workload):
		return stays("it carries annotation " + v1alpha3.AnnotationSkipRemediation)
	case relate(workload, v.in.Cluster) != mine:
		return stays("it is not this Cluster's")
	case workload.GetAnnotations()[v1alpha3.AnnotationManagedBy] != manager:
		return stays("it was there before and is not marked as made by " + manager + "; remove it yourself if it is not wanted")
	}
	v.removals = append(v.removals, plan.Entry{
		Verb: plan.Delete, Resource: dockyards.Workloads, Base: workload, Reason: "the Cluster wants no ingress",
	})
	return done(v1alpha3.ReasonNoDefaultIngressProvider, "")
}

func (v *view) withIngress() verdict {
	for _, is := range []verdict{v.unread(v.in.Faults.Gateway), v.unread(v.in.Faults.Workload)} {
		if is.status != "" {
			return is
		}
	}
	if v.gateway() == nil {
		return v.awaitGateway()
	}
	workload := v.in.Workload
	switch {
	case workload != nil && skipped(workload):
		return done(v1alpha3.ReasonReady, "")
	case len(v.name) > validation.LabelValueMaxLength:
		return wrong(v1alpha3.ReasonInvalidSpec, fmt.Sprintf("the Cluster's name is longer than %d characters, which no label can hold: choose a shorter one", validation.LabelValueMaxLength))
	}
	address, known := dockyards.GatewayAddress(v.gateway())
	if v.in.Settings.WorkloadIngress && !known {
		return waiting(v1alpha3.ReasonWaitingForGatewayAddress, "Gateway "+
			quote(v.in.Settings.GatewayNamespace+"/"+v.in.Settings.GatewayName)+" has no address yet")
	}
	ip := ""
	if v.in.Settings.WorkloadIngress {
		ip = address.IP
	}
	switch {
	case workload == nil:
		v.writes = append(v.writes, plan.Entry{
			Verb: plan.Create, Resource: dockyards.Workloads, Object: v.newWorkload(ip), Reason: "the Cluster needs an ingress",
		})
		return done(v1alpha3.ReasonReady, "")
	case dockyards.Going(workload):
		return going(dockyards.Workloads, workload)
	}
	return v.updateWorkload(workload, ip)
}

func skipped(obj *unstructured.Unstructured) bool {
	_, skip := obj.GetAnnotations()[v1alpha3.AnnotationSkipRemediation]
	return skip
}

func (v *view) newWorkload(ip string) *unstructured.Unstructured {
	workload := &unstructured.Unstructured{Object: map[string]any{}}
	workload.SetGroupVersionKind(dockyards.Workloads.GVK())
	workload.SetNamespace(v.namespace)
	workload.SetName(WorkloadName(v.name))
	v.own(workload)
	dockyards.SetAnnotation(workload, v1alpha3.AnnotationManagedBy, manager)
	spec := map[string]any{}
	v.fillWorkload(spec, v.in.Config.PublicNamespace())
	if input, err := mergeInput(nil, ip); err == nil && input != nil {
		spec["input"] = input
	}
	workload.Object["spec"] = spec
	return workload
}

// fillWorkload sets the fields that are the same for every ingress Workload.
func (v *view) fillWorkload(spec map[string]any, public string) {
	spec["clusterComponent"] = true
	spec["provenience"] = v1alpha3.ProvenienceDockyards
	spec["targetNamespace"] = targetNamespace
	ref := map[string]any{"kind": templateKind, "name": templateName, "namespace": public}
	if have, _, _ := unstructured.NestedString(spec, "workloadTemplateRef", "apiGroup"); have == v1alpha3.GroupName {
		ref["apiGroup"] = have // says no more than its absence
	}
	spec["workloadTemplateRef"] = ref
}

// updateWorkload merges what is owned here into a Workload that exists.
func (v *view) updateWorkload(workload *unstructured.Unstructured, ip string) verdict {
	changed := workload.DeepCopy()
	spec, _ := changed.Object["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
	}
	public, note := v.publicNamespace(spec)
	v.fillWorkload(spec, public)
	before, _ := workload.Object["spec"].(map[string]any)
	same := reflect.DeepEqual(before, spec) && workload.GetLabels()[v1alpha3.LabelClusterName] == v.name
	if kin := relate(workload, v.in.Cluster); kin == foreign || (kin == unclaimed && !same) {
		return conflict(dockyards.Workloads, workload)
	}
	input, err := mergeInput(spec["input"], ip)
	if err != nil {
		return wrong(v1alpha3.ReasonInvalidSpec, "Workload "+quote(workload.GetName())+": "+err.Error())
	}
	if spec["input"] = input; input == nil {
		delete(spec, "input")
	}
	changed.Object["spec"] = spec
	v.own(changed)
	dockyards.SetAnnotation(changed, v1alpha3.AnnotationManagedBy, manager)
	v.writes = append(v.writes, plan.Entry{
		Verb: plan.Patch, Resource: dockyards.Workloads, Base: workload, Object: changed, Reason: "the ingress follows Cluster and Gateway",
	})
	return done(v1alpha3.ReasonReady, note)
}

// publicNamespace is where the template lies. A config map that says nothing of it
// leaves a Workload's as it is.
func (v *view) publicNamespace(spec map[string]any) (namespace, note string) {
	namespace = v.in.Config.PublicNamespace()
	have, _, _ := unstructured.NestedString(spec, "workloadTemplateRef", "namespace")
	if value, _ := v.in.Config.Value(dockyards.KeyPublicNamespace); value != "" || have == "" || have == namespace {
		return namespace, ""
	}
	return have, "the template's namespace of before is kept: config map key " + dockyards.KeyPublicNamespace + " is absent or empty"
}
