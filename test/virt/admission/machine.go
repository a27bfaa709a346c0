package admission

import (
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// checkPower is rule 1.
func checkPower(vm *kubevirtv1.VirtualMachine, r *report) {
	running, strategy := vm.Spec.Running, vm.Spec.RunStrategy
	if running != nil && strategy != nil {
		r.add(1, "spec.running", "excludes spec.runStrategy")
	}
	if running == nil && strategy == nil {
		r.add(1, "spec.runStrategy", "is missing")
	}
	if strategy == nil {
		return
	}
	switch *strategy {
	case kubevirtv1.RunStrategyAlways, kubevirtv1.RunStrategyHalted, kubevirtv1.RunStrategyManual,
		kubevirtv1.RunStrategyRerunOnFailure, kubevirtv1.RunStrategyOnce:
	default:
		r.add(1, "spec.runStrategy", "%q is no run strategy", *strategy)
	}
}

// machineTypes are the patterns of machine types by architecture.
var machineTypes = map[string][]string{
	"amd64": {"q35*", "pc-q35*"},
	"arm64": {"virt*"},
}

// checkMachineType is rule 9.
func checkMachineType(vm *kubevirtv1.VirtualMachine, r *report) {
	machine := vm.Spec.Template.Spec.Domain.Machine
	if machine == nil || machine.Type == "" {
		return
	}
	patterns := machineTypes[architecture(vm)]
	for _, pattern := range patterns {
		if ok, err := path.Match(pattern, machine.Type); err == nil && ok {
			return
		}
	}
	r.add(9, "spec.template.spec.domain.machine.type", "%q is not one of %v", machine.Type, patterns)
}

// architecture is the one that the machine asks for or gets by default.
func architecture(vm *kubevirtv1.VirtualMachine) string {
	if a := vm.Spec.Template.Spec.Architecture; a != "" {
		return a
	}
	return "amd64"
}

// checkFirmware is rule 10.
func checkFirmware(vm *kubevirtv1.VirtualMachine, r *report) {
	firmware := vm.Spec.Template.Spec.Domain.Firmware
	if firmware == nil || firmware.Bootloader == nil || firmware.Bootloader.EFI == nil {
		return
	}
	const field = "spec.template.spec.domain.firmware.bootloader"
	if firmware.Bootloader.BIOS != nil {
		r.add(10, field, "has both bios and efi")
	}
	secure := firmware.Bootloader.EFI.SecureBoot
	if secure != nil && !*secure {
		return
	}
	features := vm.Spec.Template.Spec.Domain.Features
	if features == nil || features.SMM == nil || features.SMM.Enabled != nil && !*features.SMM.Enabled {
		r.add(10, field+".efi", "boots securely unless secureBoot is false, and that needs features.smm.enabled")
	}
}

// checkFeatures is rule 11. It looks at the raw object, since a boolean in the place
// of a structure cannot be read as a machine at all.
func checkFeatures(vm *unstructured.Unstructured, r *report) {
	for _, feature := range []string{"acpi", "apic", "hyperv", "smm"} {
		fields := []string{"spec", "template", "spec", "domain", "features", feature}
		value, found, err := unstructured.NestedFieldNoCopy(vm.Object, fields...)
		if err != nil || !found {
			continue
		}
		if _, ok := value.(map[string]any); !ok {
			r.add(11, "spec.template.spec.domain.features."+feature, "is %v and has to be a structure", value)
		}
	}
}

// checkMemory is rule 14.
func checkMemory(vm *kubevirtv1.VirtualMachine, r *report) {
	domain := vm.Spec.Template.Spec.Domain
	if !domain.Resources.Requests.Memory().IsZero() {
		return
	}
	if domain.Memory != nil && (domain.Memory.Hugepages != nil || domain.Memory.Guest != nil && !domain.Memory.Guest.IsZero()) {
		return
	}
	r.add(14, "spec.template.spec.domain.memory.guest", "is missing, and so are huge pages and a request: no instance can be made")
}
