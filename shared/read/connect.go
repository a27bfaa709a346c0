package read

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Connect makes a remote cluster known under a name, by the kubeconfig in a
// Secret of the management cluster, as it is now: a rotated one is used from
// the next reconcile on. The kubeconfig itself stays in the vault. An error is
// a *fault.Fault of the management cluster; what is wrong with Secret or
// kubeconfig is part of the answer.
func (r *Reader) Connect(ctx context.Context, name, secretNamespace, secretName, key string) (plan.Connection, error) {
	if r.tape != nil {
		return r.playConnection(ctx, name, secretNamespace, secretName)
	}
	connection, err := r.connect(ctx, name, secretNamespace, secretName, key)
	if err != nil {
		return plan.Connection{}, err
	}
	r.note(Record{Need: plan.Need{Cluster: name}, Connection: &connection})
	return connection, nil
}

func (r *Reader) connect(ctx context.Context, name, secretNamespace, secretName, key string) (plan.Connection, error) {
	if secretName == "" {
		return refused(plan.SecretNotFound, "no Secret is named: name the one with the kubeconfig"), nil
	}
	secret, err := r.Get(ctx, cluster.Management, kind.Secrets, secretNamespace, secretName)
	var f *fault.Fault
	switch {
	case errors.As(err, &f) && f.Class == fault.Refused:
		return refused(plan.SecretForbidden, "Secret %q in namespace %q cannot be read: %s", secretName, secretNamespace, f.Message), nil
	case err != nil:
		return plan.Connection{}, err
	case secret == nil:
		return refused(plan.SecretNotFound, "Secret %q in namespace %q does not exist: create it with the kubeconfig under key %q",
			secretName, secretNamespace, key), nil
	}
	data, _, _ := unstructured.NestedFieldNoCopy(secret.Object, "data")
	entries, _ := data.(map[string]any)
	token, found := entries[key].(string)
	if !found {
		return refused(plan.KeyMissing, "Secret %q in namespace %q has no key %q: put the kubeconfig there", secretName, secretNamespace, key), nil
	}
	if err := r.clusters.Connect(name, []byte(r.vault.Open(token))); err != nil {
		return refused(plan.KubeconfigInvalid, "the kubeconfig in key %q of Secret %q in namespace %q is refused: %s",
			key, secretName, secretNamespace, r.vault.Scrub(err.Error())), nil
	}
	client, err := r.clusters.Client(name)
	if err != nil {
		return plan.Connection{}, err
	}
	for _, credential := range client.Secrets() {
		r.vault.Seal(credential)
	}
	return plan.Connection{Server: client.Server()}, nil
}

func refused(why plan.Refusal, format string, args ...any) plan.Connection {
	return plan.Connection{Refused: why, Message: fmt.Sprintf(format, args...)}
}

// AheadClusterUID starts the read that ClusterUID will need, if it needs one.
func (r *Reader) AheadClusterUID(ctx context.Context, clusterName string) {
	client, err := r.clusters.Client(clusterName)
	if err != nil || client.UID() != "" {
		return
	}
	r.Ahead(ctx, plan.Need{Cluster: clusterName, Resource: kind.Namespaces, Name: metav1.NamespaceSystem})
}
