package decide

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
)

// bare is what a test says of an object: without what a server fills in.
func bare(obj *unstructured.Unstructured) map[string]any {
	obj = obj.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	return obj.Object
}

func wantObject(t *testing.T, got *unstructured.Unstructured, manifest string) {
	t.Helper()
	want := parse(t, manifest)
	if diff := cmp.Diff(plainNumbers(want.Object), plainNumbers(bare(got))); diff != "" {
		out, _ := yaml.Marshal(bare(got))
		t.Errorf("%s %q differs (-want +got):\n%s\nit is:\n%s", got.GetKind(), got.GetName(), diff, out)
	}
}

const madeFor = `
  labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/machine: web, vitistack.io/source-machine: web}`

const marked = `
    vitistack.io/machine-uid: uid-web
    vitistack.io/machine-name: web
    slipway.dev/installation: uid-here`

func TestNewMachineGetsEverything(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: medium, disks: [{name: data, size: 100Gi, storageClass: standard}]`)
	o := w.reconcile("web")

	var order []string
	for _, done := range o.outcomes {
		order = append(order, string(done.Result)+" "+done.Entry.Resource.Kind)
	}
	// RC-3, DL-1: the order of writes.
	if diff := cmp.Diff([]string{
		"configured Machine", "created NetworkConfiguration", "created PersistentVolumeClaim", "created PersistentVolumeClaim", "created VirtualMachine",
	}, order); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	mac := text(named(entries(w.must(kinds.NetworkConfigurations, "web").Object, "spec", "networkInterfaces"), "default"), "macAddress")

	wantObject(t, w.must(kinds.VirtualMachines, "vm-web"), `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: vm-web
  namespace: team-a`+madeFor+`
  annotations:`+marked+`
    slipway.dev/written: cores,disk/data,disk/root,interface/default,memory,sockets,threads
  ownerReferences: [{apiVersion: vitistack.io/v1alpha1, kind: Machine, name: web, uid: uid-web}]
spec:
  runStrategy: Always
  template:
    metadata: {labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/machine: web, vitistack.io/source-machine: web}}
    spec:
      domain:
        cpu: {cores: 2, threads: 1, sockets: 1}
        memory: {guest: 4Gi}
        devices:
          autoattachPodInterface: false
          networkInterfaceMultiqueue: true
          disks:
          - {name: root, bootOrder: 1, disk: {bus: virtio}}
          - {name: data, disk: {bus: virtio}}
          interfaces:
          - {name: default, bootOrder: 2, model: virtio, macAddress: "`+mac+`", masquerade: {}}
      networks:
      - {name: default, pod: {}}
      volumes:
      - {name: root, persistentVolumeClaim: {claimName: web-root}}
      - {name: data, persistentVolumeClaim: {claimName: web-data}}
`)
	wantObject(t, w.must(kind.PersistentVolumeClaims, "web-root"), `
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: web-root
  namespace: team-a
  labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/machine: web, vitistack.io/source-machine: web, disk-type: boot}
  annotations:`+marked+`
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: standard
  resources: {requests: {storage: 40Gi}}
`)
	wantObject(t, w.must(kinds.NetworkConfigurations, "web"), `
apiVersion: vitistack.io/v1alpha1
kind: NetworkConfiguration
metadata:
  name: web
  namespace: team-a`+madeFor+`
  annotations:`+marked+`
  ownerReferences: [{apiVersion: vitistack.io/v1alpha1, kind: Machine, name: web, uid: uid-web, controller: true, blockOwnerDeletion: true}]
spec:
  name: web
  networkInterfaces: [{name: default, macAddress: "`+mac+`"}]
