package machinevm

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// upstreamMachine is a Machine as it lies in a cluster where the upstream operator
// has run.
const upstreamMachine = `
apiVersion: vitistack.io/v1alpha1
kind: Machine
metadata: {name: web, finalizers: [machine.vitistack.io/finalizer]}
spec:
  provider: kubevirt
  cpu: {cores: 3}
  memory: 3221225472
  disks: [{name: root, sizeGB: 10, boot: true}]
  cloudInit: {userData: "#cloud-config\nhostname: other\n"}
`

const upstreamStatus = `
status:
  phase: Failed
  failureReason: Old
  failureMessage: text of last year
  conditions:
  - {type: Unknown, status: "", lastTransitionTime: null}
  - {type: Unknown, status: "", lastTransitionTime: null}
  - {type: Theirs, status: "True", lastTransitionTime: "2025-01-01T00:00:00Z"}
`

// today is what upstream's operator has made since November 2025.
const today = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: web, labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/source-machine: web, disk-type: boot}}
spec: {accessModes: [ReadWriteMany], volumeMode: Block, storageClassName: standard, resources: {requests: {storage: 10Gi}}}
---
apiVersion: vitistack.io/v1alpha1
kind: NetworkConfiguration
metadata: {name: web, labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/source-machine: web}}
spec: {name: web, provider: kea, networkInterfaces: [{name: default, macAddress: "02:AB:00:00:00:01"}]}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web, labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/source-machine: web}}
spec:
  runStrategy: Always
  template:
    metadata: {labels: {vitistack.io/source-machine: web}}
    spec:
      domain:
        cpu: {cores: 4, model: host-model}
        memory: {guest: 4Gi}
        firmware: {bootloader: {efi: {secureBoot: false}}}
        devices:
          autoattachPodInterface: false
          networkInterfaceMultiqueue: true
          disks:
          - {name: root, bootOrder: 1, disk: {bus: virtio}}
          - {name: cloudinitdisk, disk: {bus: virtio}}
          interfaces: [{name: default, bridge: {}, model: virtio, macAddress: "02:ab:00:00:00:01", bootOrder: 2}]
      networks: [{name: default, pod: {}}]
      volumes:
      - {name: root, persistentVolumeClaim: {claimName: web}}
      - {name: cloudinitdisk, cloudInitNoCloud: {userDataBase64: I2Nsb3VkLWNvbmZpZwo=}}
`

// before2025 is what it made before, of a virtual machine that somebody has
// switched off.
const before2025 = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: vm-web-root-pvc, labels: {managed-by: kubevirt-operator, source-machine: web}}
spec: {accessModes: [ReadWriteOnce], storageClassName: standard, resources: {requests: {storage: 10Gi}}}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: vm-web, labels: {managed-by: kubevirt-operator, source-machine: web}}
spec:
  running: false
  template:
    spec:
      domain:
        cpu: {cores: 3}
        memory: {guest: 3Gi}
        devices:
          disks: [{name: root, bootOrder: 1, disk: {bus: virtio}}]
          interfaces: [{name: default, bridge: {}, macAddress: "02:ab:00:00:00:01"}]
      networks: [{name: default, pod: {}}]
      volumes: [{name: root, persistentVolumeClaim: {claimName: vm-web-root-pvc}}]
`

// upstream stores objects as upstream's operator does: by create and update under
// the field manager "manager", with nothing of server-side apply.
func (w *world) upstream(machine *unstructured.Unstructured, manifests string) {
	w.t.Helper()
	before := w.Names()
	w.CreateAs("manager", manifests)
	for key, obj := range w.Objects() {
		if slices.Contains(before, key) {
			continue
		}
		w.Update(w.ResourceOf(obj), obj.GetName(), "manager", func(obj *unstructured.Unstructured) {
			obj.SetAnnotations(with(obj.GetAnnotations(), "upstream", "was here"))
			if obj.GetKind() == kinds.VirtualMachines.Kind {
				obj.SetOwnerReferences([]metav1.OwnerReference{{
					APIVersion: machine.GetAPIVersion(), Kind: machine.GetKind(), Name: machine.GetName(), UID: machine.GetUID(),
				}})
			}
		})
	}
}

