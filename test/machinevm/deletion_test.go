package machinevm

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// upstreamFinalizer puts both finalizers on a Machine that may hold one.
const upstreamFinalizer = `{metadata: {finalizers: [machine.vitistack.io/finalizer, machine.vitistack.io/cleanup]}}`

// withImage makes the subject boot from an image, so that it has a DataVolume too.
const withImage = `{metadata: {annotations: {kubevirt.io/boot-source: datavolume}}, spec: {os: {imageID: "http://images.example/boot.iso"}}}`

// orderly refuses to see anything deleted before the virtual machine and its
// instance are gone.
func orderly(w *world) suite.Option {
	return suite.WithTap(func(c suite.Call) (*http.Response, error) {
		last := c.Resource == kinds.Machines.Plural && c.Verb == "patch" && c.Subresource == "" && w.deleting()
		if !last && (c.Verb != "delete" || c.Resource == kinds.VirtualMachines.Plural || c.Resource == kinds.VirtualMachineInstances.Plural) {
			return nil, nil
		}
		if w.Get(kinds.VirtualMachines, "vm-"+subject) != nil || w.Get(kinds.VirtualMachineInstances, "vm-"+subject) != nil {
			w.t.Errorf("%s comes before the virtual machine and its instance are gone", c)
		}
		return nil, nil
	})
}

func (w *world) deleting() bool {
	machine := w.Get(kinds.Machines, subject)
	return machine != nil && machine.GetDeletionTimestamp() != nil
}

// TestADeletionTakesDownEverythingInOrder does it with KubeVirt and every kind of
// child there is.
func TestADeletionTakesDownEverythingInOrder(t *testing.T) {
	w := newWorld(t)
	w.platform()
	f := w.copyOf(orderly(w))
	w.Source(f)
	w.Create(surroundings)
	w.machine(subject, subjectSpec)
	w.Patch(kinds.Machines, subject, withImage)
	w.awaitReady(subject)
	for _, key := range []string{
		"DataVolume/web-iso", "NetworkAttachmentDefinition/lan", "NetworkConfiguration/web", "PersistentVolumeClaim/web-data",
		"PersistentVolumeClaim/web-root", "Secret/web-cloudinit", "VirtualMachine/vm-web", "VirtualMachineInstance/vm-web",
	} {
		if !slices.Contains(w.Names(), key) {
			t.Errorf("there is no %s to be taken down", key)
		}
	}
	w.Patch(kinds.Machines, subject, upstreamFinalizer)
	w.Remove(kinds.Machines, subject)
	w.Await(kinds.Machines, subject, "is gone", suite.Gone)
	for _, claim := range []string{"web-data", "web-root", "web-iso"} {
		w.Await(kind.PersistentVolumeClaims, claim, "is gone", suite.Gone)
	}
	if diff := cmp.Diff(given, w.Names()); diff != "" {
		t.Errorf("(-want +left):\n%s", diff)
	}
}

