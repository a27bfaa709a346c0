package decide

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// serviceType is how CAPK exposes an API server: inside the cluster, where the route
// leads.
const serviceType = "ClusterIP"

var servicePath = []string{"spec", "controlPlaneServiceTemplate", "spec", "type"}

// decideInfrastructure sees to a KubevirtCluster behind each Cluster API Cluster.
func (v *view) decideInfrastructure() {
	switch {
	case v.in.Faults.Infrastructure != nil:
		v.infra = v.failed(v.in.Faults.Infrastructure)
		return
	case !v.in.ClusterAPIServed:
		v.infra = verdict{class: plan.Waiting, message: "the API server serves no Cluster API Clusters: install Cluster API"}
		return
	}
	for _, i := range v.in.Infrastructure {
		if is := v.anchor(i); is.message != "" && v.infra.reason == "" {
			v.infra = is
		}
	}
}

// anchor sees to one Cluster API Cluster. The verdict is empty if all is well.
func (v *view) anchor(i Infrastructure) verdict {
	capi, kubevirt, res := i.Cluster, i.Kubevirt, dockyards.KubevirtClusters
	set, ours := refersToKubevirt(capi)
	switch {
	case dockyards.Going(capi) || !ours:
		return verdict{}
	case !v.in.ProviderServed:
		return verdict{class: plan.Waiting, message: "the API server serves no KubevirtClusters: install Cluster API's provider for KubeVirt"}
	case kubevirt == nil:
		v.writes = append(v.writes, plan.Entry{
			Verb: plan.Create, Resource: res, Object: newKubevirtCluster(capi), Reason: "the Cluster API Cluster needs an infrastructure",
		})
		if !set {
			v.references = append(v.references, reference(capi))
		}
		return verdict{}
	case dockyards.Going(kubevirt):
		return going(res, kubevirt)
	}
	exposed, _, _ := unstructured.NestedString(kubevirt.Object, servicePath...)
	if kin := relate(kubevirt, capi, v.in.Cluster); kin == foreign || (kin == unclaimed && exposed != serviceType) {
		return conflict(res, kubevirt)
	}
	if exposed != serviceType {
		v.expose(kubevirt)
	}
	if !set {
		v.writes = append(v.writes, reference(capi))
	}
	return verdict{}
}

// refersToKubevirt tells whether a Cluster API Cluster's infrastructure is set, and
// whether it is, or may become, the KubevirtCluster of its own name.
func refersToKubevirt(capi *unstructured.Unstructured) (set, ours bool) {
	field := func(name string) string {
		text, _, _ := unstructured.NestedString(capi.Object, "spec", "infrastructureRef", name)
		return text
	}
	if field("kind") == "" && field("name") == "" {
		return false, true
	}
	group := field("apiGroup")
	if version := field("apiVersion"); version != "" {
		group = schema.FromAPIVersionAndKind(version, "").Group
	}
	elsewhere := field("namespace") != "" && field("namespace") != capi.GetNamespace()
	res := dockyards.KubevirtClusters
	return true, group == res.Group && field("kind") == res.Kind && field("name") == capi.GetName() && !elsewhere
}

// newKubevirtCluster has no owner: Cluster API adds itself.
func newKubevirtCluster(capi *unstructured.Unstructured) *unstructured.Unstructured {
	kubevirt := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"controlPlaneServiceTemplate": map[string]any{"spec": map[string]any{"type": serviceType}}},
	}}
	kubevirt.SetGroupVersionKind(dockyards.KubevirtClusters.GVK())
	kubevirt.SetNamespace(capi.GetNamespace())
	kubevirt.SetName(capi.GetName())
	return kubevirt
}

// expose sets how a KubevirtCluster's API server is exposed; all else in it is
// CAPK's.
func (v *view) expose(kubevirt *unstructured.Unstructured) {
	changed := kubevirt.DeepCopy()
	if err := unstructured.SetNestedField(changed.Object, serviceType, servicePath...); err != nil {
		return // its schema has no such form
	}
	v.writes = append(v.writes, plan.Entry{
		Verb: plan.Patch, Resource: dockyards.KubevirtClusters, Base: kubevirt, Object: changed,
		Reason: "the API server is reached through the route",
	})
}

// reference is the patch that sets a Cluster API Cluster's infrastructure, in the
// form of the version in which it was read.
func reference(capi *unstructured.Unstructured) plan.Entry {
	res, changed := dockyards.KubevirtClusters, capi.DeepCopy()
	ref := map[string]any{"apiGroup": res.Group, "kind": res.Kind, "name": capi.GetName()}
	if capi.GroupVersionKind().Version == "v1beta1" {
		ref = map[string]any{"apiVersion": res.APIVersion(), "kind": res.Kind, "name": capi.GetName(), "namespace": capi.GetNamespace()}
	}
	spec, _ := changed.Object["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
	}
	spec["infrastructureRef"] = ref
	changed.Object["spec"] = spec
	return plan.Entry{
		Verb: plan.Patch, Resource: dockyards.CAPIClusters, Base: capi, Object: changed, Reason: "the Cluster API Cluster names its infrastructure",
	}
}
