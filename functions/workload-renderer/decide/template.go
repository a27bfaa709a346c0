package decide

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/render"
)

// MayUse tells whether a Workload may use the templates of a namespace.
func MayUse(workload *unstructured.Unstructured, namespace string, s Settings, config dockyards.Config) bool {
	return namespace == workload.GetNamespace() || slices.Contains(public(s, config), namespace)
}

func public(s Settings, config dockyards.Config) []string {
	namespaces := slices.Clone(s.PublicNamespaces)
	if ns, set := config.Value(v1alpha3.ConfigKeyPublicNamespace); set && ns != "" && !slices.Contains(namespaces, ns) {
		namespaces = append(namespaces, ns)
	}
	return namespaces
}

// resolve goes from the Workload to the objects that shall be. It stops at the first
// problem.
func (v *view) resolve() {
	ref, templated := TemplateOf(v.workload)
	if v.templated = templated; !templated {
		v.reason("the Workload names no template")
		return
	}
	for _, step := range []func(Reference){v.checkCluster, v.checkTemplate, v.checkReady, v.render, v.checkOwners} {
		if step(ref); v.problem != nil || len(v.needs) > 0 {
			return
		}
	}
}

func (v *view) checkCluster(Reference) {
	switch {
	case v.scope.Cluster == "":
		v.wait(v1alpha3.ReasonWaitingForCluster, "the Workload names no Cluster: it needs an owner reference to one, or label %s", v1alpha3.LabelClusterName)
	case v.in.Cluster == nil:
		v.wait(v1alpha3.ReasonWaitingForCluster, "Cluster %q does not exist", v.scope.Cluster)
	}
}

func (v *view) checkTemplate(ref Reference) {
	if !MayUse(v.workload, ref.Namespace, v.in.Settings, v.in.Config) {
		v.stop(ReasonTemplateNotAllowed, "templates of namespace %q may not be used: use one of namespace %s", ref.Namespace,
			strings.Join(append([]string{v.scope.Namespace}, public(v.in.Settings, v.in.Config)...), ", "))
		return
	}
	if v.in.Template == nil {
		v.wait(v1alpha3.ReasonWaitingForWorkloadTemplate, "WorkloadTemplate %q does not exist", ref.Namespace+"/"+ref.Name)
		return
	}
	if kindOf, _, _ := unstructured.NestedString(v.in.Template.Object, "spec", "type"); kindOf != v1alpha3.WorkloadTemplateTypeCUE {
		v.stop(v1alpha3.ReasonIncorrectWorkloadTemplateType, "WorkloadTemplate %q is of type %q, only %s is rendered",
			ref.Namespace+"/"+ref.Name, clip.Line(kindOf, 80), v1alpha3.WorkloadTemplateTypeCUE)
	}
}

func (v *view) checkReady(Reference) {
	component, _, _ := unstructured.NestedBool(v.workload.Object, "spec", "clusterComponent")
	ready, _ := conditionOf(v.in.Cluster, v1alpha3.ConditionReady)
	_, rendered := v.workload.GetAnnotations()[AnnotationInventory]
	switch {
	case !component && ready.status == string(metav1.ConditionFalse):
		v.wait(v1alpha3.ReasonWaitingForClusterReady, "Cluster %q is not ready", v.scope.Cluster)
	case dockyards.Going(v.in.Cluster) && !rendered:
		v.wait(v1alpha3.ReasonWaitingForClusterReady, "Cluster %q is being deleted", v.scope.Cluster)
	}
}

// request is the render that the Workload asks for.
func (v *view) request() render.Request {
	source, _, _ := unstructured.NestedString(v.in.Template.Object, "spec", "source")
	return render.Request{
		Mode: render.ModeRender, Source: source, Limits: v.in.Settings.Limits,
		Cluster: render.ProjectCluster(v.in.Cluster), Workload: render.ProjectWorkload(v.workload),
	}
}

func (v *view) render(Reference) {
	request := v.request()
	v.hash = request.Hash()
	if v.workload.GetAnnotations()[AnnotationQuarantine] == v.hash {
		v.stop(render.ReasonLimit, "%s", v.quarantined())
		return
	}
	answer, ok := v.ask(plan.Need{Render: &request})
	if !ok {
		return
	}
	result := answer.Rendered
	if result == nil {
		v.stop(v1alpha3.ReasonReconcileFailed, "the renderer gave no answer")
		return
	}
	failure := result.Failure
	if failure == nil {
		v.objects, failure = v.in.Settings.Rules.Check(v.scope, result.Outputs)
	}
	if failure != nil {
		v.objects, v.stopped = nil, failure.Limit
		v.stop(failure.Reason, "%s", failure.Message)
	}
}

// quarantined is what is said of a render that is not tried again: what was said when
// it was stopped.
func (v *view) quarantined() string {
	have, _ := conditionOf(v.workload, v1alpha3.ConditionWorkloadTemplateReconciled)
	if have.reason == render.ReasonLimit && have.message != "" {
		return have.message
	}
	return "rendering was stopped at a limit: change template or input, or remove annotation " + AnnotationQuarantine + " to try again"
}
