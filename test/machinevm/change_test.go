package machinevm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// written are the writes of a copy that concern a resource and that the server
// carried out.
func written(f *suite.Copy, res kind.Resource) []string {
	_, writes := f.Asked()
	var done []string
	for _, write := range writes {
		fields := strings.Fields(write)
		if fields[1] == res.String() && strings.HasPrefix(fields[len(fields)-1], "2") {
			done = append(done, write)
		}
	}
	return done
}

// adorn adds to the virtual machine what others would: a disk, a node selector, a
// label and an annotation.
func (w *world) adorn(name string) *unstructured.Unstructured {
	w.t.Helper()
	for {
		vm := w.Must(kinds.VirtualMachines, name)
		spec, _, _ := unstructured.NestedMap(vm.Object, "spec", "template", "spec")
		volumes, _, _ := unstructured.NestedSlice(spec, "volumes")
		disks, _, _ := unstructured.NestedSlice(spec, "domain", "devices", "disks")
		volumes = append([]any{map[string]any{"name": "scratch", "emptyDisk": map[string]any{"capacity": "1Gi"}}}, volumes...)
		disks = append(disks, map[string]any{"name": "scratch", "disk": map[string]any{"bus": "virtio"}, "cache": "none"})
		for _, err := range []error{
			unstructured.SetNestedSlice(spec, volumes, "volumes"),
			unstructured.SetNestedSlice(spec, disks, "domain", "devices", "disks"),
			unstructured.SetNestedField(spec, "ssd", "nodeSelector", "disk"),
			unstructured.SetNestedField(spec, "LiveMigrate", "evictionStrategy"),
			unstructured.SetNestedMap(vm.Object, spec, "spec", "template", "spec"),
		} {
			if err != nil {
				w.t.Fatal(err)
			}
		}
		vm.SetLabels(with(vm.GetLabels(), "team", "blue"))
		vm.SetAnnotations(with(vm.GetAnnotations(), "note", "by somebody"))
		stored, err := w.In(kinds.VirtualMachines).Update(w.t.Context(), vm, metav1.UpdateOptions{FieldManager: "somebody"})
		if err == nil {
			return stored
		}
		if !strings.Contains(err.Error(), "modified") {
			w.t.Fatal(err)
		}
	}
}

func with(have map[string]string, key, value string) map[string]string {
	more := map[string]string{key: value}
	for k, v := range have {
		more[k] = v
	}
	return more
}

// TestARunningMachineFollowsItsSpec changes one thing after the other of a Machine
// that runs.
func TestARunningMachineFollowsItsSpec(t *testing.T) {
	w := newWorld(t)
	w.platform()
	f := w.copyOf()
	s := w.Source(f)
	w.machine(subject, `{template: small, disks: [{name: data, size: 100Gi, storageClass: fast-ssd}]}`)
	w.awaitReady(subject)
	w.Await(kinds.VirtualMachines, "vm-web", "runs", running)
	s.Stop()
	f.Insist(w.machineEvent(subject))

	before := w.adorn("vm-web")
	w.Patch(kinds.Machines, subject, `{spec: {resources: {cpu: {cores: 2}}}}`)
	f.Asked()
	f.Insist(w.machineEvent(subject))
	if writes := written(f, kinds.VirtualMachines); len(writes) != 1 || !strings.HasPrefix(writes[0], "patch ") {
		t.Errorf("a change of one field is one patch of the virtual machine, got %v", writes)
	}
	after := w.Must(kinds.VirtualMachines, "vm-web")
	if got := suite.Text(after, "spec", "template", "spec", "domain", "cpu", "cores"); got != "2" {
		t.Errorf("the virtual machine has %s cores", got)
	}
	if err := unstructured.SetNestedField(before.Object, int64(2), "spec", "template", "spec", "domain", "cpu", "cores"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("more has changed than the cores (-want +got):\n%s", diff)
	}
	if after.GetLabels()["team"] != "blue" || after.GetAnnotations()["note"] != "by somebody" {
		t.Errorf("what others noted is gone: %v %v", after.GetLabels(), after.GetAnnotations())
	}
	w.Source(f)
	w.awaitCondition(subject, "RestartRequired", "True RestartRequired")

	w.Patch(kinds.Machines, subject, `{spec: {disks: [{name: data, size: 120Gi, storageClass: fast-ssd}]}}`)
	w.Await(kind.PersistentVolumeClaims, "web-data", "has grown", func(claim *unstructured.Unstructured) bool {
		return suite.Text(claim, "spec", "resources", "requests", "storage") == "120Gi" && suite.Text(claim, "status", "capacity", "storage") == "120Gi"
	})
	w.awaitReady(subject)

	w.Patch(kinds.Machines, subject, `{spec: {running: false}}`)
	w.Await(kinds.VirtualMachineInstances, "vm-web", "is gone", suite.Gone)
	machine := w.Await(kinds.Machines, subject, "has no instance", func(machine *unstructured.Unstructured) bool {
		return suite.Text(machine, "status", "vmiName") == "" && suite.Text(machine, "status", "state") == "Stopped"
	})
	if _, reason, _ := suite.Condition(machine, "Ready"); reason != "Stopped" {
		t.Errorf("the Machine is off, and Ready's reason is %s", reason)
	}
	if got := suite.Text(machine, "status", "phase"); got != "Stopped" {
		t.Errorf("the Machine is off, and its phase is %q", got)
	}
	if got := suite.Text(w.Must(kinds.VirtualMachines, "vm-web"), "spec", "runStrategy"); got != "Halted" {
		t.Errorf("the Machine is off, and the run strategy is %q", got)
	}
	if got := suite.Text(machine, "status", "ipAddresses"); got != "" {
		t.Errorf("the Machine is off and still has addresses %s", got)
	}

	w.Patch(kinds.Machines, subject, `{spec: {running: true}}`)
	w.awaitReady(subject)
	// The restart has brought the change of the cores about.
	w.awaitCondition(subject, "RestartRequired", "")
	if got := suite.Text(w.Must(kinds.VirtualMachineInstances, "vm-web"), "spec", "domain", "cpu", "cores"); got != "2" {
		t.Errorf("after the restart the instance has %s cores", got)
	}
}

