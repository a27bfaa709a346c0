package workloadrouter

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/functions/workload-router/decide"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// candidates are Workloads as an event's mapping looks at them.
var candidates = dockyards.Workloads.Without("spec", "metadata.managedFields", "metadata.annotations")

// mapper tells which Workloads an event concerns. Names of Workloads that do not
// exist are harmless.
type mapper struct{ settings Settings }

// concerned tells whether an event concerns a Workload.
type concerned func(workload *unstructured.Unstructured) bool

func everyone(*unstructured.Unstructured) bool { return true }

// among are those Workloads that an event concerns, of a namespace or of all, and of
// a Cluster or of all.
func (m mapper) among(ctx context.Context, r *read.Reader, namespace, clusterName string, is concerned) ([]reconcile.Key, error) {
	selector := ""
	if clusterName != "" {
		if len(validation.IsValidLabelValue(clusterName)) > 0 {
			return nil, nil // nothing can carry it
		}
		selector = v1alpha3.LabelClusterName + "=" + clusterName
	}
	workloads, err := r.Find(ctx, plan.Need{Resource: candidates, Namespace: namespace, Selector: selector, Only: is})
	if err != nil {
		return nil, err
	}
	var keys []reconcile.Key
	for i := range workloads {
		keys = append(keys, reconcile.Key{Namespace: workloads[i].GetNamespace(), Name: workloads[i].GetName()})
	}
	return keys, nil
}

// ofWorkload: itself.
func (m mapper) ofWorkload(_ context.Context, _ *read.Reader, e event.Event) ([]reconcile.Key, error) {
	return []reconcile.Key{{Namespace: e.Namespace, Name: e.Name}}, nil
}

// ofCluster: the Workloads of the Cluster, and of those that have a zone in common
// with it. A Cluster that is gone, or that gave up a zone, has nothing in common with
// those that waited for it any more: these say so themselves.
func (m mapper) ofCluster(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	clusters, err := r.Find(ctx, plan.Need{Resource: zoneHolders, Only: func(cluster *unstructured.Unstructured) bool { return len(decide.Zones(cluster)) > 0 }})
	if err != nil {
		return nil, err
	}
	touched := map[reconcile.Key]bool{{Namespace: e.Namespace, Name: e.Name}: true}
	var zones []string
	for i := range clusters {
		if clusters[i].GetNamespace() == e.Namespace && clusters[i].GetName() == e.Name {
			zones = decide.Zones(&clusters[i])
		}
	}
	for i := range clusters {
		if slices.ContainsFunc(decide.Zones(&clusters[i]), func(zone string) bool { return slices.Contains(zones, zone) }) {
			touched[reconcile.Key{Namespace: clusters[i].GetNamespace(), Name: clusters[i].GetName()}] = true
		}
	}
	return m.among(ctx, r, "", "", func(workload *unstructured.Unstructured) bool {
		return touched[reconcile.Key{Namespace: workload.GetNamespace(), Name: decide.ClusterOf(workload)}] ||
			told(workload).Reason == v1alpha3.ReasonHostConflict
	})
}

// told is the condition of a Workload as it stands.
func told(workload *unstructured.Unstructured) (c struct{ Reason, Message string }) {
	have := v1alpha3.FindCondition(dockyards.Conditions(dockyards.Status(workload)), v1alpha3.ConditionWorkloadIngressReconciled)
	if have != nil {
		c.Reason, c.Message = have.Reason, have.Message
	}
	return c
}

// ofCAPICluster: it is called like its Cluster.
func (m mapper) ofCAPICluster(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	return m.among(ctx, r, e.Namespace, e.Name, everyone)
}

func (m mapper) ofGateway(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	if e.Namespace != m.settings.GatewayNamespace || e.Name != m.settings.GatewayName {
		return nil, nil
	}
	return m.among(ctx, r, "", "", everyone)
}

func (m mapper) ofConfigMap(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	if e.Namespace != m.settings.ConfigMapNamespace || e.Name != m.settings.ConfigMapName {
		return nil, nil
	}
	return m.among(ctx, r, "", "", everyone)
}

// ofSecret: the Workloads of the cluster whose kubeconfig it holds.
func (m mapper) ofSecret(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	clusterName, ok := dockyards.KubeconfigOf(e.Name)
	if !ok || e.Cluster != cluster.Management {
		return nil, nil
	}
	return m.among(ctx, r, e.Namespace, clusterName, everyone)
}

