package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/apply"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/vault"
)

// collect removes children whose owner is truly gone: a copy of the function
// that was killed or paused between two writes may have left one. A child is
// only touched when its marks name this very installation and a live read
// finds no object with the owner's UID.
func (h *Host) collect(ctx context.Context, log *slog.Logger) (plan.Class, string) {
	if len(h.spec.Children) == 0 || h.mode != ModeApply {
		return plan.Done, ""
	}
	v := vault.New()
	clusters := h.clusters.View()
	reader := read.New(clusters, v)
	installation := ""
	if !h.onlyLocal() {
		var err error
		if installation, err = reader.ClusterUID(ctx, cluster.Management); err != nil || installation == "" {
			log.Debug("orphans are not looked for", "detail", "the installation has no identity: namespace kube-system cannot be read")
			return plan.Done, ""
		}
	}
	owners, served, err := h.owners(ctx, reader)
	if err != nil {
		return plan.Retry, err.Error()
	}
	if !served {
		// No owner is known to be gone where owners cannot be seen.
		log.Warn("orphans are not looked for", "error", "the API server does not serve "+h.spec.Reconciles.String())
		return plan.Done, ""
	}
	names := []string{cluster.Management}
	if h.spec.Targets != nil {
		targets, err := h.spec.Targets(ctx, reader)
		if err != nil {
			return plan.Retry, err.Error()
		}
		names = append(names, targets...)
	}
	var doomed []plan.Entry
	for _, name := range names {
		found, err := h.orphans(ctx, reader, name, installation, owners)
		var f *fault.Fault
		if errors.As(err, &f) && f.Cluster != cluster.Management {
			log.Debug("orphans are not looked for", "cluster", name, "detail", f.Error())
			continue
		}
		if err != nil {
			return plan.Retry, err.Error()
		}
		doomed = append(doomed, found...)
	}
	return h.remove(ctx, clusters, v, doomed, log)
}

// bereaved removes, at once, local children of a key that names no object: it is woken by
// the end of the owner, and again by the end of each child that others waited for. What no
// event tells, the resync finds.
func (h *Host) bereaved(ctx context.Context, key Key, res result, log *slog.Logger) result {
	if h.mode != ModeApply || !slices.ContainsFunc(h.spec.Children, func(children Children) bool { return children.Of != nil }) {
		return res
	}
	v := vault.New()
	clusters := h.clusters.View()
	doomed, err := h.left(ctx, read.New(clusters, v), key)
	if err != nil {
		return retry(err.Error())
	}
	if class, message := h.remove(ctx, clusters, v, doomed, log); class == plan.Retry {
		return retry(message)
	}
	return res
}

// left are the children that an owner who is gone leaves behind and nobody uses.
func (h *Host) left(ctx context.Context, reader *read.Reader, key Key) ([]plan.Entry, error) {
	served, err := reader.Serves(ctx, cluster.Management, h.spec.Reconciles)
	if err != nil || !served {
		return nil, err // no owner is known to be gone where owners cannot be seen
	}
	var doomed []plan.Entry
	for _, children := range h.spec.Children {
		if !children.Local || children.Of == nil || children.Of(key) == "" {
			continue
		}
		found, err := reader.List(ctx, cluster.Management, children.Resource, key.Namespace, children.Of(key))
		if err != nil {
			return nil, err
		}
		for i := range found {
			child := &found[i]
			if owner, _, _, _ := children.Owner(child); owner != key || !children.suspect(child, "", nil) {
				continue
			}
			orphan, err := h.orphan(ctx, reader, cluster.Management, children, child)
			if err != nil {
				return nil, err
			}
			if orphan {
				doomed = append(doomed, h.doom(children, cluster.Management, child))
			}
		}
	}
	return doomed, nil
}

