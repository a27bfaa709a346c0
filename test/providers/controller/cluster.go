package controller

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const apiPort = 6443

// cluster adopts what a Cluster refers to, and says when it is there.
func (p *player) cluster(ctx context.Context, cluster *unstructured.Unstructured) error {
	infrastructure, err := p.infrastructure(ctx, cluster)
	if err != nil {
		return err
	}
	initialized, err := p.control(ctx, cluster)
	if err != nil {
		return err
	}
	status := map[string]any{}
	if p.clusters.Version == "v1beta1" {
		status["infrastructureReady"], status["controlPlaneReady"] = infrastructure, initialized
		return p.say(ctx, p.clusters, cluster, status)
	}
	initialization := map[string]any{}
	if infrastructure {
		initialization["infrastructureProvisioned"] = true
	}
	if initialized {
		initialization["controlPlaneInitialized"] = true
	}
	if len(initialization) > 0 {
		status["initialization"] = initialization
	}
	return p.say(ctx, p.clusters, cluster, status)
}

// infrastructure plays the KubeVirt provider's half of a cluster: the Service of the
// API server, and a KubevirtCluster that is ready.
func (p *player) infrastructure(ctx context.Context, cluster *unstructured.Unstructured) (bool, error) {
	name := text(cluster, "spec", "infrastructureRef", "name")
	if name == "" {
		return false, nil
	}
	infrastructure, err := p.adopted(ctx, p.kubevirtClusters, cluster, name)
	if infrastructure == nil || err != nil {
		return false, err
	}
	service := object(p.services, "Service", cluster.GetNamespace(), cluster.GetName()+"-lb", infrastructure,
		map[string]string{labelCluster: cluster.GetName()}, map[string]any{
			"ports":    []any{map[string]any{"name": "api", "port": int64(apiPort), "targetPort": int64(apiPort), "protocol": "TCP"}},
			"selector": map[string]any{labelCluster: cluster.GetName(), "cluster.x-k8s.io/role": "control-plane"},
		})
	service, err = p.ensure(ctx, p.services, service)
	if err != nil {
		return false, err
	}
	if text(infrastructure, "spec", "controlPlaneEndpoint", "host") == "" {
		if err := p.patch(ctx, p.kubevirtClusters, infrastructure, map[string]any{"spec": map[string]any{
			"controlPlaneEndpoint": map[string]any{"host": text(service, "spec", "clusterIP"), "port": apiPort},
		}}); err != nil {
			return false, err
		}
		// Nothing watches KubevirtClusters: the pass that makes it ready must not wait
		// for somebody to touch the Cluster.
		return false, errAwaited
	}
	return true, p.say(ctx, p.kubevirtClusters, infrastructure, map[string]any{"ready": true})
}

// control tells whether the control plane that a Cluster refers to has a machine.
func (p *player) control(ctx context.Context, cluster *unstructured.Unstructured) (bool, error) {
	name := text(cluster, "spec", "controlPlaneRef", "name")
	if name == "" {
		return false, nil
	}
	plane, err := p.adopted(ctx, p.controlPlanes, cluster, name)
	if plane == nil || err != nil {
		return false, err
	}
	return number(plane, "status", "readyReplicas") > 0, nil
}

// adopted is an object of a Cluster once it belongs to it: nil where there is none.
func (p *player) adopted(ctx context.Context, kind schema.GroupVersionResource, cluster *unstructured.Unstructured, name string) (*unstructured.Unstructured, error) {
	obj, err := p.client.Resource(kind).Namespace(cluster.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errAwaited
	}
	if err != nil {
		return nil, err
	}
	wrote, err := p.adopt(ctx, kind, obj, cluster, true)
	if err != nil || !wrote {
		return obj, err
	}
	return p.client.Resource(kind).Namespace(cluster.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
}
