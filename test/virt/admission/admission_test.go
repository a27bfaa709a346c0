package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// accepted is a machine that meets every rule and uses what the rules are about.
const accepted = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: vm-web
  namespace: default
spec:
  runStrategy: Always
  dataVolumeTemplates:
  - metadata: {name: web-iso}
    spec:
      source: {http: {url: "https://images.example.org/debian.iso"}}
      storage: {resources: {requests: {storage: 8Gi}}}
  template:
    metadata:
      labels: {vitistack.io/machine: web}
    spec:
      domain:
        cpu: {cores: 2, threads: 1, sockets: 1}
        memory: {guest: 4Gi}
        machine: {type: q35}
        features:
          acpi: {enabled: true}
          hyperv: {relaxed: {enabled: true}, spinlocks: {enabled: true, spinlocks: 8191}}
        firmware: {bootloader: {efi: {secureBoot: false}}}
        devices:
          autoattachPodInterface: false
          disks:
          - {name: root, bootOrder: 1, disk: {bus: virtio}}
          - {name: data, disk: {bus: scsi}}
          - {name: cdrom-iso, bootOrder: 7, cdrom: {bus: sata}}
          - {name: cloudinitdisk, disk: {bus: virtio}}
          interfaces:
          - {name: default, masquerade: {}, model: virtio, macAddress: "02:AA:00:00:00:01", bootOrder: 2}
          - {name: vlan_10, bridge: {}, model: e1000e, macAddress: 02-aa-00-00-00-02}
          - {name: vlan-10b, bridge: {}}
      networks:
      - {name: default, pod: {}}
      - {name: vlan_10, multus: {networkName: other/vlan10}}
      - {name: vlan-10b, multus: {networkName: other/vlan10}}
      volumes:
      - {name: root, persistentVolumeClaim: {claimName: web-root}}
      - {name: data, persistentVolumeClaim: {claimName: web-data}}
      - {name: cdrom-iso, dataVolume: {name: web-iso}}
      - name: cloudinitdisk
        cloudInitNoCloud: {secretRef: {name: web-cloudinit}, networkDataSecretRef: {name: web-cloudinit}}
      - {name: spare, persistentVolumeClaim: {claimName: web-spare}}
