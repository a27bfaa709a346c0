package workloadrenderer

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/functions/workload-renderer/decide"
	"github.com/slipway-dev/slipway/functions/workload-renderer/kinds"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
)

// gatherer reads all that one decision about a Workload needs.
type gatherer struct{ settings Settings }

// gather reads what may be written first (the objects of the Workload) and what is
// decided from last (Cluster, config map, template). Objects that are not known to be
// the Workload's are read when the decision asks for them.
func (g gatherer) gather(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) (decide.Input, error) {
	in := decide.Input{Settings: g.settings.Settings, Workload: root}
	objects := g.objects(root)
	r.Ahead(ctx, objects...)
	ref, templated := decide.TemplateOf(root)
	decides := templated && !dockyards.Going(root)
	if decides {
		r.Ahead(ctx, g.sources(root, ref)...)
	}
	for _, need := range objects {
		answer := r.Answer(ctx, need)
		if answer.Fault != nil {
			return in, answer.Fault
		}
		if answer.Object != nil {
			in.Objects = append(in.Objects, decide.Found{Resource: need.Resource, Object: answer.Object})
		}
		for i := range answer.Items {
			in.Objects = append(in.Objects, decide.Found{Resource: need.Resource, Object: &answer.Items[i]})
		}
	}
	if !decides {
		return in, nil
	}
	return g.decisive(ctx, r, ref, in)
}

// objects are the reads that find what is the Workload's. While it is settled its
// inventory names them all; else everything of the kinds that templates may give is
// looked through for its label. A name that cannot be a label is on nothing.
func (g gatherer) objects(root *unstructured.Unstructured) []plan.Need {
	if needs, settled := decide.Settled(root, g.settings.Settings); settled {
		return needs
	}
	if len(validation.IsValidLabelValue(root.GetName())) > 0 {
		return nil
	}
	var needs []plan.Need
	for _, res := range g.settings.Rules.Allowed {
		if res.Namespaced {
			needs = append(needs, plan.Need{
				Resource: res, Namespace: root.GetNamespace(), Selector: v1alpha3.LabelWorkloadName + "=" + root.GetName(),
			})
		}
	}
	return needs
}

// sources are what is decided from, as far as that is certain.
func (g gatherer) sources(root *unstructured.Unstructured, ref decide.Reference) []plan.Need {
	var needs []plan.Need
	if name := dockyards.ClusterOf(root); name != "" {
		needs = append(needs, plan.Need{Resource: dockyards.Clusters, Namespace: root.GetNamespace(), Name: name})
	}
	if ref.Name != "" && decide.MayUse(root, ref.Namespace, g.settings.Settings, dockyards.Config{}) {
		needs = append(needs, plan.Need{Resource: kinds.WorkloadTemplates, Namespace: ref.Namespace, Name: ref.Name})
	}
	return needs
}

// decisive reads what is decided from. The config map may allow a namespace that the
// settings do not; a template that may not be used is not read.
func (g gatherer) decisive(ctx context.Context, r *read.Reader, ref decide.Reference, in decide.Input) (decide.Input, error) {
	if !decide.MayUse(in.Workload, ref.Namespace, g.settings.Settings, dockyards.Config{}) {
		config, err := r.Get(ctx, cluster.Management, kind.ConfigMaps, g.settings.ConfigMapNamespace, g.settings.ConfigMapName)
		if err != nil {
			return in, err
		}
		in.Config = dockyards.ReadConfig(config)
	}
	var err error
	if name := dockyards.ClusterOf(in.Workload); name != "" {
		if in.Cluster, err = r.Get(ctx, cluster.Management, dockyards.Clusters, in.Workload.GetNamespace(), name); err != nil {
			return in, err
		}
	}
	if ref.Name != "" && decide.MayUse(in.Workload, ref.Namespace, g.settings.Settings, in.Config) {
		in.Template, err = r.Get(ctx, cluster.Management, kinds.WorkloadTemplates, ref.Namespace, ref.Name)
	}
	return in, err
}