// untouchable is what a takeover must not touch: everything but the Machine and the
// metadata of virtual machines, byte for byte.
func (w *world) untouchable() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for key, obj := range w.Objects() {
		switch obj.GetKind() {
		case kinds.Machines.Kind:
			continue
		case kinds.VirtualMachines.Kind:
			bare := obj.DeepCopy()
			unstructured.RemoveNestedField(bare.Object, "spec", "template", "metadata")
			all[key] = string(obj.GetUID()) + suite.Bytes(w.t, bare, "spec") + suite.Bytes(w.t, bare, "status")
			continue
		}
		raw, err := json.Marshal(obj.Object)
		if err != nil {
			w.t.Fatal(err)
		}
		all[key] = string(raw)
	}
	return all
}

func TestATakeoverChangesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, objects, vm, state, phase string
		env                               []string
	}{
		"OfARunningMachine": {
			reason: "what upstream has made goes on running as it is", objects: today, vm: "web", state: "Running", phase: "Running",
		},
		"WithUpstreamsNames": {
			reason: "with upstream's names for new machines too", objects: today, vm: "web", state: "Running", phase: "Running",
			env: []string{"VM_NAME_PREFIX", "", "PVC_VOLUME_MODE", "Block", "PVC_ACCESS_MODE", "ReadWriteMany", "CPU_MODEL", "host-passthrough", "DEFAULT_FIRMWARE", "efi"},
		},
		"OfAStoppedMachineOfBefore2025": {
			reason: "what is off stays off", objects: before2025, vm: "vm-web", state: "Stopped", phase: "Stopped",
		},
		"OfBefore2025WithUpstreamsNames": {
			reason: "it has a prefix, whatever new ones get: no second one is made", objects: before2025, vm: "vm-web", state: "Stopped", phase: "Stopped",
			env: []string{"VM_NAME_PREFIX", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			machine := w.Create(upstreamMachine)
			w.Patch(kinds.Machines, subject, upstreamStatus, "status")
			w.upstream(machine, tc.objects)
			p := w.platform()
			w.Await(kinds.VirtualMachines, tc.vm, "is "+tc.state, func(vm *unstructured.Unstructured) bool {
				return suite.Text(vm, "status", "printableStatus") == tc.state && (tc.state != "Running" || running(vm))
			})
			for _, obj := range w.Objects() {
				if obj.GetKind() == "PersistentVolumeClaim" {
					w.Await(kind.PersistentVolumeClaims, obj.GetName(), "is bound", func(claim *unstructured.Unstructured) bool { return suite.Text(claim, "status", "phase") == "Bound" })
				}
			}
			p.Stop()
			before, generation := w.untouchable(), w.Must(kinds.VirtualMachines, tc.vm).GetGeneration()

			f := w.copyWith(tc.env)
			f.Insist(w.machineEvent(subject))
			if diff := cmp.Diff(before, w.settled(before)); diff != "" {
				t.Errorf("%s: the first event has touched it (-before +after):\n%s", tc.reason, diff)
			}
			vm := w.Must(kinds.VirtualMachines, tc.vm)
			if got := vm.GetGeneration(); got > generation+1 {
				t.Errorf("the labels of the template are one change of the virtual machine, its generation went from %d to %d", generation, got)
			}
			w.isAdopted(vm)
			w.isTakenOver(tc.phase)

			versions := w.Versions()
			f.Asked()
			for range 3 {
				f.Insist(w.machineEvent(subject))
				f.Insist(w.Event(kinds.VirtualMachines, tc.vm))
			}
			f.Resync()
			if _, writes := f.Asked(); len(writes) > 0 {
				t.Errorf("three passes and a resync have written: %v", writes)
			}
			if diff := cmp.Diff(versions, w.Versions()); diff != "" {
				t.Errorf("three passes and a resync (-before +after):\n%s", diff)
			}
		})
	}
}

// settled is the present snapshot, without a record that was not there before: it
// may be made.
func (w *world) settled(before map[string]string) map[string]string {
	w.t.Helper()
	now := w.untouchable()
	maps.DeleteFunc(now, func(key, _ string) bool {
		_, was := before[key]
		return !was && key == "NetworkConfiguration/"+subject
	})
	return now
}

