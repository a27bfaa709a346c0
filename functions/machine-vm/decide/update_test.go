package decide

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
)

func domainOf(vm *unstructured.Unstructured, path ...string) string {
	return fmt.Sprint(at(vm.Object, append([]string{"spec", "template", "spec", "domain"}, path...)...))
}

func setDomain(value any, path ...string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		put(obj.Object, value, append([]string{"spec", "template", "spec", "domain"}, path...)...)
	}
}

func TestStatementsAreEnforced(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		first  string
		hand   func(*unstructured.Unstructured)
		then   string
		path   string
		want   string
	}{
		"UP-1 a size that changes":         {reason: "stated", first: `template: small`, then: `template: large`, path: "cpu.cores", want: "4"},
		"UP-1 a hand edit of a size":       {reason: "put back", first: `template: small`, hand: setDomain(int64(9), "cpu", "cores"), path: "cpu.cores", want: "1"},
		"UP-1 a hand edit of the memory":   {reason: "put back", first: `template: small`, hand: setDomain("9Gi", "memory", "guest"), path: "memory.guest", want: "2Gi"},
		"section 10 equal quantities":      {reason: "compared as such", first: `template: small`, hand: setDomain("2048Mi", "memory", "guest"), path: "memory.guest", want: "2048Mi"},
		"UP-2 a default stays":             {reason: "a hand edit of what is not stated", first: ``, hand: setDomain(int64(9), "cpu", "cores"), path: "cpu.cores", want: "9"},
		"UP-3 a size falls back":           {reason: "to the template", first: `template: small, resources: {cpu: {cores: 8}}`, then: `template: small`, path: "cpu.cores", want: "1"},
		"UP-3 a size falls to the default": {reason: "two cores", first: `resources: {cpu: {cores: 8}}`, then: ``, path: "cpu.cores", want: "2"},
		"UP-3 a machine type is removed":   {reason: "the function had written it", first: `domain: {machine: {type: q35}}`, then: ``, path: "machine", want: "<nil>"},
		"UP-2 KubeVirt's machine type":     {reason: "VM-1: neither drift nor removed", first: ``, hand: setDomain("q35", "machine", "type"), path: "machine.type", want: "q35"},
		"UP-1 features":                    {reason: "put back", first: `domain: {features: {acpi: true, hyperv: true}}`, hand: setDomain(map[string]any{}, "features"), path: "features", want: "map[acpi:map[enabled:true] hyperv:map[relaxed:map[enabled:true] spinlocks:map[enabled:true spinlocks:8191] vapic:map[enabled:true]]]"},
		"UP-3 a feature is removed":        {reason: "others stay", first: `domain: {features: {acpi: true, apic: true}}`, then: `domain: {features: {apic: true}}`, path: "features", want: "map[apic:map[enabled:true]]"},
		"FW-2 hyperv turned off":           {reason: "nothing is left", first: `domain: {features: {hyperv: true}}`, then: `domain: {features: {hyperv: false}}`, path: "features", want: "<nil>"},
		"UP-1 firmware":                    {reason: "BIOS to EFI, the UUID stays", first: `domain: {firmware: {bootloader: {efi: false}}}`, hand: setDomain("u-u-i-d", "firmware", "uuid"), then: `domain: {firmware: {bootloader: {efi: true}}}`, path: "firmware", want: "map[bootloader:map[efi:map[secureBoot:false]] uuid:u-u-i-d]"},
		"UP-1 secure boot needs smm":       {reason: "both", first: ``, then: `domain: {firmware: {bootloader: {secureBoot: true}}}`, path: "features", want: "map[smm:map[enabled:true]]"},
		"UP-3 firmware is removed":         {reason: "and smm with it", first: `domain: {firmware: {bootloader: {secureBoot: true}}}`, then: ``, path: "features", want: "<nil>"},
		"UP-2 a default firmware stays":    {reason: "somebody set it by hand", first: ``, hand: setDomain(map[string]any{"efi": map[string]any{}}, "firmware", "bootloader"), path: "firmware", want: "map[bootloader:map[efi:map[]]]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.machine(c.first)
			w.settle("web")
			if c.hand != nil {
				w.edit(kinds.VirtualMachines, "vm-web", c.hand)
			}
			if c.then != c.first && (c.then != "" || c.hand == nil) {
				w.respec(c.then)
			}
			w.settle("web")
			sees(t, c.path+" ("+c.reason+")", domainOf(w.must(kinds.VirtualMachines, "vm-web"), strings.Split(c.path, ".")...), c.want)
		})
	}
}

