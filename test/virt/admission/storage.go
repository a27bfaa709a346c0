package admission

import (
	"encoding/base64"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

const (
	disksField   = "spec.template.spec.domain.devices.disks"
	volumesField = "spec.template.spec.volumes"

	// maxDevices is the limit of the lists of devices in KubeVirt's definitions.
	maxDevices = 256
	// maxCloudInit is the number of bytes of data that may stand in the machine.
	maxCloudInit = 2048
)

// checkDisks is the part of rule 3 that is about disks.
func checkDisks(vm *kubevirtv1.VirtualMachine, r *report) {
	volumes := map[string]bool{}
	for _, volume := range vm.Spec.Template.Spec.Volumes {
		volumes[volume.Name] = true
	}
	seen := map[string]bool{}
	for i, disk := range vm.Spec.Template.Spec.Domain.Devices.Disks {
		name := at(disksField, i, ".name")
		// The name becomes that of a container.
		for _, reason := range validation.IsDNS1123Label(disk.Name) {
			r.add(3, name, "%q: %s", disk.Name, reason)
		}
		if seen[disk.Name] {
			r.add(3, name, "%q stands twice", disk.Name)
		}
		if !volumes[disk.Name] {
			r.add(3, name, "%q has no volume", disk.Name)
		}
		seen[disk.Name] = true
	}
}

// checkVolumes is the part of rule 3 that is about volumes.
func checkVolumes(vm *kubevirtv1.VirtualMachine, r *report) {
	seen := map[string]bool{}
	for i, volume := range vm.Spec.Template.Spec.Volumes {
		if seen[volume.Name] {
			r.add(3, at(volumesField, i, ".name"), "%q stands twice", volume.Name)
		}
		seen[volume.Name] = true
		if n := countSet(reflect.ValueOf(volume.VolumeSource)); n != 1 {
			r.add(3, at(volumesField, i, ""), "has %d sources and needs one", n)
		}
	}
}

// checkDeviceCounts is the part of rule 3 that the definition's schema enforces.
func checkDeviceCounts(vm *kubevirtv1.VirtualMachine, r *report) {
	devices := vm.Spec.Template.Spec.Domain.Devices
	counts := []struct {
		field string
		n     int
	}{
		{disksField, len(devices.Disks)},
		{interfacesField, len(devices.Interfaces)},
		{networksField, len(vm.Spec.Template.Spec.Networks)},
		{volumesField, len(vm.Spec.Template.Spec.Volumes)},
	}
	for _, count := range counts {
		if count.n > maxDevices {
			r.add(3, count.field, "has %d entries, at most %d are allowed", count.n, maxDevices)
		}
	}
}

// checkBuses is rule 4.
func checkBuses(vm *kubevirtv1.VirtualMachine, r *report) {
	arm := architecture(vm) == "arm64"
	for i, disk := range vm.Spec.Template.Spec.Domain.Devices.Disks {
		kind, bus, targets := target(disk)
		if targets > 1 {
			r.add(4, at(disksField, i, ""), "is more than one of disk, cdrom and lun")
		}
		field := at(disksField, i, "."+kind+".bus")
		switch bus {
		case "", kubevirtv1.DiskBusSCSI, kubevirtv1.DiskBusUSB:
		case kubevirtv1.DiskBusSATA:
			if arm {
				r.add(4, field, "arm64 has no sata")
			}
			if disk.Disk != nil && disk.Disk.ReadOnly {
				r.add(4, field, "a disk that is read only cannot be on sata")
			}
		case kubevirtv1.DiskBusVirtio:
			if kind == "cdrom" {
				r.add(4, field, "a cdrom cannot be on virtio")
			}
		default:
			r.add(4, field, "%q is not one of virtio, sata, scsi, usb", bus)
		}
	}
}

// target returns what a disk is, its bus, and how many things it claims to be.
func target(disk kubevirtv1.Disk) (kind string, bus kubevirtv1.DiskBus, targets int) {
	kind = "disk"
	if disk.LUN != nil {
		kind, bus, targets = "lun", disk.LUN.Bus, targets+1
	}
	if disk.CDRom != nil {
		kind, bus, targets = "cdrom", disk.CDRom.Bus, targets+1
	}
	if disk.Disk != nil {
		kind, bus, targets = "disk", disk.Disk.Bus, targets+1
	}
	return kind, bus, targets
}

// checkBootOrder is rule 7.
func checkBootOrder(vm *kubevirtv1.VirtualMachine, r *report) {
	devices := vm.Spec.Template.Spec.Domain.Devices
	taken := map[uint]bool{}
	check := func(field string, order *uint) {
		if order == nil {
			return
		}
		if *order == 0 {
			r.add(7, field, "has to be at least 1")
		}
		if taken[*order] {
			r.add(7, field, "%d is another device's, too", *order)
		}
		taken[*order] = true
	}
	for i, disk := range devices.Disks {
		check(at(disksField, i, ".bootOrder"), disk.BootOrder)
	}
	for i, iface := range devices.Interfaces {
		check(at(interfacesField, i, ".bootOrder"), iface.BootOrder)
	}
}

// cloudInit is what both forms of cloud-init volumes have in common.
type cloudInit struct {
	field               string
	user, network       string
	user64, network64   string
	userRef, networkRef *corev1.LocalObjectReference
}

// checkCloudInit is rule 12.
func checkCloudInit(vm *kubevirtv1.VirtualMachine, r *report) {
	for i, volume := range vm.Spec.Template.Spec.Volumes {
		var c cloudInit
		switch {
		case volume.CloudInitNoCloud != nil:
			s := volume.CloudInitNoCloud
			c = cloudInit{
				field: at(volumesField, i, ".cloudInitNoCloud"), user: s.UserData, user64: s.UserDataBase64, userRef: s.UserDataSecretRef,
				network: s.NetworkData, network64: s.NetworkDataBase64, networkRef: s.NetworkDataSecretRef,
			}
		case volume.CloudInitConfigDrive != nil:
			s := volume.CloudInitConfigDrive
			c = cloudInit{
				field: at(volumesField, i, ".cloudInitConfigDrive"), user: s.UserData, user64: s.UserDataBase64, userRef: s.UserDataSecretRef,
				network: s.NetworkData, network64: s.NetworkDataBase64, networkRef: s.NetworkDataSecretRef,
			}
		default:
			continue
		}
		c.check(r)
	}
}

func (c cloudInit) check(r *report) {
	user := checkData(r, c.field, "userData", c.user, c.user64, c.userRef)
	network := checkData(r, c.field, "networkData", c.network, c.network64, c.networkRef)
	if user+network == 0 {
		r.add(12, c.field, "has neither user data nor network data")
	}
}

// checkData checks the sources of one kind of data and returns their number.
func checkData(r *report, field, kind, inline, encoded string, secret *corev1.LocalObjectReference) int {
	sources, size := 0, 0
	if secret != nil && secret.Name != "" {
		sources++
	}
	if encoded != "" {
		sources++
		decoded, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			r.add(12, field+"."+kind+"Base64", "is not base64: %v", err)
		}
		size = len(decoded)
	}
	if inline != "" {
		sources++
		size = len(inline)
	}
	if sources > 1 {
		r.add(12, field, "has %d sources of %s, at most one is allowed", sources, kind)
	}
	if size > maxCloudInit {
		r.add(12, field+"."+kind, "has %d bytes, at most %d may stand in the machine", size, maxCloudInit)
	}
	return sources
}

