package releaseimporter

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/functions/release-importer/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
)

// gatherer reads all that one decision about a Release needs.
type gatherer struct{ settings dockyards.Settings }

// gather reads what may be written first (images, DataSource, rights) and what is
// decided from last (NodePools). What images are cloned to is read only if the
// decision asks for it.
func (g gatherer) gather(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) (decide.Input, error) {
	in := decide.Input{Settings: g.settings, Release: root}
	plain, hashed, ok := decide.Names(root)
	if !ok {
		return in, nil
	}
	ns, name := root.GetNamespace(), root.GetName()
	need := func(res kind.Resource, name string) plan.Need {
		return plan.Need{Resource: res, Namespace: ns, Name: name}
	}
	selector := v1alpha3.LabelReleaseName + "=" + name
	r.Ahead(ctx,
		plan.Need{Resource: dockyards.DataVolumes, Namespace: ns, Selector: selector},
		need(dockyards.DataVolumes, plain), need(dockyards.DataVolumes, hashed), need(dockyards.DataSources, name),
		need(dockyards.Roles, name), need(dockyards.RoleBindings, name), plan.Need{Resource: pools},
	)
	x := &reading{ctx: ctx, r: r, ns: ns}
	in.Images = x.list(dockyards.DataVolumes, ns, selector)
	in.Images = with(in.Images, x.get(dockyards.DataVolumes, plain))
	in.Images = with(in.Images, x.get(dockyards.DataVolumes, hashed))
	in.DataSource = x.get(dockyards.DataSources, name)
	if left := decide.ImageOf(in.DataSource); left != "" && !has(in.Images, left) {
		in.Images = with(in.Images, x.get(dockyards.DataVolumes, left))
	}
	in.Role = x.get(dockyards.Roles, name)
	in.RoleBinding = x.get(dockyards.RoleBindings, name)
	in.NodePools = x.list(pools, "", "")
	in.Served = x.serves(dockyards.DataVolumes, in.Images)
	return in, x.err
}

// pools are all NodePools of the installation, of which only where they are counts.
var pools = dockyards.NodePools.Metadata("metadata.managedFields")

// reading is one gathering under way. The first error ends it.
type reading struct {
	ctx context.Context
	r   *read.Reader
	ns  string
	err error
}

func (x *reading) get(res kind.Resource, name string) *unstructured.Unstructured {
	if x.err != nil {
		return nil
	}
	var obj *unstructured.Unstructured
	obj, x.err = x.r.Get(x.ctx, "", res, x.ns, name)
	return obj
}

func (x *reading) list(res kind.Resource, namespace, selector string) []unstructured.Unstructured {
	if x.err != nil {
		return nil
	}
	var items []unstructured.Unstructured
	items, x.err = x.r.List(x.ctx, "", res, namespace, selector)
	return items
}

// serves reports whether a resource is served; objects of it are proof enough.
func (x *reading) serves(res kind.Resource, seen []unstructured.Unstructured) bool {
	if x.err != nil || len(seen) > 0 {
		return true
	}
	var served bool
	served, x.err = x.r.Serves(x.ctx, "", res)
	return served
}

func with(objects []unstructured.Unstructured, obj *unstructured.Unstructured) []unstructured.Unstructured {
	if obj == nil || has(objects, obj.GetName()) {
		return objects
	}
	return append(objects, *obj)
}

func has(objects []unstructured.Unstructured, name string) bool {
	return slices.ContainsFunc(objects, func(obj unstructured.Unstructured) bool { return obj.GetName() == name })
}