// TestAMachineThatFoundNoRoomCanBeSwitchedOff shows that InsufficientResources is said
// as long as it is so, and no longer. KubeVirt keeps the conditions of an instance that
// is gone on its virtual machine.
func TestAMachineThatFoundNoRoomCanBeSwitchedOff(t *testing.T) {
	w := newWorld(t)
	w.platform()
	f := w.copyOf()
	w.Source(f)
	w.machine("giant", `{template: small, resources: {memory: {size: 1Ti}}}`)
	w.awaitCondition("giant", "Ready", "False InsufficientResources")
	if got := suite.Text(w.Must(kinds.Machines, "giant"), "status", "phase"); got != "Creating" {
		t.Errorf("the phase is %q: somebody may make room", got)
	}
	w.Patch(kinds.Machines, "giant", `{spec: {running: false}}`)
	w.Await(kinds.Machines, "giant", "is off", func(machine *unstructured.Unstructured) bool {
		return suite.Text(machine, "status", "state") == "Stopped" && suite.Text(machine, "status", "vmiName") == ""
	})
	f.Insist(w.machineEvent("giant"))
	if got := w.condition("giant", "Ready"); got != "False Stopped" {
		t.Errorf("the Machine is off, and Ready is %s", w.why("giant"))
	}
	w.Patch(kinds.Machines, "giant", `{spec: {running: true, resources: {memory: {size: 2Gi}}}}`)
	w.awaitReady("giant")
}

// TestWhatCannotBeChangedIsSaidAndNothingIsWritten asks for what no claim can do.
func TestWhatCannotBeChangedIsSaidAndNothingIsWritten(t *testing.T) {
	w := newWorld(t)
	f := w.copyOf()
	const disk = `{template: small, disks: [{name: data, size: 100Gi, storageClass: fast-ssd, accessMode: ReadWriteOnce}]}`
	w.machine(subject, disk)
	f.Insist(w.machineEvent(subject))
	for _, claim := range []string{"web-root", "web-data"} {
		w.Patch(kind.PersistentVolumeClaims, claim, `{status: {phase: Bound, capacity: {storage: 100Gi}}}`, "status")
	}
	f.Insist(w.machineEvent(subject))
	for name, spec := range map[string]string{
		"a smaller disk":                    `{disks: [{name: data, size: 50Gi, storageClass: fast-ssd}]}`,
		"a larger disk of a class that has": `{disks: [{name: data, size: 100Gi, storageClass: fast-ssd}, {name: root, size: 30Gi}]}`,
		"another class":                     `{disks: [{name: data, size: 100Gi, storageClass: standard}]}`,
		"another access mode":               `{disks: [{name: data, size: 100Gi, storageClass: fast-ssd, accessMode: ReadWriteMany}]}`,
		"another volume mode":               `{disks: [{name: data, size: 100Gi, storageClass: fast-ssd, volumeMode: Block}]}`,
		"a smaller disk and more cores":     `{resources: {cpu: {cores: 8}}, disks: [{name: data, size: 50Gi, storageClass: fast-ssd}]}`,
	} {
		before := w.Versions()
		w.Patch(kinds.Machines, subject, `{spec: `+spec+`}`)
		f.Asked()
		f.Insist(w.machineEvent(subject))
		_, writes := f.Asked()
		for _, write := range writes {
			if !strings.HasPrefix(write, "patch machines.vitistack.io/status ") && !strings.HasPrefix(write, "create events.events.k8s.io ") {
				t.Errorf("%s: %s", name, write)
			}
		}
		if got := w.why(subject); !strings.HasPrefix(got, "False InvalidSpec: disk ") {
			t.Errorf("%s: Ready is %s", name, got)
		}
		after := w.Versions()
		delete(before, "Machine/web")
		delete(after, "Machine/web")
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s: something was written (-before +after):\n%s", name, diff)
		}
		w.Patch(kinds.Machines, subject, `{spec: {resources: null, disks: [{name: data, size: 100Gi, storageClass: fast-ssd, accessMode: ReadWriteOnce}]}}`)
		f.Insist(w.machineEvent(subject))
		if got := w.condition(subject, "Ready"); got != "False Creating" {
			t.Errorf("%s was taken back, and Ready is still %s", name, w.why(subject))
		}
	}
}

