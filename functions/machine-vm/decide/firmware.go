package decide

import (
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// firmware is what a virtual machine starts with.
type firmware int

const (
	// firmwareUnset leaves it to KubeVirt, which takes BIOS.
	firmwareUnset firmware = iota
	firmwareBIOS
	firmwareEFI
	firmwareSecure
)

// firmwareStated is what the Machine says of its firmware, and whether it
// says anything.
func (v *view) firmwareStated() (firmware, bool) {
	boot := v.machine.Spec.Domain.Firmware.Bootloader
	efi, secure := boot.EFI, boot.SecureBoot
	switch {
	case secure != nil && *secure:
		return firmwareSecure, true
	case efi != nil && *efi:
		return firmwareEFI, true
	case efi != nil:
		return firmwareBIOS, true
	}
	return firmwareUnset, false
}

// checkFirmware refuses secure boot without the firmware that has it.
func (v *view) checkFirmware() {
	boot := v.machine.Spec.Domain.Firmware.Bootloader
	if boot.EFI != nil && !*boot.EFI && boot.SecureBoot != nil && *boot.SecureBoot {
		v.problem(invalid(PartSpec, "spec.domain.firmware.bootloader has secureBoot: true and efi: false: set efi: true, or leave it out"))
	}
}

// newFirmware is the firmware of a new virtual machine.
func (v *view) newFirmware() *kubevirtv1.Firmware {
	stated, ok := v.firmwareStated()
	if !ok && v.in.Settings.EFI {
		stated = firmwareEFI
	}
	no, yes := false, true
	switch stated {
	case firmwareBIOS:
		return &kubevirtv1.Firmware{Bootloader: &kubevirtv1.Bootloader{BIOS: &kubevirtv1.BIOS{}}}
	case firmwareEFI:
		// Written out: KubeVirt takes an empty efi for secure boot.
		return &kubevirtv1.Firmware{Bootloader: &kubevirtv1.Bootloader{EFI: &kubevirtv1.EFI{SecureBoot: &no}}}
	case firmwareSecure:
		return &kubevirtv1.Firmware{Bootloader: &kubevirtv1.Bootloader{EFI: &kubevirtv1.EFI{SecureBoot: &yes}}}
	case firmwareUnset:
	}
	return nil
}

// spinlockRetries is how often a guest with Hyper-V's features tries a lock.
const spinlockRetries = 8191

// newFeatures are the features of a new virtual machine; nil if the Machine
// states none.
func (v *view) newFeatures() *kubevirtv1.Features {
	stated := v.machine.Spec.Domain.Features
	secure, _ := v.firmwareStated()
	hyperv := stated.HyperV != nil && *stated.HyperV
	if stated.ACPI == nil && stated.APIC == nil && !hyperv && secure != firmwareSecure {
		return nil
	}
	features := &kubevirtv1.Features{ACPI: kubevirtv1.FeatureState{Enabled: stated.ACPI}}
	if stated.APIC != nil {
		features.APIC = &kubevirtv1.FeatureAPIC{FeatureState: kubevirtv1.FeatureState{Enabled: stated.APIC}}
	}
	yes := true
	if hyperv {
		retries := uint32(spinlockRetries)
		features.Hyperv = &kubevirtv1.FeatureHyperv{
			Relaxed:   &kubevirtv1.FeatureState{Enabled: &yes},
			VAPIC:     &kubevirtv1.FeatureState{Enabled: &yes},
			Spinlocks: &kubevirtv1.FeatureSpinlocks{FeatureState: kubevirtv1.FeatureState{Enabled: &yes}, Retries: &retries},
		}
	}
	if secure == firmwareSecure {
		features.SMM = &kubevirtv1.FeatureState{Enabled: &yes}
	}
	return features
}
