package workloadrenderer

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/functions/workload-renderer/decide"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/render"
)

// ofTemplate: the Workloads whose reference leads to the template. Name and namespace
// decide; what else stands in a reference says nothing.
func ofTemplate(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	return workloads(ctx, r, "", func(workload *unstructured.Unstructured) bool {
		ref, ok := decide.TemplateOf(workload)
		return ok && ref == decide.Reference{Namespace: e.Namespace, Name: e.Name}
	})
}

// ofCluster: the Workloads that name it as owner or by label.
func ofCluster(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	return workloads(ctx, r, e.Namespace, func(workload *unstructured.Unstructured) bool {
		return dockyards.OwnerName(workload, dockyards.Clusters) == e.Name || workload.GetLabels()[v1alpha3.LabelClusterName] == e.Name
	})
}

// mapper tells whose an applied object is.
type mapper struct {
	res     kind.Resource
	allowed []kind.Resource
}

// ofChild: the object says whose it is, by its controller or its labels. Of one that
// is gone, the inventories do.
func (m mapper) ofChild(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	obj, err := r.Get(ctx, cluster.Management, m.res, e.Namespace, e.Name)
	if err != nil {
		return nil, err
	}
	if obj == nil {
		return m.ofGone(ctx, r, e)
	}
	if !m.res.Namespaced {
		namespace, name, ok := strings.Cut(obj.GetAnnotations()[render.AnnotationOwner], "/")
		if !ok {
			return nil, nil
		}
		return []reconcile.Key{{Namespace: namespace, Name: name}}, nil
	}
	if controller := metav1.GetControllerOfNoCopy(obj); controller != nil {
		if !dockyards.Workloads.Is(controller.APIVersion, controller.Kind) {
			return nil, nil
		}
		return []reconcile.Key{{Namespace: e.Namespace, Name: controller.Name}}, nil
	}
	if name := obj.GetLabels()[v1alpha3.LabelWorkloadName]; name != "" {
		return []reconcile.Key{{Namespace: e.Namespace, Name: name}}, nil
	}
	return nil, nil
}

func (m mapper) ofGone(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	return workloads(ctx, r, e.Namespace, func(workload *unstructured.Unstructured) bool {
		return decide.Records(workload, m.allowed, m.res, e.Name)
	})
}

// workloads are those of a namespace, or of all, that an event concerns.
func workloads(ctx context.Context, r *read.Reader, namespace string, concerned func(*unstructured.Unstructured) bool) ([]reconcile.Key, error) {
	found, err := r.Find(ctx, plan.Need{Resource: dockyards.Workloads, Namespace: namespace, Only: concerned})
	if err != nil {
		return nil, err
	}
	var keys []reconcile.Key
	for i := range found {
		key := reconcile.Key{Namespace: found[i].GetNamespace(), Name: found[i].GetName()}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}