`

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		// replace is a text of the accepted machine and what stands there instead.
		replace [2]string
		// want are the rules that are violated.
		want []int
	}{
		"accept the machine that uses everything": {
			reason: "volumes without disk, gaps in the boot order, one definition twice, both notations of a MAC are all fine",
		},

		"rule 1: refuse both power fields": {
			reason: "running and runStrategy exclude each other", replace: [2]string{"runStrategy: Always", "runStrategy: Always\n  running: true"}, want: []int{1},
		},
		"rule 1: refuse no power field": {
			reason: "one of them is needed", replace: [2]string{"runStrategy: Always", "# none"}, want: []int{1},
		},
		"rule 1: refuse a strategy that does not exist": {
			reason: "strategies are a fixed set", replace: [2]string{"runStrategy: Always", "runStrategy: Sometimes"}, want: []int{1},
		},
		"rule 1: accept running alone": {
			reason: "running is deprecated, not refused", replace: [2]string{"runStrategy: Always", "running: true"},
		},

		"rule 2: refuse an unknown field of the machine": {
			reason: "nothing is ignored", replace: [2]string{"runStrategy: Always", "runStrategy: Always\n  powerState: On"}, want: []int{2},
		},
		"rule 2: refuse an unknown field inside the template": {
			reason: "neither there", replace: [2]string{"cores: 2", "cores: 2, hyperthreads: 4"}, want: []int{2},
		},
		"rule 2: refuse a value of the wrong type": {
			reason: "a machine that cannot be read is refused as a whole", replace: [2]string{"cores: 2", `cores: "two"`}, want: []int{2},
		},

		"rule 3: refuse an upper-case disk": {
			reason: "the name becomes a container's", replace: [2]string{"name: data", "name: Data"}, want: []int{3},
		},
		"rule 3: refuse a disk with a dot": {
			reason: "the name is a label, not a subdomain", replace: [2]string{"name: data", "name: data.1"}, want: []int{3},
		},
		"rule 3: refuse a name of 64 characters": {
			reason: "a label ends at 63", replace: [2]string{"name: data", "name: " + strings.Repeat("d", 64)}, want: []int{3},
		},
		"rule 3: refuse two disks of one name": {
			reason: "disks are told apart by name", replace: [2]string{"{name: data, disk: {bus: scsi}}", "{name: root, disk: {bus: scsi}}"}, want: []int{3},
		},
		"rule 3: refuse a disk without volume": {
			reason: "there would be nothing behind it", replace: [2]string{"- {name: data, persistentVolumeClaim: {claimName: web-data}}", ""}, want: []int{3},
		},
		"rule 3: refuse two volumes of one name": {
			reason: "disks find their volume by name", replace: [2]string{"name: spare", "name: root"}, want: []int{3},
		},
		"rule 3: refuse a volume with two sources": {
			reason: "a volume is one thing", replace: [2]string{"{claimName: web-spare}", "{claimName: web-spare}, emptyDisk: {capacity: 1Gi}"}, want: []int{3},
		},

		"rule 4: refuse a disk on ide": {
			reason: "q35 has no ide", replace: [2]string{"disk: {bus: scsi}", "disk: {bus: ide}"}, want: []int{4},
		},
		"rule 4: refuse a disk on nvme": {
			reason: "there is no such bus", replace: [2]string{"disk: {bus: scsi}", "disk: {bus: nvme}"}, want: []int{4},
		},
		"rule 4: refuse a cdrom on virtio": {
			reason: "q35 cannot have one", replace: [2]string{"cdrom: {bus: sata}", "cdrom: {bus: virtio}"}, want: []int{4},
		},
		"rule 4: refuse a cdrom on ide": {
			reason: "q35 has no ide", replace: [2]string{"cdrom: {bus: sata}", "cdrom: {bus: ide}"}, want: []int{4},
		},
		"rule 4: refuse sata on arm64": {
			reason: "arm64 has no sata", replace: [2]string{"machine: {type: q35}", "machine: {type: virt}"}, want: []int{4},
		},
		"rule 4: accept a disk on usb": {
			reason: "slow, but possible", replace: [2]string{"disk: {bus: scsi}", "disk: {bus: usb}"},
		},

		"rule 5: refuse a dot in the name of an interface": {
			reason: "letters, digits, - and _ only", replace: [2]string{"vlan_10", "vlan.10"}, want: []int{5},
		},
		"rule 5: refuse an interface without network": {
			reason: "it would be connected to nothing", replace: [2]string{"- {name: vlan-10b, multus: {networkName: other/vlan10}}", ""}, want: []int{5},
		},
		"rule 5: refuse a network without interface": {
			reason: "nobody would use it", replace: [2]string{"- {name: vlan-10b, bridge: {}}", ""}, want: []int{5},
		},
		"rule 5: refuse two pod networks": {
			reason: "a pod has one", replace: [2]string{"- {name: vlan-10b, multus: {networkName: other/vlan10}}", "- {name: vlan-10b, pod: {}}"}, want: []int{5},
		},
		"rule 5: refuse masquerade on Multus": {
			reason: "only the pod network can be masqueraded", replace: [2]string{"{name: vlan-10b, bridge: {}}", "{name: vlan-10b, masquerade: {}}"}, want: []int{5},
		},
		"rule 5: refuse an interface without binding": {
			reason: "exactly one is needed", replace: [2]string{"{name: vlan-10b, bridge: {}}", "{name: vlan-10b}"}, want: []int{5},
		},
		"rule 5: accept bridge on the pod network": {
			reason: "it only prevents live migration", replace: [2]string{"masquerade: {}", "bridge: {}"},
		},

		"rule 6: refuse an unknown model": {
			reason: "models are a fixed set", replace: [2]string{"model: e1000e", "model: vmxnet3"}, want: []int{6},
		},
		"rule 6: refuse a malformed MAC": {
			reason: "six bytes in hexadecimal", replace: [2]string{"02-aa-00-00-00-02", "02-aa-00-00-02"}, want: []int{6},
		},
		"rule 6: refuse a MAC with dots": {
			reason: "only : and - may stand between the bytes", replace: [2]string{"02-aa-00-00-00-02", "02aa.0000.0002"}, want: []int{6},
		},

		"rule 7: refuse boot order 0": {
			reason: "it counts from 1", replace: [2]string{"bootOrder: 7", "bootOrder: 0"}, want: []int{7},
		},
		"rule 7: refuse one number for a disk and an interface": {
			reason: "disks and interfaces boot in one order", replace: [2]string{"bootOrder: 7", "bootOrder: 2"}, want: []int{7},
		},

		"rule 9: refuse i440fx": {
			reason: "a cluster emulates q35 unless configured otherwise", replace: [2]string{"machine: {type: q35}", "machine: {type: pc-i440fx-2.9}"}, want: []int{9},
		},
		"rule 9: accept a version of q35": {
			reason: "versions of the type are fine", replace: [2]string{"machine: {type: q35}", "machine: {type: pc-q35-rhel9.4.0}"},
		},

		"rule 10: refuse an empty efi without smm": {
			reason: "an empty efi is secure boot", replace: [2]string{"efi: {secureBoot: false}", "efi: {}"}, want: []int{10},
		},
		"rule 10: refuse secure boot with smm off": {
			reason: "secure boot needs smm", replace: [2]string{"acpi: {enabled: true}", "smm: {enabled: false}"}, want: []int{10},
		},
		"rule 10: refuse bios and efi together": {
			reason: "there is one firmware", replace: [2]string{"efi: {secureBoot: false}", "efi: {secureBoot: false}, bios: {}"}, want: []int{10},
		},

		"rule 11: refuse hyperv as a boolean": {
			reason: "it is a structure", replace: [2]string{"hyperv: {relaxed: {enabled: true}, spinlocks: {enabled: true, spinlocks: 8191}}", "hyperv: true"}, want: []int{11, 2},
		},
		"rule 11: refuse acpi as a boolean": {
			reason: "it is a structure", replace: [2]string{"acpi: {enabled: true}", "acpi: true"}, want: []int{11, 2},
		},

		"rule 12: refuse cloud-init without data": {
			reason: "a disk with nothing on it", replace: [2]string{"{secretRef: {name: web-cloudinit}, networkDataSecretRef: {name: web-cloudinit}}", "{}"}, want: []int{12},
		},
		"rule 12: refuse two sources of user data": {
			reason: "inline and Secret exclude each other", replace: [2]string{"{secretRef: {name: web-cloudinit},", `{secretRef: {name: web-cloudinit}, userData: "#cloud-config",`}, want: []int{12},
		},
		"rule 12: refuse 2049 bytes inline": {
			reason: "larger data belongs into a Secret", replace: [2]string{"{secretRef: {name: web-cloudinit},", "{userData: " + strings.Repeat("u", 2049) + ","}, want: []int{12},
		},
		"rule 12: refuse base64 that does not decode": {
			reason: "the guest would get nothing", replace: [2]string{"{secretRef: {name: web-cloudinit},", `{userDataBase64: "no base64!",`}, want: []int{12},
		},
		"rule 12: accept 2048 bytes inline": {
			reason: "that is the limit", replace: [2]string{"{secretRef: {name: web-cloudinit},", "{userData: " + strings.Repeat("u", 2048) + ","},
		},

		"rule 13: refuse a template without source": {
			reason: "it would stay empty", replace: [2]string{`source: {http: {url: "https://images.example.org/debian.iso"}}`, ""}, want: []int{13},
		},
		"rule 13: refuse a template that no volume uses": {
			reason: "it would be imported for nothing", replace: [2]string{"dataVolume: {name: web-iso}", "dataVolume: {name: other-iso}"}, want: []int{13},
		},

		"rule 14: refuse a machine without memory": {
			reason: "the machine is accepted, but its instance is not", replace: [2]string{"memory: {guest: 4Gi}", "memory: {}"}, want: []int{14},
		},
		"rule 14: accept a request in the memory's place": {
			reason: "the guest gets what is requested", replace: [2]string{"memory: {guest: 4Gi}", "resources: {requests: {memory: 4Gi}}"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := accepted
			if tc.replace[0] != "" {
				if !strings.Contains(text, tc.replace[0]) {
					t.Fatalf("the accepted machine has no %q", tc.replace[0])
				}
				text = strings.ReplaceAll(text, tc.replace[0], tc.replace[1])
			}
			switch name {
			case "rule 4: refuse sata on arm64":
				text = strings.Replace(text, "      domain:", "      architecture: arm64\n      domain:", 1)
			case "rule 10: refuse secure boot with smm off":
				text = strings.Replace(text, "secureBoot: false", "secureBoot: true", 1)
			}
			errs := Check(parse(t, text))
			if diff := cmp.Diff(tc.want, violated(t, errs)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s\n%v", tc.reason, diff, errs)
			}
		})
	}
	t.Run("rule 3: refuse 257 disks", func(t *testing.T) {
		vm := parse(t, accepted)
		var disks, volumes []any
		for i := range 257 {
			name := fmt.Sprintf("disk%d", i)
			disks = append(disks, map[string]any{"name": name})
			volumes = append(volumes, map[string]any{"name": name, "emptyDisk": map[string]any{"capacity": "1Gi"}})
		}
		set(t, vm, disks, "spec", "template", "spec", "domain", "devices", "disks")
		set(t, vm, volumes, "spec", "template", "spec", "volumes")
		unstructured.RemoveNestedField(vm.Object, "spec", "dataVolumeTemplates")
		if diff := cmp.Diff([]int{3}, violated(t, Check(vm))); diff != "" {
			t.Errorf("the schema allows 256 entries\n-want +got:\n%s", diff)
		}
	})
	t.Run("rule 8: accept a machine without interfaces", func(t *testing.T) {
		vm := parse(t, accepted)
		unstructured.RemoveNestedField(vm.Object, "spec", "template", "spec", "domain", "devices", "interfaces")
		unstructured.RemoveNestedField(vm.Object, "spec", "template", "spec", "networks")
		if errs := Check(vm); len(errs) > 0 {
			t.Errorf("no network at all is a choice: %v", errs)
		}
	})
}

func TestWarnings(t *testing.T) {
	if got := Warnings(parse(t, accepted)); len(got) > 0 {
		t.Errorf("want no warning from runStrategy, got %v", got)
	}
	if got := Warnings(parse(t, strings.Replace(accepted, "runStrategy: Always", "running: true", 1))); len(got) != 1 {
		t.Errorf("want one warning from running, got %v", got)
	}
}

// violated returns the numbers of the rules, each once, in their order.
func violated(t *testing.T, errs []error) []int {
	t.Helper()
	var numbers []int
	seen := map[int]bool{}
	for _, err := range errs {
		var violation *Violation
		if !errors.As(err, &violation) {
			t.Fatalf("%v is no Violation", err)
		}
		if !seen[violation.Rule] {
			numbers = append(numbers, violation.Rule)
		}
		seen[violation.Rule] = true
	}
	return numbers
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	vm := &unstructured.Unstructured{}
	if err := vm.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return vm
}

func set(t *testing.T, vm *unstructured.Unstructured, value []any, fields ...string) {
	t.Helper()
	if err := unstructured.SetNestedSlice(vm.Object, value, fields...); err != nil {
		t.Fatal(err)
	}
}