func TestEnvironmentChangesNoExistingVM(t *testing.T) {
	w := newWorld(t)
	w.machine(``)
	w.settle("web")
	w.settings.CPUModel, w.settings.EFI, w.settings.VMNamePrefix, w.settings.AccessMode = "host-model", true, "other-", "ReadWriteMany"
	w.settings.MACSet, w.settings.StorageClass, w.settings.CNIVersion = "ff", "none", "9.9.9"
	if o := w.reconcile("web"); o.writes != 0 {
		t.Errorf("UP-2: %v", o.decision.Plan)
	}
}

func TestBootOrderOfALiveVM(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	order := func() string {
		vm := w.must(kinds.VirtualMachines, "vm-web")
		disks := entries(vm.Object, "spec", "template", "spec", "domain", "devices", "disks")
		nics := entries(vm.Object, "spec", "template", "spec", "domain", "devices", "interfaces")
		return fmt.Sprint(disks[0]["bootOrder"], " ", nics[0]["bootOrder"])
	}
	w.respec(`template: small, bootOrder: [network, disk]`)
	w.settle("web")
	sees(t, "UP-1: the order", order(), "2 1")
	w.respec(`template: small, bootOrder: [disk]`)
	w.settle("web")
	sees(t, "BO-1: a class that is not listed gets no number", order(), "1 <nil>")
	w.respec(`template: small`)
	w.settle("web")
	sees(t, "UP-3: the order", order(), "<nil> <nil>")
}

func TestAVirtualMachineThatWasEmptiedByHandBootsAgain(t *testing.T) {
	for name, spec := range map[string]string{
		"nothing stated":    `template: small, disks: [{name: data, size: 1Gi}], networks: [{name: eth0}]`,
		"an order is":       `template: small, bootOrder: [network, disk], networks: [{name: eth0}]`,
		"another boot disk": `template: small, disks: [{name: sys, size: 5Gi, boot: true}], networks: [{name: eth0}]`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.machine(spec)
			w.settle("web")
			before := w.must(kinds.VirtualMachines, "vm-web")
			w.edit(kinds.VirtualMachines, "vm-web", func(vm *unstructured.Unstructured) {
				for _, path := range [][]string{pathVolumes, pathNetworks, pathDisks, pathInterfaces} {
					put(vm.Object, []any{}, append([]string{"spec", "template", "spec"}, path...)...)
				}
			})
			w.settle("web")
			after := w.must(kinds.VirtualMachines, "vm-web")
			if !sameObject(withoutVersion(before), withoutVersion(after)) {
				t.Errorf("before it was\n%v\nand is now\n%v", before.Object["spec"], after.Object["spec"])
			}
		})
	}
}

func withoutVersion(obj *unstructured.Unstructured) *unstructured.Unstructured {
	bare := obj.DeepCopy()
	bare.SetResourceVersion("")
	bare.SetGeneration(0)
	return bare
}

func TestADeviceNeverTakesTheBootNumberOfAnother(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	w.respec(`template: small, disks: [{name: root}, {name: sys, size: 5Gi, boot: true}]`)
	w.settle("web")
	numbers := map[string]any{}
	for _, d := range entries(w.must(kinds.VirtualMachines, "vm-web").Object, "spec", "template", "spec", "domain", "devices", "disks") {
		numbers[text(d, "name")] = d["bootOrder"]
	}
	if fmt.Sprint(numbers["root"]) != "1" || numbers["sys"] != nil {
		t.Errorf("the numbers are %v: root had 1 and keeps it until an order is stated", numbers)
	}
}

