package baselineapplier

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/read"
)

// gatherer reads what every decision starts from; what single assets depend on, the
// decision asks for itself.
type gatherer struct {
	settings decide.Settings
	catalog  catalog.Catalog
	// left is nil where nothing is written.
	left *left
}

// whole is for everything.
func (g gatherer) whole(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) (decide.Input, error) {
	return g.part(ctx, r, root, "")
}

// part reads the record, and the nodes where they matter and are not known by it.
func (g gatherer) part(ctx context.Context, r *read.Reader, root *unstructured.Unstructured, part string) (decide.Input, error) {
	in := decide.Input{Settings: g.settings, Catalog: g.catalog, HCO: root, Part: part}
	if !decide.Counts(root, g.settings) {
		return in, nil
	}
	if g.left != nil {
		g.left.begin(ctx, part)
	}
	namespace, name := decide.Memory(g.settings)
	var err error
	if in.Memory, err = r.Get(ctx, decide.Management, kind.ConfigMaps, namespace, name); err != nil {
		return in, err
	}
	selected := decide.Selected(g.catalog, part)
	if !slices.ContainsFunc(selected, catalog.Asset.UsesHardware) {
		return in, nil
	}
	if in.Hardware = decide.ReadState(in.Memory).Platform.Hardware; in.Hardware != nil && part != "" && part != decide.PartNodes {
		return in, nil
	}
	return in, g.hardware(ctx, r, &in)
}

// hardware looks at all nodes. Nodes that cannot be listed leave the assets which
// depend on them as they are.
func (g gatherer) hardware(ctx context.Context, r *read.Reader, in *decide.Input) error {
	nodes, err := r.List(ctx, decide.Management, kinds.Nodes, "", "")
	var f *fault.Fault
	if errors.As(err, &f) {
		in.Hardware, in.HardwareProblem = nil, "the nodes cannot be listed: "+f.Cause()
		return nil
	}
	if err != nil {
		return err
	}
	in.Hardware, in.Listed = decide.Providers(nodes), true
	return nil
}