// TestWhatWasDeletedOrEditedByHandIsPutBack deletes each child and edits what the
// Machine states.
func TestWhatWasDeletedOrEditedByHandIsPutBack(t *testing.T) {
	w := newSubject(t)
	f := w.copyOf()
	converged(w, f)
	want := w.State()
	for _, child := range []struct {
		res  kind.Resource
		name string
	}{
		{kinds.VirtualMachines, "vm-web"},
		{kinds.NetworkConfigurations, "web"},
		{kind.Secrets, "web-cloudinit"},
		{kinds.NetworkAttachmentDefinitions, "lan"},
		{kind.PersistentVolumeClaims, "web-data"},
	} {
		w.Remove(child.res, child.name)
		w.release()
		f.Insist(w.machineEvent(subject))
		if diff := cmp.Diff(want, w.State()); diff != "" {
			t.Errorf("%s was deleted (-before +after the event):\n%s", child.res.Kind, diff)
		}
	}
	for _, edit := range []struct {
		res        kind.Resource
		name, body string
	}{
		{kinds.VirtualMachines, "vm-web", `{spec: {template: {spec: {domain: {cpu: {cores: 7}, memory: {guest: 1Gi}}}}}}`},
		{kinds.VirtualMachines, "vm-web", `{spec: {template: {spec: {domain: {devices: {disks: [{name: root, bootOrder: 1, disk: {bus: virtio}}, {name: cloudinitdisk, disk: {bus: virtio}}]}}, volumes: [{name: root, persistentVolumeClaim: {claimName: web-root}}, {name: cloudinitdisk, cloudInitNoCloud: {userData: x}}]}}}}`},
		{kinds.VirtualMachines, "vm-web", `{metadata: {labels: null, ownerReferences: null}}`},
		{kind.Secrets, "web-cloudinit", `{stringData: {userdata: other}}`},
		{kinds.NetworkConfigurations, "web", `{spec: {networkInterfaces: [{name: eth0, macAddress: "02:00:00:00:00:09"}]}}`},
		{kinds.NetworkAttachmentDefinitions, "lan", `{spec: {config: "{}"}}`},
	} {
		w.Patch(edit.res, edit.name, edit.body)
		f.Insist(w.machineEvent(subject))
		if diff := cmp.Diff(want, w.State()); diff != "" {
			t.Errorf("%s was edited, %s (-before +after the event):\n%s", edit.res.Kind, edit.body, diff)
		}
	}
}

// TestAnImageThatIsEjectedLeavesNothing takes a boot image out of a running Machine.
func TestAnImageThatIsEjectedLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.platform()
	f := w.copyOf()
	w.Source(f)
	w.Create(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, annotations: {kubevirt.io/boot-source: datavolume}}, spec: {template: small, os: {imageID: "http://images.example/boot.iso"}}}`)
	w.awaitReady(subject)
	w.Must(kinds.DataVolumes, "web-iso")
	uid := w.Must(kinds.VirtualMachineInstances, "vm-web").GetUID()
	w.Patch(kinds.Machines, subject, `{metadata: {annotations: {vitistack.io/cdrom-ejected: "true"}}}`)
	w.Await(kinds.DataVolumes, "web-iso", "is gone", suite.Gone)
	w.Await(kinds.Machines, subject, "is noted as cleaned up", func(machine *unstructured.Unstructured) bool {
		return machine.GetAnnotations()["vitistack.io/iso-cleaned-up"] == "true"
	})
	if strings.Contains(suite.Bytes(t, w.Must(kinds.VirtualMachines, "vm-web"), "spec"), "cdrom-iso") {
		t.Error("the virtual machine still has the drive")
	}
	if got := w.Must(kinds.VirtualMachineInstances, "vm-web").GetUID(); got != uid {
		t.Error("the virtual machine was restarted")
	}
}
