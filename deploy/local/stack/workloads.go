package stack

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/shared/dockyards"
)

// others are all clusters but the supervisor.
func (s *Stack) others() []*Remote {
	return slices.DeleteFunc(slices.Concat(s.Remotes, s.Workloads), func(r *Remote) bool { return r == nil })
}

// introduceWorkloads hands over the kubeconfigs of the workload clusters, as their
// control planes' provider does.
func (s *Stack) introduceWorkloads(ctx context.Context) error {
	for _, workload := range s.Workloads {
		content, err := workload.Cluster.AdminKubeconfig()
		if err != nil {
			return err
		}
		if err := s.HandOver(ctx, workload, content); err != nil {
			return err
		}
	}
	return nil
}

// HandOver puts a kubeconfig of a workload cluster where Cluster API keeps it.
func (s *Stack) HandOver(ctx context.Context, workload *Remote, kubeconfig []byte) error {
	namespace, name, ok := dockyards.ParseRemoteName(workload.Name)
	if !ok {
		return fmt.Errorf("cannot hand over workload cluster %q: call it like its Cluster, namespace/name", workload.Name)
	}
	home := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
	}}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
		"metadata": map[string]any{
			"name": dockyards.KubeconfigSecret(name), "namespace": namespace, "labels": map[string]any{dockyards.LabelCAPIClusterName: name},
		},
		"stringData": map[string]any{dockyards.KubeconfigKey: string(kubeconfig)},
	}}
	return kube.Apply(ctx, s.Cluster.Config, home, secret)
}
