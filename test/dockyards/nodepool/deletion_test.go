package nodepool

import (
	"testing"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
)

// children are what a worker pool has, in the order in which it is taken down.
var children = []kind.Resource{deployments, configTemplates, dockyards.KubevirtMachineTemplates}

// strangersTemplate makes a template of somebody else, "theirs", under the pool's label.
func (w *world) strangersTemplate() {
	w.TB.Helper()
	w.Create(`{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: KubevirtMachineTemplate, metadata: {name: theirs,
		labels: {dockyards.io/node-pool-name: ` + subject + `}},
		spec: {template: {spec: {virtualMachineTemplate: {spec: {template: {spec: {domain: {devices: {}}}}}}}}}}`)
}

// held keeps an object from going until let go.
func (w *world) held(res kind.Resource, name string) {
	w.TB.Helper()
	w.Patch(res, name, "metadata: {finalizers: [cluster-api.dockyards.io/finalizer]}")
}

func (w *world) let(res kind.Resource, name string) {
	w.TB.Helper()
	w.Patch(res, name, "metadata: {finalizers: null}")
}

func TestAWorkerPoolThatGoesIsTakenDownInOrder(t *testing.T) {
	w, f := settled(t, false)
	w.held(dockyards.NodePools, subject)
	w.held(deployments, subject)
	before := w.Must(dockyards.NodePools, subject)
	w.Remove(dockyards.NodePools, subject)
	w.converged(f)
	if w.machines(false).GetDeletionTimestamp() == nil {
		t.Error("the MachineDeployment stays")
	}
	f.Rests(w.Event(dockyards.NodePools, subject), w.Event(deployments, subject))
	w.Must(dockyards.KubevirtMachineTemplates, subject)
	w.Must(configTemplates, subject)
	w.let(deployments, subject)
	f.Insist(w.Event(deployments, subject))
	for _, res := range children {
		if w.Get(res, subject) != nil {
			t.Errorf("%s %q is still there", res.Kind, subject)
		}
	}
	after := w.Must(dockyards.NodePools, subject)
	if len(after.GetFinalizers()) != 1 {
		t.Errorf("the pool has finalizers %v, before %v", after.GetFinalizers(), before.GetFinalizers())
	}
	f.Rests(w.Event(dockyards.NodePools, subject))
}

func TestAControlPlaneIsNeverDeleted(t *testing.T) {
	w, f := settled(t, true)
	w.held(dockyards.NodePools, subject)
	w.Remove(dockyards.NodePools, subject)
	w.converged(f)
	f.Rests(w.Event(dockyards.NodePools, subject), w.Event(dockyards.TalosControlPlanes, subject))
	if w.machines(true).GetDeletionTimestamp() != nil {
		t.Error("the TalosControlPlane was deleted")
	}
	w.Must(dockyards.KubevirtMachineTemplates, subject)
	w.Remove(dockyards.TalosControlPlanes, subject)
	f.Insist(w.Event(dockyards.TalosControlPlanes, subject))
	if w.Get(dockyards.TalosControlPlanes, subject) != nil || w.Get(dockyards.KubevirtMachineTemplates, subject) != nil {
		t.Errorf("its Cluster took it along, and there are %v", w.Names())
	}
}