func TestPower(t *testing.T) {
	for name, c := range map[string]struct{ reason, spec, live, want string }{
		"PW-1 absent":           {reason: "left as it is", live: `runStrategy: Halted`, want: "Halted <nil>"},
		"PW-2 on":               {reason: "Halted becomes Always", spec: `running: true`, live: `runStrategy: Halted`, want: "Always <nil>"},
		"PW-2 on already":       {reason: "other strategies count as on", spec: `running: true`, live: `runStrategy: RerunOnFailure`, want: "RerunOnFailure <nil>"},
		"PW-2 off":              {reason: "any strategy becomes Halted", spec: `running: false`, live: `runStrategy: Manual`, want: "Halted <nil>"},
		"PW-2 the other field":  {reason: "it stays in use", spec: `running: false`, live: `running: true`, want: "<nil> false"},
		"PW-2 the field, on":    {reason: "it stays in use", spec: `running: true`, live: `running: false`, want: "<nil> true"},
		"PW-1 absent, by field": {reason: "left as it is", live: `running: false`, want: "<nil> false"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.machine(c.spec)
			w.settle("web")
			live := parse(t, `{apiVersion: v1, kind: X, metadata: {name: x}, spec: {`+c.live+`}}`)
			w.edit(kinds.VirtualMachines, "vm-web", func(obj *unstructured.Unstructured) {
				drop(obj.Object, "spec", "runStrategy")
				for key, value := range live.Object["spec"].(map[string]any) {
					put(obj.Object, value, "spec", key)
				}
			})
			w.settle("web")
			vm := w.must(kinds.VirtualMachines, "vm-web")
			sees(t, "the power ("+c.reason+")", fmt.Sprint(at(vm.Object, "spec", "runStrategy"), " ", at(vm.Object, "spec", "running")), c.want)
		})
	}
}

func TestAClassThatChangesReachesItsMachines(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(classes, "c", true, 2, 1, 1, "2Gi"))
	w.machine(`machineClass: c`)
	w.settle("web")
	w.store(parse(t, fmt.Sprintf(classes, "c", true, 3, 1, 1, "2Gi")))
	w.settle("web")
	sees(t, "UP-7: the cores", domainOf(w.must(kinds.VirtualMachines, "vm-web"), "cpu", "cores"), "3")
}

func TestAHandEditOfAClaimIsPutBack(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	w.edit(kinds.VirtualMachines, "vm-web", func(obj *unstructured.Unstructured) {
		put(volumes(obj)[0], "elsewhere", "persistentVolumeClaim", "claimName")
	})
	w.settle("web")
	sees(t, "UP-1: the claim", volumeClaim(volumes(w.must(kinds.VirtualMachines, "vm-web"))[0]), "web-root")
	if w.get(kind.PersistentVolumeClaims, "elsewhere") != nil {
		t.Error("a claim was made under the name of the hand edit")
	}
}

// upstreamVM is a virtual machine as the upstream operator makes it.
const upstreamVM = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web
  uid: uid-upstream
  labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/source-machine: web}
  annotations: {somebody: else}
spec:
  runStrategy: Halted
  template:
    metadata: {labels: {vitistack.io/source-machine: web}, annotations: {kubevirt.io/x: "y"}}
    spec:
      architecture: amd64
      domain:
        cpu: {cores: 3, model: host-model}
        memory: {guest: 3Gi}
        machine: {type: q35}
        firmware: {uuid: u, bootloader: {efi: {secureBoot: false}}}
        devices:
          networkInterfaceMultiqueue: true
          disks: [{name: root, bootOrder: 1, disk: {bus: virtio}}, {name: cloudinitdisk, disk: {bus: virtio}}]
          interfaces: [{name: default, bridge: {}, macAddress: "02:ab:00:00:00:01", bootOrder: 2}]
      networks: [{name: default, pod: {}}]
      volumes: [{name: root, persistentVolumeClaim: {claimName: web}}, {name: cloudinitdisk, cloudInitNoCloud: {userDataBase64: aGVsbG8=}}]
