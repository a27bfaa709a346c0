// Package slipway is the whole set of functions as one Knative function, the
// small-cluster mode: `kn func deploy` at the root of the repository. Each
// function can also be deployed by itself, from functions/<name>.
package slipway

import (
	"slices"
	"strings"

	baselineapplier "github.com/slipway-dev/slipway/functions/baseline-applier"
	clusteranchor "github.com/slipway-dev/slipway/functions/cluster-anchor"
	clustercheck "github.com/slipway-dev/slipway/functions/cluster-check"
	helmreleasemirror "github.com/slipway-dev/slipway/functions/helmrelease-mirror"
	kustomizationmirror "github.com/slipway-dev/slipway/functions/kustomization-mirror"
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	nodecapacity "github.com/slipway-dev/slipway/functions/node-capacity"
	nodepoolprovisioner "github.com/slipway-dev/slipway/functions/nodepool-provisioner"
	organizationonboarder "github.com/slipway-dev/slipway/functions/organization-onboarder"
	releaseimporter "github.com/slipway-dev/slipway/functions/release-importer"
	workloadrenderer "github.com/slipway-dev/slipway/functions/workload-renderer"
	workloadrouter "github.com/slipway-dev/slipway/functions/workload-router"
	worktreemirror "github.com/slipway-dev/slipway/functions/worktree-mirror"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/render/worker"
)

// functions are all there are: how each is declared, and how it is made.
var functions = []struct {
	spec func() reconcile.Spec
	host func() *reconcile.Host
}{
	{baselineapplier.DefaultSpec, baselineapplier.New},
	{clusteranchor.DefaultSpec, clusteranchor.New},
	{clustercheck.DefaultSpec, clustercheck.New},
	{helmreleasemirror.DefaultSpec, helmreleasemirror.New},
	{kustomizationmirror.DefaultSpec, kustomizationmirror.New},
	{machinevm.DefaultSpec, machinevm.New},
	{nodecapacity.DefaultSpec, nodecapacity.New},
	{nodepoolprovisioner.DefaultSpec, nodepoolprovisioner.New},
	{organizationonboarder.DefaultSpec, organizationonboarder.New},
	{releaseimporter.DefaultSpec, releaseimporter.New},
	{workloadrenderer.DefaultSpec, workloadrenderer.New},
	{worktreemirror.DefaultSpec, worktreemirror.New},
	{workloadrouter.DefaultSpec, workloadrouter.New},
}

// New makes the function for Knative's middleware: one that hosts them all. When the
// process was started to render a template, this does nothing else, and never returns.
func New() *reconcile.Composite {
	worker.Hook()
	hosts := make([]*reconcile.Host, 0, len(functions))
	for _, f := range functions {
		hosts = append(hosts, f.host())
	}
	return reconcile.Many(hosts...)
}

// Specs are the declarations of all functions, by name.
func Specs() []reconcile.Spec {
	specs := make([]reconcile.Spec, 0, len(functions))
	for _, f := range functions {
		specs = append(specs, f.spec())
	}
	slices.SortFunc(specs, func(a, b reconcile.Spec) int { return strings.Compare(a.Name, b.Name) })
	return specs
}

// Host makes one function by its name, as New does; nil if there is none. Where no
// cluster is configured it can still replay recordings.
func Host(name string) *reconcile.Host {
	for _, f := range functions {
		if f.spec().Name == name {
			return f.host()
		}
	}
	return nil
}