// TestADeletionWaitsForVirtualMachineAndInstance holds each of them for a while.
func TestADeletionWaitsForVirtualMachineAndInstance(t *testing.T) {
	w := newSubject(t)
	f := w.copyOf(orderly(w))
	converged(w, f)
	vm := w.Patch(kinds.VirtualMachines, "vm-"+subject, `{metadata: {finalizers: [kubevirt.io/virtualMachineControllerFinalize]}}`)
	instance := suite.Parse(t, `{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: vm-web, finalizers: [kubevirt.io/foregroundDeleteVirtualMachine]}, spec: {domain: {devices: {}}}}`)
	instance.SetLabels(vm.GetLabels())
	raw, err := instance.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	w.Create(string(raw))
	w.Patch(kinds.Machines, subject, upstreamFinalizer)
	w.Remove(kinds.Machines, subject)
	want := w.Names()
	f.Asked()
	step := func(what, says string, writes ...string) {
		t.Helper()
		f.Insist(w.machineEvent(subject))
		_, done := f.Asked()
		var verbs []string
		for _, write := range done {
			fields := strings.Fields(write)
			if fields[1] != kind.Events.String() {
				verbs = append(verbs, fields[0]+" "+fields[1])
			}
		}
		if diff := cmp.Diff(writes, verbs); diff != "" {
			t.Errorf("%s: writes (-want +got):\n%s", what, diff)
		}
		if says == "" {
			return
		}
		if diff := cmp.Diff(want, w.Names()); diff != "" {
			t.Errorf("%s: something went too early (-want +left):\n%s", what, diff)
		}
		if got := w.why(subject); !strings.HasPrefix(got, "False Deleting: ") || !strings.Contains(got, says) {
			t.Errorf("%s: Ready is %s, want False Deleting that says %q", what, got, says)
		}
	}
	step("the Machine is deleted", `"vm-web"`, "delete virtualmachines.kubevirt.io", "patch machines.vitistack.io/status")
	f.Asked()
	step("nothing has happened", `"vm-web"`)
	w.Patch(kinds.VirtualMachines, "vm-"+subject, `{metadata: {finalizers: null}}`)
	want = slices.DeleteFunc(want, func(key string) bool { return key == "VirtualMachine/vm-web" })
	step("the virtual machine is gone", "deleted", "delete virtualmachineinstances.kubevirt.io", "patch machines.vitistack.io/status")
	step("nothing has happened again", "deleted")
	w.Patch(kinds.VirtualMachineInstances, "vm-"+subject, `{metadata: {finalizers: null}}`)
	step(
		"the instance is gone", "", "delete persistentvolumeclaims", "delete persistentvolumeclaims", "delete secrets",
		"delete network-attachment-definitions.k8s.cni.cncf.io", "delete networkconfigurations.vitistack.io", "patch machines.vitistack.io",
	)
	w.release()
	if diff := cmp.Diff(given, w.Names()); diff != "" {
		t.Errorf("(-want +left):\n%s", diff)
	}
}

// TestADeletionKeepsWhatIsNotTheMachinesOwn surrounds a Machine with what only looks
// like its own.
func TestADeletionKeepsWhatIsNotTheMachinesOwn(t *testing.T) {
	w := newSubject(t)
	f := w.copyOf()
	converged(w, f)
	w.Create(`
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: database}
spec:
  runStrategy: Halted
  template:
    spec:
      domain: {devices: {disks: [{name: db, disk: {bus: virtio}}], interfaces: [{name: net, bridge: {}}]}, memory: {guest: 1Gi}}
      networks: [{name: net, multus: {networkName: lan}}]
      volumes: [{name: db, persistentVolumeClaim: {claimName: web-data}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: of-an-earlier-life, labels: {vitistack.io/machine: web, vitistack.io/source-machine: web, vitistack.io/managed-by: kubevirt-operator}, annotations: {vitistack.io/machine-uid: 0-0, vitistack.io/machine-name: web}}
spec: {accessModes: [ReadWriteOnce], storageClassName: standard, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: labelled-by-hand, labels: {vitistack.io/machine: web, vitistack.io/source-machine: web}}
spec: {accessModes: [ReadWriteOnce], storageClassName: standard, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: web-iso}
spec: {accessModes: [ReadWriteOnce], storageClassName: standard, resources: {requests: {storage: 1Gi}}}
`)
	kept := map[string]string{}
	for _, key := range []string{
		"NetworkAttachmentDefinition/lan", "PersistentVolumeClaim/labelled-by-hand", "PersistentVolumeClaim/of-an-earlier-life",
		"PersistentVolumeClaim/web-data", "PersistentVolumeClaim/web-iso", "VirtualMachine/database", given[0], given[1],
	} {
		kept[key] = w.Versions()[key]
	}
	w.Remove(kinds.Machines, subject)
	f.Insist(w.machineEvent(subject))
	w.release()
	if diff := cmp.Diff(kept, w.Versions()); diff != "" {
		t.Errorf("(-want +left):\n%s", diff)
	}
}

// TestAMachineOfAnotherProviderIsStillCleanedUp shows that what was begun is ended.
func TestAMachineOfAnotherProviderIsStillCleanedUp(t *testing.T) {
	w := newSubject(t)
	f := w.copyOf()
	converged(w, f)
	w.Patch(kinds.Machines, subject, `{spec: {provider: elsewhere}}`)
	f.Asked()
	f.Insist(w.machineEvent(subject))
	if _, writes := f.Asked(); len(writes) > 0 {
		t.Errorf("a Machine of another provider is written to: %v", writes)
	}
	w.Remove(kinds.Machines, subject)
	f.Insist(w.machineEvent(subject))
	w.release()
	if diff := cmp.Diff(given, w.Names()); diff != "" {
		t.Errorf("(-want +left):\n%s", diff)
	}
}
