package nodepoolprovisioner

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/functions/nodepool-provisioner/decide"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
)

// gatherer reads all that one decision about a NodePool needs.
type gatherer struct{ settings dockyards.Settings }

// reading is one gathering under way.
type reading struct {
	r    *read.Reader
	pool *unstructured.Unstructured
	in   decide.Input
	// err is the first error that ends the gathering.
	err error
}

// gather reads what may be written first (templates, what keeps the machines, the
// Cluster API Cluster) and what is decided from last (Cluster, config map, Release,
// DataSource, networks). Templates come before what names them: one that is named
// has been seen.
func (g gatherer) gather(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) (decide.Input, error) {
	x := &reading{r: r, pool: root, in: decide.Input{Settings: g.settings, Pool: root}}
	x.ahead(ctx)
	x.templates(ctx)
	x.machines(ctx)
	if !dockyards.Going(root) {
		x.clusters(ctx)
		x.config(ctx)
		x.release(ctx)
		x.networks(ctx)
	}
	if x.err != nil {
		return decide.Input{}, x.err
	}
	return x.in, nil
}

// ahead starts the reads that every pass over a pool makes, so that they take the
// time of one.
func (x *reading) ahead(ctx context.Context) {
	ns, name := x.pool.GetNamespace(), x.pool.GetName()
	if dockyards.Going(x.pool) {
		return
	}
	needs := []plan.Need{
		{Resource: dockyards.KubevirtMachineTemplates, Namespace: ns, Name: name},
		x.labelled(dockyards.KubevirtMachineTemplates),
		{Resource: x.keeper(), Namespace: ns, Name: name},
		{Resource: kind.ConfigMaps, Namespace: x.in.Settings.ConfigMapNamespace, Name: x.in.Settings.ConfigMapName},
		{Resource: dockyards.Releases},
	}
	if !x.controlPlane() {
		needs = append(needs, plan.Need{Resource: dockyards.TalosConfigTemplates, Namespace: ns, Name: name}, x.labelled(dockyards.TalosConfigTemplates))
	}
	if owner := dockyards.ClusterOf(x.pool); owner != "" {
		needs = append(needs, plan.Need{Resource: dockyards.Clusters, Namespace: ns, Name: owner}, plan.Need{Resource: dockyards.CAPIClusters, Namespace: ns, Name: owner})
	}
	if x.in.Settings.Multus {
		needs = append(needs, plan.Need{Resource: dockyards.NetworkAttachmentDefinitions, Namespace: ns})
	}
	x.r.Ahead(ctx, needs...)
}

// labelled asks for the pool's own objects. A name that is no label's value selects
// what carries that label at all, which is none of the pool's.
func (x *reading) labelled(res kind.Resource) plan.Need {
	name := x.pool.GetName()
	if len(validation.IsValidLabelValue(name)) > 0 {
		name = ""
	}
	return plan.Need{Resource: res, Namespace: x.pool.GetNamespace(), Selector: v1alpha3.LabelNodePoolName + "=" + name}
}

func (x *reading) controlPlane() bool {
	is, _, _ := unstructured.NestedBool(x.pool.Object, "spec", "controlPlane")
	return is
}

// keeper is the resource of what keeps the pool's machines.
func (x *reading) keeper() kind.Resource {
	if x.controlPlane() {
		return dockyards.TalosControlPlanes
	}
	return dockyards.MachineDeployments
}

// templates reads those that may be the pool's: by label, and the one of its name,
// which upstream made without labels. Of a pool that goes, those of either type.
func (x *reading) templates(ctx context.Context) {
	x.in.MachineTemplates = x.family(ctx, decide.PartTemplate, dockyards.KubevirtMachineTemplates)
	if x.controlPlane() && !dockyards.Going(x.pool) {
		return
	}
	x.in.ConfigTemplates = x.family(ctx, decide.PartConfig, dockyards.TalosConfigTemplates)
	x.in.ConfigVersion = x.version(ctx, decide.PartConfig, dockyards.TalosConfigTemplates)
}

func (x *reading) family(ctx context.Context, part decide.Part, res kind.Resource) []unstructured.Unstructured {
	need := x.labelled(res)
	all := x.list(ctx, part, need.Resource, need.Namespace, need.Selector)
	return add(all, x.get(ctx, part, res, need.Namespace, x.pool.GetName()))
}

// machines reads what keeps the pool's machines, and the templates that it names.
func (x *reading) machines(ctx context.Context) {
	ns := x.pool.GetNamespace()
	x.in.Machines = x.get(ctx, decide.PartMachines, x.keeper(), ns, x.pool.GetName())
	infrastructure, bootstrap := decide.References(x.in.Machines)
	if infrastructure != "" && !has(x.in.MachineTemplates, infrastructure) {
		x.in.MachineTemplates = add(x.in.MachineTemplates, x.get(ctx, decide.PartTemplate, dockyards.KubevirtMachineTemplates, ns, infrastructure))
	}
	if bootstrap != "" && !has(x.in.ConfigTemplates, bootstrap) {
		x.in.ConfigTemplates = add(x.in.ConfigTemplates, x.get(ctx, decide.PartConfig, dockyards.TalosConfigTemplates, ns, bootstrap))
	}
	if !x.controlPlane() && x.in.Machines == nil {
		x.in.MachinesVersion = x.version(ctx, decide.PartMachines, dockyards.MachineDeployments)
	}
	var patches []string
	patches = append(patches, decide.StoredPatches(x.in.Machines)...)
	for i := range x.in.ConfigTemplates {
		patches = append(patches, decide.StoredPatches(&x.in.ConfigTemplates[i])...)
	}
	x.r.Conceal(decide.Concealed(dockyards.Config{}, patches)...)
}