`)
	if !strings.HasPrefix(mac, "02:12:") || !usableMAC(mac) {
		t.Errorf("NW-7: the MAC address is %q", mac)
	}
	sees(t, "Ready", w.ready("web"), "False Creating")
	sees(t, "phase", w.status("web").Phase, v1alpha1.PhaseCreating)

	w.kubevirt("vm-web")
	w.settle("web")
	sees(t, "Ready", w.ready("web"), "True Running")
	// RC-4: at the fixpoint nothing is written, and nothing is planned.
	if o := w.reconcile("web"); o.writes != 0 || len(o.decision.Plan.Stages) != 0 {
		t.Errorf("at the fixpoint there are %d writes: %v", o.writes, o.decision.Plan)
	}
}

func TestNewVMFields(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		spec     string
		settings func(*Settings)
		path     string
		want     string
	}{
		"off": {reason: "section 10, running: false", spec: `running: false`, path: "spec.runStrategy", want: "Halted"},
		"CPU model": {
			reason: "from the environment", settings: func(s *Settings) { s.CPUModel = "host-model" },
			path: "spec.template.spec.domain.cpu.model", want: "host-model",
		},
		"no CPU model":               {reason: "absent by default", path: "spec.template.spec.domain.cpu.model", want: "<nil>"},
		"no multiqueue for one core": {reason: "section 10", spec: `template: small`, path: "spec.template.spec.domain.devices.networkInterfaceMultiqueue", want: "<nil>"},
		"no multiqueue without virtio": {
			reason: "section 10", spec: `template: large, networks: [{name: a, model: e1000}]`,
			path: "spec.template.spec.domain.devices.networkInterfaceMultiqueue", want: "<nil>",
		},
		"arm64":                            {reason: "architecture", spec: `os: {architecture: arm64}`, path: "spec.template.spec.architecture", want: "arm64"},
		"FW-1 machine type":                {reason: "passed on as it is", spec: `domain: {machine: {type: pc-i440fx}}`, path: "spec.template.spec.domain.machine.type", want: "pc-i440fx"},
		"FW-2 acpi":                        {reason: "enabled or not", spec: `domain: {features: {acpi: false}}`, path: "spec.template.spec.domain.features", want: "map[acpi:map[enabled:false]]"},
		"FW-2 apic":                        {reason: "alone", spec: `domain: {features: {apic: true}}`, path: "spec.template.spec.domain.features", want: "map[apic:map[enabled:true]]"},
		"FW-2 hyperv":                      {reason: "three features", spec: `domain: {features: {hyperv: true}}`, path: "spec.template.spec.domain.features.hyperv", want: "map[relaxed:map[enabled:true] spinlocks:map[enabled:true spinlocks:8191] vapic:map[enabled:true]]"},
		"FW-2 hyperv off":                  {reason: "nothing", spec: `domain: {features: {hyperv: false}}`, path: "spec.template.spec.domain.features", want: "<nil>"},
		"FW-3 nothing said":                {reason: "KubeVirt's BIOS", path: "spec.template.spec.domain.firmware", want: "<nil>"},
		"FW-3 from environment":            {reason: "EFI without secure boot", settings: func(s *Settings) { s.EFI = true }, path: "spec.template.spec.domain.firmware", want: "map[bootloader:map[efi:map[secureBoot:false]]]"},
		"FW-4 efi":                         {reason: "written out", spec: `domain: {firmware: {bootloader: {efi: true}}}`, path: "spec.template.spec.domain.firmware", want: "map[bootloader:map[efi:map[secureBoot:false]]]"},
		"FW-4 secure boot":                 {reason: "implies efi", spec: `domain: {firmware: {bootloader: {secureBoot: true}}}`, path: "spec.template.spec.domain.firmware", want: "map[bootloader:map[efi:map[secureBoot:true]]]"},
		"FW-4 secure boot's smm":           {reason: "KubeVirt demands it", spec: `domain: {firmware: {bootloader: {efi: true, secureBoot: true}}}`, path: "spec.template.spec.domain.features", want: "map[smm:map[enabled:true]]"},
		"FW-4 efi false":                   {reason: "BIOS, written out", spec: `domain: {firmware: {bootloader: {efi: false}}}`, settings: func(s *Settings) { s.EFI = true }, path: "spec.template.spec.domain.firmware", want: "map[bootloader:map[bios:map[]]]"},
		"ID-5 prefix from the environment": {reason: "VM_NAME_PREFIX", settings: func(s *Settings) { s.VMNamePrefix = "" }, path: "metadata.name", want: "web"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.settings != nil {
				c.settings(&w.settings)
			}
			w.machine(c.spec)
			w.reconcile("web")
			vms := w.all(kinds.VirtualMachines, "")
			if len(vms) != 1 {
				t.Fatalf("there are %d virtual machines; Ready is %s: %s", len(vms), w.ready("web"), w.message("web", "Ready"))
			}
			got := at(vms[0].Object, strings.Split(c.path, ".")...)
			sees(t, c.path+" ("+c.reason+")", fmt.Sprint(got), c.want)
		})
	}
}

func TestFirmwareThatCannotBe(t *testing.T) {
	w := newWorld(t)
	w.machine(`domain: {firmware: {bootloader: {efi: false, secureBoot: true}}}`)
	w.reconcile("web")
	sees(t, "FW-4: Ready", w.ready("web"), "False InvalidSpec")
	sees(t, "VirtualMachineReady", w.cond("web", v1alpha1.ConditionVirtualMachineReady), "False VMFailed")
}

func TestBootOrder(t *testing.T) {
	two := `disks: [{name: a, size: 1Gi}, {name: b, size: 1Gi, boot: true}], networks: [{name: n1}, {name: n2, networkName: blue}]`
	iso := `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web, uid: uid-web, annotations: {kubevirt.io/boot-source: datavolume}}, spec: {os: {imageID: "https://images.example/os.iso"}, `
	for name, c := range map[string]struct{ reason, machine, want string }{
		"BO-1 all classes": {
			reason:  "the boot disk goes before the other disks",
			machine: iso + `bootOrder: [network, cdrom, disk], ` + two + `}}`, want: "a=5 b=4 cdrom-iso=3 n1=1 n2=2",
		},
		"BO-1 a class without device is skipped": {
			reason:  "no ISO",
			machine: `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web}, spec: {bootOrder: [cdrom, disk], ` + two + `}}`, want: "a=2 b=1",
		},
		"BO-2 nothing stated": {
			reason:  "disk, then PXE",
			machine: `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web}, spec: {` + two + `}}`, want: "b=1 n1=2",
		},
		"BO-2 an image is named": {
			reason:  "no PXE",
			machine: `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web}, spec: {os: {imageID: x}, ` + two + `}}`, want: "b=1",
		},
		"BO-2 with ISO": {reason: "disk, then ISO", machine: iso + two + `}}`, want: "b=1 cdrom-iso=2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, `{apiVersion: vitistack.io/v1alpha1, kind: NetworkConfiguration, metadata: {name: blue}, spec: {vlan: 7}}`)
			w.add(c.machine)
			w.reconcile("web")
			vm := w.must(kinds.VirtualMachines, "vm-web")
			var got []string
			for _, list := range []string{"disks", "interfaces"} {
				for _, d := range entries(vm.Object, "spec", "template", "spec", "domain", "devices", list) {
					if n, ok := number(d, "bootOrder"); ok {
						got = append(got, fmt.Sprintf("%s=%d", text(d, "name"), n))
					}
				}
			}
			sees(t, "the boot order ("+c.reason+")", strings.Join(got, " "), c.want)
		})
	}
}