// checkDataVolumeTemplates is rule 13.
func checkDataVolumeTemplates(vm *kubevirtv1.VirtualMachine, r *report) {
	used := map[string]bool{}
	for _, volume := range vm.Spec.Template.Spec.Volumes {
		if volume.DataVolume != nil {
			used[volume.DataVolume.Name] = true
		}
		if volume.PersistentVolumeClaim != nil {
			used[volume.PersistentVolumeClaim.ClaimName] = true
		}
	}
	for i, template := range vm.Spec.DataVolumeTemplates {
		field := at("spec.dataVolumeTemplates", i, "")
		if template.Name == "" {
			r.add(13, field+".metadata.name", "is missing")
			continue
		}
		if (template.Spec.PVC == nil) == (template.Spec.Storage == nil) {
			r.add(13, field+".spec", "needs one of pvc and storage")
		}
		checkSource(template, field, r)
		if !used[template.Name] {
			r.add(13, field, "%q is no volume of the machine", template.Name)
		}
	}
}

func checkSource(template kubevirtv1.DataVolumeTemplateSpec, field string, r *report) {
	spec := template.Spec
	populated := spec.PVC != nil && (spec.PVC.DataSource != nil || spec.PVC.DataSourceRef != nil) ||
		spec.Storage != nil && (spec.Storage.DataSource != nil || spec.Storage.DataSourceRef != nil)
	stated := spec.Source != nil || spec.SourceRef != nil
	if populated == stated {
		r.add(13, field+".spec.source", "needs either a source or a populator")
		return
	}
	if spec.Source == nil {
		return
	}
	if n := countSet(reflect.ValueOf(*spec.Source)); n != 1 {
		r.add(13, field+".spec.source", "has %d sources and needs one", n)
	}
}

// countSet counts the fields of a structure of pointers that are set.
func countSet(structure reflect.Value) int {
	n := 0
	for i := range structure.NumField() {
		if !structure.Field(i).IsZero() {
			n++
		}
	}
	return n
}