// TestAResyncRemovesWhatALostDeletionLeft: no garbage collector runs here.
func TestAResyncRemovesWhatALostDeletionLeft(t *testing.T) {
	w, f := settled(t, false)
	w.pool("prod-cp", true, ", replicas: 1")
	f.Insist(w.Event(dockyards.NodePools, "prod-cp"))
	// What upstream left behind, without labels, is not ours to delete.
	w.Create(`{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: KubevirtMachineTemplate, metadata: {name: old,
		ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: NodePool, name: old, uid: old}]},
		spec: {template: {spec: {virtualMachineTemplate: {spec: {template: {spec: {domain: {devices: {}}}}}}}}}}`)
	w.held(deployments, subject)
	w.Remove(dockyards.NodePools, subject)
	w.Remove(dockyards.NodePools, "prod-cp")
	f.Resync()
	if w.machines(false).GetDeletionTimestamp() == nil {
		t.Error("the MachineDeployment of a pool that is gone stays")
	}
	for _, res := range []kind.Resource{configTemplates, dockyards.KubevirtMachineTemplates} {
		if w.Get(res, subject) == nil {
			t.Errorf("the %s went before the MachineDeployment", res.Kind)
		}
	}
	w.let(deployments, subject)
	f.Resync()
	for _, res := range children {
		if w.Get(res, subject) != nil {
			t.Errorf("%s of a pool that is gone stays", res.Kind)
		}
	}
	w.Must(dockyards.KubevirtMachineTemplates, "old")
	w.Must(dockyards.KubevirtMachineTemplates, "prod-cp")
	w.Must(dockyards.TalosControlPlanes, "prod-cp")
	w.Remove(dockyards.TalosControlPlanes, "prod-cp")
	f.Resync()
	if w.Get(dockyards.KubevirtMachineTemplates, "prod-cp") != nil {
		t.Error("the template of a control plane that is gone stays")
	}
	f.Rests()
}

// TestAResyncRemovesWhatTheGarbageCollectorLeft: where Cluster API is a second owner, the
// collector takes off the reference to a pool that is gone, and deletes nothing.
func TestAResyncRemovesWhatTheGarbageCollectorLeft(t *testing.T) {
	w, f := settled(t, false)
	w.strangersTemplate()
	collected := func() {
		for _, res := range children {
			if w.Get(res, subject) != nil {
				w.Patch(res, subject, `{metadata: {ownerReferences: null}}`)
			}
		}
	}
	collected()
	f.Resync()
	for _, res := range children {
		if !dockyards.OwnedBy(w.Must(res, subject), w.Must(dockyards.NodePools, subject)) {
			t.Errorf("the %s is not its pool's again", res.Kind)
		}
	}
	w.Remove(dockyards.NodePools, subject)
	collected()
	for range children {
		f.Resync()
	}
	for _, res := range children {
		if w.Get(res, subject) != nil {
			t.Errorf("the %s of a pool that is gone stays", res.Kind)
		}
	}
	w.Must(dockyards.KubevirtMachineTemplates, "theirs")
}

// TestWhatAPoolLeftGoesWithTheEventsOfItsEnd: a collector that sees another owner deletes
// nothing, and machines must not run for nobody until two resyncs have come.
func TestWhatAPoolLeftGoesWithTheEventsOfItsEnd(t *testing.T) {
	w, f := settled(t, false)
	w.strangersTemplate()
	w.held(deployments, subject)
	w.Remove(dockyards.NodePools, subject)
	for _, res := range children {
		w.Patch(res, subject, `{metadata: {ownerReferences: null}}`)
	}
	f.Insist(w.Event(dockyards.NodePools, subject))
	if w.machines(false).GetDeletionTimestamp() == nil {
		t.Error("the MachineDeployment of a pool that is gone stays until a resync")
	}
	for _, res := range children[1:] {
		w.Must(res, subject)
	}
	f.Rests(w.Event(dockyards.NodePools, subject), w.Event(deployments, subject))
	w.let(deployments, subject)
	f.Insist(w.Event(deployments, subject))
	for _, res := range children {
		if w.Get(res, subject) != nil {
			t.Errorf("the %s of a pool that is gone stays", res.Kind)
		}
	}
	w.Must(dockyards.KubevirtMachineTemplates, "theirs")
	f.Rests(w.Event(dockyards.NodePools, subject))
}

func TestNothingIsMadeWhileTheClusterGoes(t *testing.T) {
	for _, res := range []kind.Resource{dockyards.Clusters, capis} {
		for _, controlPlane := range []bool{true, false} {
			w := newWorld(t)
			w.held(res, owner)
			w.Remove(res, owner)
			w.pool(subject, controlPlane, "")
			f := w.provisioner()
			f.Rests(w.Event(dockyards.NodePools, subject), w.Event(res, owner))
		}
	}
}