// doom is the end of an orphan.
func (h *Host) doom(children Children, clusterName string, child *unstructured.Unstructured) plan.Entry {
	return plan.Entry{
		Verb: plan.Delete, Cluster: clusterName, Resource: children.Resource, Base: child,
		Reason: "its " + h.spec.Reconciles.Kind + " is gone",
	}
}

// onlyLocal tells whether all children lie beside their owners: nothing of them
// depends on which installation this is.
func (h *Host) onlyLocal() bool {
	return !slices.ContainsFunc(h.spec.Children, func(children Children) bool { return !children.Local })
}

// suspect reports whether a child was made by the installation, for an owner that is
// not among those known.
func (c Children) suspect(child *unstructured.Unstructured, installation string, owners map[Key]string) bool {
	owner, uid, made, ok := c.Owner(child)
	ours := ok && (c.Local || made == installation && uid != "") && child.GetDeletionTimestamp() == nil
	mode, set := child.GetAnnotations()[AnnotationMode]
	known, there := owners[owner]
	return ours && (!there || uid != "" && known != uid) && (!set || mode == string(ModeApply))
}

// orphans are those on one cluster.
func (h *Host) orphans(ctx context.Context, reader *read.Reader, name, installation string, owners map[Key]string) ([]plan.Entry, error) {
	var doomed []plan.Entry
	for _, children := range h.spec.Children {
		if children.Local && name != cluster.Management {
			continue
		}
		var suspects []*unstructured.Unstructured
		_, err := reader.Each(ctx, name, children.Resource, children.Selector, func(child *unstructured.Unstructured) {
			if children.suspect(child, installation, owners) {
				suspects = append(suspects, child.DeepCopy())
			}
		})
		if err != nil {
			return nil, err
		}
		for _, child := range suspects {
			orphan, err := h.orphan(ctx, reader, name, children, child)
			if err != nil {
				return nil, err
			}
			if orphan {
				doomed = append(doomed, h.doom(children, name, child))
			}
		}
	}
	return doomed, nil
}

func (h *Host) remove(ctx context.Context, clusters *cluster.Set, v *vault.Vault, doomed []plan.Entry, log *slog.Logger) (plan.Class, string) {
	writer := &apply.Writer{
		Clusters: clusters, Vault: v, Manager: h.spec.FieldManager(), Log: log,
		Wrote: func(entry plan.Entry, done plan.Result) { h.metrics.Wrote(string(done), entry.Resource.String()) },
	}
	stage := plan.Plan{}
	stage.Add("orphans", doomed...)
	outcomes, err := writer.Run(ctx, stage)
	if err != nil && !errors.Is(err, apply.ErrConflict) {
		return plan.Retry, err.Error()
	}
	for _, failed := range outcomes.Faults() {
		if err == nil && failed.Fault.Cluster == cluster.Management {
			return plan.Retry, failed.Fault.Error()
		}
	}
	return plan.Done, ""
}

// owners lists the UIDs of all reconciled objects; what is not among them is
// read live before anything is believed of it.
func (h *Host) owners(ctx context.Context, reader *read.Reader) (owners map[Key]string, served bool, err error) {
	owners = map[Key]string{}
	served, err = reader.Each(ctx, cluster.Management, h.spec.Reconciles.Metadata(), "", func(obj *unstructured.Unstructured) {
		owners[Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}] = string(obj.GetUID())
	})
	return owners, served, err
}

// orphan looks live whether a child's owner is gone and nobody uses the child.
// An owner of another UID under the same name may adopt it: that is for its own
// reconcile to say.
func (h *Host) orphan(ctx context.Context, reader *read.Reader, clusterName string, children Children, child *unstructured.Unstructured) (bool, error) {
	owner, _, _, _ := children.Owner(child)
	root, err := reader.Get(ctx, cluster.Management, h.spec.Reconciles, owner.Namespace, owner.Name)
	if err != nil || root != nil || children.InUse == nil {
		return root == nil && err == nil, err
	}
	used, err := children.InUse(ctx, reader, clusterName, child)
	return !used && err == nil, err
}