`

const upstreamClaim = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web, labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/source-machine: web, disk-type: boot}}, spec: {accessModes: [ReadWriteMany], volumeMode: Block, storageClassName: fast, resources: {requests: {storage: 10Gi}}}}`

func TestTakeover(t *testing.T) {
	w := newWorld(t, upstreamVM, upstreamClaim, netconf("web", `name: web, networkInterfaces: [{name: default, macAddress: "02:ab:00:00:00:01"}]`))
	w.add(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, uid: uid-web, generation: 7, finalizers: [machine.vitistack.io/finalizer]}, spec: {template: small, cloudInit: {userData: other}}, status: {phase: Failed, failureReason: Old, failureMessage: text, conditions: [{type: Unknown, lastTransitionTime: null}, {type: Unknown}, {type: Theirs, status: "True"}]}}`)
	vm, claim, record := w.must(kinds.VirtualMachines, "web"), w.must(kind.PersistentVolumeClaims, "web"), w.must(kinds.NetworkConfigurations, "web")
	w.settle("web")

	after := w.must(kinds.VirtualMachines, "web")
	before := vm.DeepCopy()
	for _, obj := range []*unstructured.Unstructured{before, after.DeepCopy()} {
		unstructured.RemoveNestedField(obj.Object, "spec", "template", "metadata")
	}
	clean := after.DeepCopy()
	unstructured.RemoveNestedField(clean.Object, "spec", "template", "metadata")
	if diff := cmp.Diff(before.Object["spec"], clean.Object["spec"]); diff != "" || after.GetUID() != vm.GetUID() {
		t.Errorf("TK-1: the virtual machine's spec has changed:\n%s", diff)
	}
	for _, obj := range []*unstructured.Unstructured{claim, record} {
		if live := w.must(resourceOf(t, obj), "web"); live.GetResourceVersion() != obj.GetResourceVersion() {
			t.Errorf("TK-1: %s was written", obj.GetKind())
		}
	}
	if claims := w.all(kind.PersistentVolumeClaims, ""); len(claims) != 1 {
		t.Errorf("TK-3: a further claim was made: %s", w.claimsOf())
	}
	sees(t, "ID-7: the generation of adoption", after.GetAnnotations()[v1alpha1.AnnotationAdopted], "7")
	sees(t, "the UID", after.GetAnnotations()[v1alpha1.AnnotationMachineUID], "uid-web")
	sees(t, "the template's label", text(after.Object, "spec", "template", "metadata", "labels", v1alpha1.LabelMachine), "web")
	sees(t, "what others noted", after.GetAnnotations()["somebody"], "else")
	if _, made := after.GetAnnotations()[kind.AnnotationInstallation]; made {
		t.Error("an adopted virtual machine is marked as made here: it could be collected as an orphan")
	}
	sees(t, "TK-9: the finalizers", strings.Join(w.must(kinds.Machines, "web").GetFinalizers(), " "), "machine.vitistack.io/finalizer machine.vitistack.io/cleanup")
	status := w.status("web")
	sees(t, "TK-5: phase", status.Phase, v1alpha1.PhaseCreating)
	if status.FailureReason != nil {
		t.Errorf("TK-5: the old failure is still there: %s", *status.FailureReason)
	}
	sees(t, "ST-11: upstream's conditions", w.cond("web", "Unknown"), "absent")
	sees(t, "other conditions", w.cond("web", "Theirs"), "True ")
	holdsText(t, "UP-4: the differences", w.message("web", v1alpha1.ConditionVirtualMachineReady), `"cores", "memory"`)

	w.respec(`template: small, cloudInit: {userData: other}, running: true, disks: [{name: data, size: 1Gi}, {name: root, size: 10Gi}]`)
	w.settle("web")
	after = w.must(kinds.VirtualMachines, "web")
	sees(t, "UP-4: the size is enforced once the spec was edited", domainOf(after, "cpu", "cores"), "1")
	sees(t, "TK-2: the CPU model is not stated", domainOf(after, "cpu", "model"), "host-model")
	sees(t, "TK-2: the firmware is not stated", domainOf(after, "firmware"), "map[bootloader:map[efi:map[secureBoot:false]] uuid:u]")
	sees(t, "TK-2: the binding is not stated", nicsOf(after), "default  bridge pod")
	sees(t, "UP-4: cloud-init is left alone", cloudInitOf(after), "cloudInitNoCloud map[userDataBase64:aGVsbG8=]")
	sees(t, "TK-3: the claim of the root disk", volumeClaim(named(volumes(after), "root")), "web")
	sees(t, "the new disk", volumeClaim(named(volumes(after), "data")), "web-data")

	w.respec(`template: small, disks: [{name: other, size: 1Gi, boot: true}]`)
	w.settle("web")
	after = w.must(kinds.VirtualMachines, "web")
	if named(volumes(after), "root") == nil || named(volumes(after), "data") == nil {
		t.Errorf("UP-4: an adopted virtual machine lost a disk: %v", volumes(after))
	}
	w.kubevirt("web")
	w.settle("web")
	holdsText(t, "UP-4: what is beyond the spec", w.message("web", v1alpha1.ConditionStorageReady), `beyond the Machine's: "data", "root"`)
}