// isAdopted looks for the marks of an adopted virtual machine.
func (w *world) isAdopted(vm *unstructured.Unstructured) {
	w.t.Helper()
	machine := w.Must(kinds.Machines, subject)
	annotations := vm.GetAnnotations()
	want := map[string]string{
		"upstream": "was here", "vitistack.io/adopted": suite.Text(machine, "metadata", "generation"),
		"vitistack.io/machine-name": subject, "vitistack.io/machine-uid": string(machine.GetUID()),
	}
	for key, value := range want {
		if annotations[key] != value {
			w.t.Errorf("annotation %s is %q, want %q", key, annotations[key], value)
		}
	}
	if _, made := annotations["slipway.dev/installation"]; made {
		w.t.Error("the virtual machine is marked as made here: a resync could take it for an orphan")
	}
	for _, labels := range []map[string]string{vm.GetLabels(), templateLabels(vm)} {
		if labels["vitistack.io/machine"] != subject || labels["vitistack.io/source-machine"] != subject || labels["vitistack.io/managed-by"] != "kubevirt-operator" {
			w.t.Errorf("labels are %v", labels)
		}
	}
}

func templateLabels(vm *unstructured.Unstructured) map[string]string {
	labels, _, _ := unstructured.NestedStringMap(vm.Object, "spec", "template", "metadata", "labels")
	return labels
}

// isTakenOver looks at the Machine.
func (w *world) isTakenOver(phase string) {
	w.t.Helper()
	machine := w.Must(kinds.Machines, subject)
	if diff := cmp.Diff([]string{"machine.vitistack.io/finalizer", "machine.vitistack.io/cleanup"}, machine.GetFinalizers()); diff != "" {
		w.t.Errorf("the way back needs upstream's finalizer (-want +got):\n%s", diff)
	}
	if got := suite.Text(machine, "status", "phase"); got != phase {
		w.t.Errorf("the phase is %q, want %q: Ready is %s", got, phase, w.why(subject))
	}
	if got := suite.Text(machine, "status", "failureMessage"); got != "" {
		w.t.Errorf("the failure of last year is still there: %s", got)
	}
	if is, _, _ := suite.Condition(machine, "Unknown"); is != "" || len(conditionsOf(machine, "Unknown")) > 0 {
		w.t.Error("upstream's conditions of type Unknown are still there")
	}
	if is, _, _ := suite.Condition(machine, "Theirs"); is != "True" {
		w.t.Error("a condition of others is gone")
	}
}

func conditionsOf(obj *unstructured.Unstructured, conditionType string) []any {
	var found []any
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok && c["type"] == conditionType {
			found = append(found, c)
		}
	}
	return found
}

// TestATakenOverMachineFollowsItsSpecOnceThatIsEdited shows what an edit brings
// about, and what it leaves as upstream made it.
func TestATakenOverMachineFollowsItsSpecOnceThatIsEdited(t *testing.T) {
	w := newWorld(t)
	machine := w.Create(upstreamMachine)
	w.upstream(machine, today)
	f := w.copyOf()
	f.Insist(w.machineEvent(subject))
	before := w.Must(kinds.VirtualMachines, "web")
	w.Patch(kinds.Machines, subject, `{spec: {cpu: {cores: 6}, disks: [{name: root, sizeGB: 10, boot: true}, {name: data, size: 1Gi}]}}`)
	f.Insist(w.machineEvent(subject))
	after := w.Must(kinds.VirtualMachines, "web")
	if before.GetUID() != after.GetUID() {
		t.Error("the virtual machine was made anew")
	}
	domain := []string{"spec", "template", "spec", "domain"}
	for path, want := range map[string]string{"cores": "6", "model": "host-model"} {
		if got := suite.Text(after, append(domain, "cpu", path)...); got != want {
			t.Errorf("domain.cpu.%s is %q, want %q", path, got, want)
		}
	}
	for _, path := range [][]string{{"firmware"}, {"devices", "interfaces"}, {"devices", "networkInterfaceMultiqueue"}} {
		full := append(domain, path...)
		if diff := cmp.Diff(suite.Bytes(t, before, full...), suite.Bytes(t, after, full...)); diff != "" {
			t.Errorf("%v is not stated by the Machine and has changed (-before +after):\n%s", path, diff)
		}
	}
	if claim := w.Get(kind.PersistentVolumeClaims, "web-root"); claim != nil {
		t.Error("a further claim was made for the disk that has upstream's")
	}
	w.Must(kind.PersistentVolumeClaims, "web-data")
	w.Remove(kinds.Machines, subject)
	f.Insist(w.machineEvent(subject))
	w.release()
	if left := w.Names(); len(left) > 0 {
		t.Errorf("the deletion of a Machine that was taken over leaves %v", left)
	}
}
