package baselineapplier

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// mapper tells which part of the baseline an event concerns.
type mapper struct {
	settings decide.Settings
	catalog  catalog.Catalog
	left     *left
}

// of is a part of the one baseline there is.
func (m mapper) of(part string) []reconcile.Key {
	return []reconcile.Key{{Namespace: m.settings.HCONamespace, Name: decide.HCOName, Part: part}}
}

// ofHCO: the whole, for the one HyperConverged that counts, unless it is as it was left
// or only its status has changed.
func (m mapper) ofHCO(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	if e.Namespace != m.settings.HCONamespace || e.Name != decide.HCOName {
		return nil, nil
	}
	live, err := r.Get(ctx, decide.Management, kinds.HyperConvergeds, e.Namespace, e.Name)
	if err != nil || live == nil || m.asLeft(r, catalog.HCO, live) {
		return nil, err
	}
	state, err := m.state(ctx, r)
	if err != nil || state.Quiet(live, e.Received) {
		return nil, err
	}
	return m.of(decide.PartHCO), nil
}

// ofObject: the asset that the object belongs to, unless the object is as it was left.
// One read tells that of what this process has left, two of what another has; so the
// function's own writes wake nobody, not even while the call that made them is about to
// look at them again.
func (m mapper) ofObject(res kind.Resource) func(context.Context, *read.Reader, event.Event) ([]reconcile.Key, error) {
	return func(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
		if res.String() == kinds.PrometheusRules.String() && e.Namespace == decide.RuleNamespace && e.Name == decide.RuleName {
			return m.of(decide.PartAsset("descheduler-loadaware")), nil
		}
		asset, found := m.assetOf(res, e)
		if !found && m.mustGo(res, e) {
			return m.of(""), nil
		}
		if !found {
			return nil, nil
		}
		live, err := r.Get(ctx, decide.Management, res, e.Namespace, e.Name)
		if err != nil || m.asLeft(r, asset.Name, live) {
			return nil, err
		}
		state, err := m.state(ctx, r)
		if err != nil {
			return nil, err
		}
		if record := state.Assets[asset.Name]; record.Left(live) || record.Settling(live, e.Sent, e.Received) {
			return nil, nil
		}
		return m.of(decide.PartAsset(asset.Name)), nil
	}
}

// asLeft reports whether the process knows an asset's object to be as it left it. A replay
// knows what was read then, and nothing else.
func (m mapper) asLeft(r *read.Reader, asset string, live *unstructured.Unstructured) bool {
	return !r.Plays() && m.left.as(asset, live)
}

// assetOf is the asset that an event's object belongs to.
func (m mapper) assetOf(res kind.Resource, e event.Event) (catalog.Asset, bool) {
	i := slices.IndexFunc(m.catalog.Assets, func(a catalog.Asset) bool {
		return a.Resource().String() == res.String() && a.Object == e.Name && a.NamespaceIn(m.settings.HCONamespace) == e.Namespace
	})
	if i < 0 {
		return catalog.Asset{}, false
	}
	return m.catalog.Assets[i], true
}

// mustGo tells of an object that older catalogs made.
func (m mapper) mustGo(res kind.Resource, e event.Event) bool {
	return !e.Deleted && slices.ContainsFunc(m.catalog.Buried(), func(obj *unstructured.Unstructured) bool {
		return res.Is(obj.GetAPIVersion(), obj.GetKind()) && obj.GetName() == e.Name && obj.GetNamespace() == e.Namespace
	})
}

// ofDefinition: the assets that need it, if one of them waits for it, looks into it,
// or loses it.
func (m mapper) ofDefinition(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	part := decide.PartDefinition(e.Name)
	selected := decide.Selected(m.catalog, part)
	if len(selected) == 0 {
		return nil, nil
	}
	state, err := m.state(ctx, r)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(selected, func(a catalog.Asset) bool {
		record, known := state.Assets[a.Name]
		return !known || record.Missing != "" || a.NeedsSchema || e.Deleted
	}) {
		return m.of(part), nil
	}
	return nil, nil
}

// ofNode: the assets that depend on hardware, if the node can change what is known of
// it. Heartbeats cannot.
func (m mapper) ofNode(ctx context.Context, r *read.Reader, e event.Event) ([]reconcile.Key, error) {
	state, err := m.state(ctx, r)
	if err != nil {
		return nil, err
	}
	if state.Platform.Hardware == nil {
		return m.of(decide.PartNodes), nil
	}
	node, err := r.Get(ctx, decide.Management, kinds.Nodes, "", e.Name)
	if err != nil {
		return nil, err
	}
	if !decide.Matters(state.Platform.Hardware, e.Name, node) {
		return nil, nil
	}
	return m.of(decide.PartNodes), nil
}

func (m mapper) state(ctx context.Context, r *read.Reader) (decide.State, error) {
	namespace, name := decide.Memory(m.settings)
	memory, err := r.Get(ctx, decide.Management, kind.ConfigMaps, namespace, name)
	return decide.ReadState(memory), err
}