// clusters reads the pool's Cluster and that of Cluster API.
func (x *reading) clusters(ctx context.Context) {
	name := dockyards.ClusterOf(x.pool)
	if name == "" || x.err != nil {
		return
	}
	x.in.CAPICluster = x.get(ctx, decide.PartReference, dockyards.CAPIClusters, x.pool.GetNamespace(), name)
	obj, err := x.r.Get(ctx, cluster.Management, dockyards.Clusters, x.pool.GetNamespace(), name)
	x.in.Cluster = obj
	x.block(err)
}

// config reads the shared config map. Without an answer nothing can be decided, since
// what is not there is another thing than what cannot be read.
func (x *reading) config(ctx context.Context) {
	if x.err != nil {
		return
	}
	obj, err := x.r.Get(ctx, cluster.Management, kind.ConfigMaps, x.in.Settings.ConfigMapNamespace, x.in.Settings.ConfigMapName)
	x.in.Config = dockyards.ReadConfig(obj)
	x.r.Conceal(decide.Concealed(x.in.Config, nil)...)
	x.block(err)
}

// block notes a read without which nothing can be decided.
func (x *reading) block(err error) {
	var f *fault.Fault
	switch {
	case err == nil || x.in.Blocked != nil:
	case errors.As(err, &f):
		x.in.Blocked = f
	default:
		x.err = err
	}
}

// release reads what machines boot from: the Release that the pool names if it can be
// used, else the default, with its DataSource and the image behind that.
func (x *reading) release(ctx context.Context) {
	if ns, name, ok := decide.ReleaseRef(x.pool); ok {
		if release := x.get(ctx, decide.PartTemplate, dockyards.Releases, ns, name); decide.Installs(release) {
			x.in.Release = release
		}
	}
	if x.in.Release == nil {
		all := x.list(ctx, decide.PartTemplate, dockyards.Releases, "", "")
		x.in.Release, x.in.Several = dockyards.DefaultRelease(all, x.in.Settings.ConfigMapNamespace)
	}
	if x.in.Release == nil {
		return
	}
	x.in.DataSource = x.get(ctx, decide.PartTemplate, dockyards.DataSources, x.in.Release.GetNamespace(), x.in.Release.GetName())
	if ns, name, ok := decide.ImageOf(x.in.DataSource); ok {
		x.in.Image = x.get(ctx, decide.PartTemplate, dockyards.DataVolumes, ns, name)
	}
}

// networks reads the definitions of the pool's namespace, if machines join them.
func (x *reading) networks(ctx context.Context) {
	if !x.in.Settings.Multus || x.err != nil {
		return
	}
	x.in.Networks = x.list(ctx, decide.PartTemplate, dockyards.NetworkAttachmentDefinitions, x.pool.GetNamespace(), "")
	if len(x.in.Networks) > 0 || x.err != nil {
		return
	}
	served, err := x.r.Serves(ctx, cluster.Management, dockyards.NetworkAttachmentDefinitions)
	x.note(decide.PartTemplate, err)
	x.in.NetworksNotServed = !served
}

func (x *reading) get(ctx context.Context, part decide.Part, res kind.Resource, namespace, name string) *unstructured.Unstructured {
	if x.err != nil {
		return nil
	}
	obj, err := x.r.Get(ctx, cluster.Management, res, namespace, name)
	x.note(part, err)
	return obj
}

func (x *reading) list(ctx context.Context, part decide.Part, res kind.Resource, namespace, selector string) []unstructured.Unstructured {
	if x.err != nil {
		return nil
	}
	items, err := x.r.List(ctx, cluster.Management, res, namespace, selector)
	x.note(part, err)
	return items
}

// version is the version in which new objects are written.
func (x *reading) version(ctx context.Context, part decide.Part, res kind.Resource) string {
	if x.err != nil {
		return ""
	}
	version, err := x.r.Version(ctx, cluster.Management, res)
	x.note(part, err)
	return version
}

// note sorts an error: what the server refuses is part of the input, everything else
// ends the gathering.
func (x *reading) note(part decide.Part, err error) {
	if err == nil || x.err != nil {
		return
	}
	var f *fault.Fault
	if errors.As(err, &f) && (f.Class == fault.Refused || f.Class == fault.NotServed) {
		x.in.Refused = append(x.in.Refused, decide.Refusal{Part: part, Fault: *f})
		return
	}
	x.err = err
}

func add(objects []unstructured.Unstructured, obj *unstructured.Unstructured) []unstructured.Unstructured {
	if obj == nil || has(objects, obj.GetName()) {
		return objects
	}
	return append(objects, *obj)
}

func has(objects []unstructured.Unstructured, name string) bool {
	for i := range objects {
		if objects[i].GetName() == name {
			return true
		}
	}
	return false
}