// connected: the Workloads of a workload cluster that came or went.
func (m mapper) connected(ctx context.Context, r *read.Reader, clusterName string) ([]reconcile.Key, error) {
	namespace, name, ok := dockyards.ParseRemoteName(clusterName)
	if !ok {
		return nil, nil
	}
	return m.among(ctx, r, namespace, name, everyone)
}

// child: the Workload that owns a mirror or a route; one that somebody else owns is
// nobody's here, like the many routes of API endpoints. Of one that is gone, or that
// nobody owns, the name tells whose it may be: a Workload may have waited for it.
func (m mapper) child(res kind.Resource) func(context.Context, *read.Reader, event.Event) ([]reconcile.Key, error) {
	return func(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
		if e.Cluster != cluster.Management {
			return nil, nil
		}
		obj, err := r.Get(ctx, cluster.Management, res, e.Namespace, e.Name)
		if err != nil {
			return nil, err
		}
		var keys []reconcile.Key
		if obj != nil {
			for _, ref := range obj.GetOwnerReferences() {
				if dockyards.Workloads.Is(ref.APIVersion, ref.Kind) {
					keys = append(keys, reconcile.Key{Namespace: e.Namespace, Name: ref.Name})
				}
			}
		}
		if len(keys) > 0 || (obj != nil && len(obj.GetOwnerReferences()) > 0) {
			return keys, nil
		}
		return m.among(ctx, r, e.Namespace, "", func(workload *unstructured.Unstructured) bool {
			return decide.MayBeFor(e.Name, workload.GetName())
		})
	}
}

// ofRemoteService: the Workload that the Service's label names in the namespace of
// the workload cluster, and those that may have mirrored the Service before.
func (m mapper) ofRemoteService(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	namespace, clusterName, ok := dockyards.ParseRemoteName(e.Cluster)
	if !ok {
		return nil, nil
	}
	labelled, answered, err := m.label(ctx, r, namespace, clusterName, e)
	if err != nil {
		return nil, err
	}
	if !answered {
		// They are told so, at the price of the one request that was just made.
		return m.among(ctx, r, namespace, clusterName, everyone)
	}
	mirrors, err := r.Find(ctx, plan.Need{Resource: dockyards.Services, Namespace: namespace, Only: mayMirror(e)})
	if err != nil {
		return nil, err
	}
	return m.among(ctx, r, namespace, clusterName, func(workload *unstructured.Unstructured) bool {
		return workload.GetName() == labelled || told(workload).Message != "" ||
			slices.ContainsFunc(mirrors, func(mirror unstructured.Unstructured) bool { return dockyards.OwnedBy(&mirror, workload) })
	})
}

// mayMirror tells which Services are Workloads' and may be mirrors of the Service of an
// event.
func mayMirror(e event.Event) func(mirror *unstructured.Unstructured) bool {
	return func(mirror *unstructured.Unstructured) bool {
		return slices.ContainsFunc(mirror.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return dockyards.Workloads.Is(ref.APIVersion, ref.Kind) && decide.MayMirror(mirror.GetName(), ref.Name, e.Namespace, e.Name)
		})
	}
}

// label is the Workload that a Service's label names now; empty if it has none, or
// is gone. Services may be listed, not read one by one. answered is false if the
// workload cluster did not tell.
func (m mapper) label(ctx context.Context, r *read.Reader, namespace, clusterName string, e event.Event) (name string, answered bool, err error) {
	remote, connection, err := connect(ctx, r, namespace, clusterName)
	if err != nil || connection.Refused != "" {
		return "", false, err
	}
	need := plan.Need{Cluster: remote, Resource: dockyards.Services, Namespace: e.Namespace, Selector: v1alpha3.LabelWorkloadName}
	bounds := read.Bounds{Page: 1, Objects: 1, Fields: "metadata.name=" + e.Name}
	found, _, unknown := r.Scan(ctx, need, bounds, func(service *unstructured.Unstructured) *unstructured.Unstructured {
		if service.GetName() != e.Name {
			return nil
		}
		part := &unstructured.Unstructured{Object: map[string]any{}}
		part.SetName(e.Name)
		part.SetLabels(map[string]string{v1alpha3.LabelWorkloadName: service.GetLabels()[v1alpha3.LabelWorkloadName]})
		return part
	})
	for i := range found {
		name = found[i].GetLabels()[v1alpha3.LabelWorkloadName]
	}
	return name, unknown == nil, nil
}
