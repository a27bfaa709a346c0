package render

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
)

// standInName is the name of a Cluster that nobody names.
const standInName = "cluster"

// Trial is what is rendered where not everything exists yet: at the door, and without
// any cluster.
type Trial struct {
	Request Request
	Scope   Scope
	// StandIn tells that nothing but its name is known of the Cluster.
	StandIn bool
}

// NewTrial makes the render of a Workload. cluster is nil if there is none yet; name
// is then the one that the Workload gives, or empty.
func NewTrial(source string, workload, cluster *unstructured.Unstructured, name string, limits Limits) Trial {
	t := Trial{StandIn: cluster == nil}
	if cluster == nil {
		cluster = StandIn(workload.GetNamespace(), cmp.Or(name, standInName))
	}
	t.Scope = ScopeOf(workload, cluster.GetName())
	t.Request = Request{
		Mode: ModeRender, Source: source, Limits: limits,
		Cluster: ProjectCluster(cluster), Workload: ProjectWorkload(workload),
	}
	return t
}

// SourceOf is the source of a WorkloadTemplate, which has to be of the one type that
// is rendered.
func SourceOf(template *unstructured.Unstructured) (string, error) {
	if kindOf, _, _ := unstructured.NestedString(template.Object, "spec", "type"); kindOf != v1alpha3.WorkloadTemplateTypeCUE {
		return "", fmt.Errorf("cannot render WorkloadTemplate %q: spec.type is %q, only %s is rendered",
			template.GetName(), clip.Line(kindOf, 80), v1alpha3.WorkloadTemplateTypeCUE)
	}
	source, _, err := unstructured.NestedString(template.Object, "spec", "source")
	if err != nil {
		return "", fmt.Errorf("cannot render WorkloadTemplate %q: spec.source is no text", template.GetName())
	}
	return source, nil
}
