package reconcile

import (
	"context"
	"errors"
	"log/slog"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/apply"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/vault"
)

// collect removes children whose owner is truly gone: a copy of the function
// that was killed or paused between two writes may have left one. A child is
// only touched when its marks name this very installation and a live read
// finds no object with the owner's UID.
func (h *Host) collect(ctx context.Context, log *slog.Logger) (plan.Class, string) {
	if len(h.spec.Children) == 0 {
		return plan.Done, ""
	}
	v := vault.New()
	reader := read.New(h.clusters, v)
	installation, err := reader.ClusterUID(ctx, cluster.Management)
	if err != nil || installation == "" {
		log.Debug("orphans are not looked for", "detail", "the installation has no identity: namespace kube-system cannot be read")
		return plan.Done, ""
	}
	owners, err := h.owners(ctx, reader)
	if err != nil {
		return plan.Retry, err.Error()
	}
	var doomed []plan.Entry
	for _, children := range h.spec.Children {
		items, err := reader.List(ctx, cluster.Management, children.Resource, "", children.Selector)
		if err != nil {
			return plan.Retry, err.Error()
		}
		for i := range items {
			orphan, err := h.orphan(ctx, reader, children, &items[i], installation, owners)
			if err != nil {
				return plan.Retry, err.Error()
			}
			if orphan {
				doomed = append(doomed, plan.Entry{
					Verb: plan.Delete, Resource: children.Resource, Base: &items[i],
					Reason: "its " + h.spec.Reconciles.Kind + " is gone",
				})
			}
		}
	}
	return h.remove(ctx, v, doomed, log)
}

func (h *Host) remove(ctx context.Context, v *vault.Vault, doomed []plan.Entry, log *slog.Logger) (plan.Class, string) {
	writer := &apply.Writer{
		Clusters: h.clusters, Vault: v, Manager: h.spec.FieldManager(), Log: log,
		Wrote: func(entry plan.Entry, done plan.Result) { h.metrics.Wrote(string(done), entry.Resource.String()) },
	}
	stage := plan.Plan{}
	stage.Add("orphans", doomed...)
	outcomes, err := writer.Run(ctx, stage)
	if err != nil && !errors.Is(err, apply.ErrConflict) {
		return plan.Retry, err.Error()
	}
	if failed := outcomes.Faults(); err == nil && len(failed) > 0 {
		return plan.Retry, failed[0].Fault.Error()
	}
	return plan.Done, ""
}

// owners lists the UIDs of all reconciled objects; what is not among them is
// read live before anything is believed of it.
func (h *Host) owners(ctx context.Context, reader *read.Reader) (map[Key]string, error) {
	items, err := reader.List(ctx, cluster.Management, h.spec.Reconciles, "", "")
	if err != nil {
		return nil, err
	}
	owners := make(map[Key]string, len(items))
	for i := range items {
		owners[Key{Namespace: items[i].GetNamespace(), Name: items[i].GetName()}] = string(items[i].GetUID())
	}
	return owners, nil
}

func (h *Host) orphan(ctx context.Context, reader *read.Reader, children Children, child *unstructured.Unstructured, installation string, owners map[Key]string) (bool, error) {
	owner, uid, made, ok := children.Owner(child)
	if !ok || made != installation || uid == "" || child.GetDeletionTimestamp() != nil {
		return false, nil
	}
	if owners[owner] == uid {
		return false, nil
	}
	root, err := reader.Get(ctx, cluster.Management, h.spec.Reconciles, owner.Namespace, owner.Name)
	if err != nil {
		return false, err
	}
	// An owner of another UID under the same name may adopt the child: that is
	// for its own reconcile to say.
	return root == nil, nil
}
