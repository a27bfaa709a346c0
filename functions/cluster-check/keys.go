package clustercheck

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/cluster-check/decide"
	"github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// mapper tells which KubevirtConfigs an event concerns.
type mapper struct{ settings decide.Settings }

// ofConfig: itself. All others too, if they are compared with it: its status
// tells of other versions, or that it can be a yardstick no more. Nobody is
// compared with one of the others, so their own status wakes none but them, and
// the circle ends.
func (m mapper) ofConfig(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	keys := []reconcile.Key{{Namespace: e.Namespace, Name: e.Name}}
	if e.Namespace != "" && e.Namespace != m.settings.ConfigsNamespace {
		return keys, nil
	}
	configs, err := r.List(ctx, decide.Management, kinds.KubevirtConfigs, "", "")
	if err != nil {
		return nil, err
	}
	for _, name := range decide.Concerned(e.Name, configs, m.settings)[1:] {
		keys = append(keys, reconcile.Key{Namespace: e.Namespace, Name: name})
	}
	return keys, nil
}

// ofSecret: those whose kubeconfig it holds.
func (m mapper) ofSecret(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	return m.those(ctx, r, func(config *unstructured.Unstructured) bool {
		ns, name := decide.KubeconfigSecret(config, m.settings)
		return ns == e.Namespace && name == e.Name
	})
}

// connected: the one of that name.
func (m mapper) connected(ctx context.Context, r *read.Reader, cluster string) ([]reconcile.Key, error) {
	return m.those(ctx, r, func(config *unstructured.Unstructured) bool { return config.GetName() == cluster })
}

func (m mapper) those(ctx context.Context, r *read.Reader, concerned func(*unstructured.Unstructured) bool) ([]reconcile.Key, error) {
	configs, err := r.List(ctx, decide.Management, kinds.KubevirtConfigs, "", "")
	if err != nil {
		return nil, err
	}
	var keys []reconcile.Key
	for _, config := range decide.Counted(configs, m.settings) {
		if concerned(config) {
			keys = append(keys, reconcile.Key{Namespace: config.GetNamespace(), Name: config.GetName()})
		}
	}
	return keys, nil
}