func TestTakeoverOfAForeignClaim(t *testing.T) {
	w := newWorld(t, upstreamVM, strings.Replace(upstreamClaim, "source-machine: web", "source-machine: other", 1))
	w.machine(``)
	w.settle("web")
	sees(t, "TK-3: StorageReady", w.cond("web", v1alpha1.ConditionStorageReady), "False PVCPending")
	holdsText(t, "its message", w.message("web", v1alpha1.ConditionStorageReady), "ClaimConflict: ")
	sees(t, "the claim stays attached", volumeClaim(volumes(w.must(kinds.VirtualMachines, "web"))[0]), "web")
	sees(t, "and unmarked", w.must(kind.PersistentVolumeClaims, "web").GetAnnotations()[v1alpha1.AnnotationMachineUID], "")
}

func TestPreNovemberVM(t *testing.T) {
	w := newWorld(t, `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm-web, labels: {managed-by: kubevirt-operator, source-machine: web}, ownerReferences: [{apiVersion: vitistack.io/v1alpha1, kind: Machine, name: web, uid: uid-web}]}, spec: {runStrategy: Always, template: {spec: {volumes: [{name: root, persistentVolumeClaim: {claimName: vm-web-root-pvc}}]}}}}`)
	w.machine(``)
	w.settle("web")
	vm := w.must(kinds.VirtualMachines, "vm-web")
	if refs := vm.GetOwnerReferences(); len(refs) != 1 || string(refs[0].UID) != "uid-web" {
		t.Errorf("ID-8: the owner references are %v", refs)
	}
	v := &view{in: Input{Machine: w.must(kinds.Machines, "web")}, id: identity{name: "web", uid: "uid-web"}}
	v.own(vm)
	if refs := vm.GetOwnerReferences(); len(refs) != 0 {
		t.Errorf("TK-7: across clusters it has an owner reference: %v", refs)
	}
}

func TestRestartRequiredIsMirrored(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	w.kubevirt("vm-web")
	w.edit(kinds.VirtualMachines, "vm-web", func(obj *unstructured.Unstructured) {
		put(obj.Object, []any{map[string]any{"type": "RestartRequired", "status": "True", "message": "a non-live-updatable field was changed"}}, "status", "conditions")
	})
	w.settle("web")
	sees(t, "UP-5: the condition", w.cond("web", v1alpha1.ConditionRestartRequired), "True RestartRequired")
	sees(t, "its message", w.message("web", v1alpha1.ConditionRestartRequired), "a non-live-updatable field was changed")
	sees(t, "Ready", w.ready("web"), "True Running")
	w.edit(kinds.VirtualMachines, "vm-web", func(obj *unstructured.Unstructured) { drop(obj.Object, "status", "conditions") })
	w.settle("web")
	sees(t, "UP-5: the condition afterwards", w.cond("web", v1alpha1.ConditionRestartRequired), "absent")
}
