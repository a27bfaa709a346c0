package decide

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/shared/clip"
)

// Buses of a disk.
const (
	busVirtio = "virtio"
	busSATA   = "sata"
	busSCSI   = "scsi"
	busUSB    = "usb"
)

const archARM64 = "arm64"

// oneByte is the smallest disk. A quantity may be smaller: 1n, say.
var oneByte = *resource.NewQuantity(1, resource.BinarySI)

// disk is one disk that a Machine asks for.
type disk struct {
	name  string
	size  resource.Quantity
	sized bool
	// class, accessMode and volumeMode are as stated; empty if not.
	class, accessMode, volumeMode string
	bus                           string
	busStated                     bool
	boot                          bool
	// byDefault: nobody asked for this disk.
	byDefault bool
	// claim is the name of its claim.
	claim string
}

// resolveDisks makes the list of disks: the template's root disk with the
// spec's merged in, or the spec's alone, or one default disk.
func (v *view) resolveDisks() {
	v.disks = mergeDisks(v.size.template, v.machine.Spec.Disks)
	v.checkDisks()
	if boot := bootDisk(v.disks); boot >= 0 {
		v.disks[boot].boot = true
	}
	for i := range v.disks {
		v.disks[i].claim = v.claimName(v.disks[i])
	}
	v.checkSharedClaims()
}

func mergeDisks(t *template, specs []v1alpha1.MachineDisk) []disk {
	var disks []disk
	if t != nil && !replacesRoot(specs) {
		disks = append(disks, disk{
			name: v1alpha1.RootDiskName, size: resource.MustParse(t.rootDisk), sized: true,
			class: defaultClass, bus: busVirtio,
		})
	}
	fromTemplate := len(disks)
	for i, spec := range specs {
		name := v1alpha1.DiskName(spec.Name, i)
		base := slices.IndexFunc(disks[:fromTemplate], func(d disk) bool { return d.name == name })
		if base < 0 {
			disks = append(disks, override(disk{name: name, bus: busVirtio}, spec))
			continue
		}
		disks[base] = override(disks[base], spec)
		// A second entry of the same name is a mistake, not a second override.
		fromTemplate = 0
	}
	if t == nil && len(specs) == 0 {
		disks = append(disks, disk{
			name: v1alpha1.RootDiskName, size: resource.MustParse("10Gi"), sized: true, bus: busVirtio, byDefault: true,
		})
	}
	return disks
}

// replacesRoot tells whether a boot disk of another name takes the place of
// the template's root disk.
func replacesRoot(specs []v1alpha1.MachineDisk) bool {
	replaced := false
	for i, spec := range specs {
		name := v1alpha1.DiskName(spec.Name, i)
		if name == v1alpha1.RootDiskName {
			return false
		}
		replaced = replaced || spec.Boot
	}
	return replaced
}

// override puts the fields that an entry of the spec states over a disk.
func override(d disk, spec v1alpha1.MachineDisk) disk {
	switch {
	case spec.Size != nil:
		d.size, d.sized = *spec.Size, true
	case spec.SizeGB != 0:
		d.size, d.sized = *resource.NewQuantity(spec.SizeGB<<30, resource.BinarySI), true
	}
	if spec.StorageClass != "" {
		d.class = spec.StorageClass
	}
	if spec.AccessMode != "" {
		d.accessMode = spec.AccessMode
	}
	if spec.VolumeMode != "" {
		d.volumeMode = spec.VolumeMode
	}
	if spec.Type != "" {
		d.bus, d.busStated = busOf(spec.Type), true
	}
	d.boot = d.boot || spec.Boot
	return d
}

func busOf(diskType string) string {
	switch diskType {
	case busSATA, busSCSI, busUSB:
		return diskType
	}
	return busVirtio
}

// bootDisk is the index of the disk to boot from; -1 without disks.
func bootDisk(disks []disk) int {
	if i := slices.IndexFunc(disks, func(d disk) bool { return d.boot }); i >= 0 {
		return i
	}
	if i := slices.IndexFunc(disks, func(d disk) bool { return d.name == v1alpha1.RootDiskName }); i >= 0 {
		return i
	}
	return min(len(disks), 1) - 1
}

// reservedDisks are the names that other volumes and claims of the Machine
// have.
var reservedDisks = []string{v1alpha1.CloudInitDiskName, v1alpha1.ISODiskName, "iso"}

func (v *view) checkDisks() {
	seen := map[string]bool{}
	boots := 0
	for _, d := range v.disks {
		if seen[d.name] {
			v.badDisk(d, "is listed twice: give each disk a name of its own")
		}
		seen[d.name] = true
		if d.boot {
			boots++
		}
		v.checkDisk(d)
	}
	if boots > 1 {
		v.problem(invalid(PartStorage, fmt.Sprintf("spec.disks has %d entries with boot: true: leave one", boots)))
	}
}

func (v *view) checkDisk(d disk) {
	switch {
	case !d.sized:
		v.badDisk(d, "has no size: set size")
	case d.size.Cmp(oneByte) < 0:
		v.badDisk(d, fmt.Sprintf("has size %s: give at least one byte, like 20Gi", d.size.String()))
	}
	if len(validation.IsDNS1123Label(d.name)) > 0 {
		v.badDisk(d, "has a bad name: use lower-case letters, digits and dashes, 63 at most")
	}
	if slices.Contains(reservedDisks, d.name) {
		v.badDisk(d, "has a reserved name: choose another")
	}
	if d.bus == busSATA && v.architecture() == archARM64 {
		v.badDisk(d, "has type sata, which arm64 does not have: use virtio or scsi")
	}
}

// architecture is that of the live virtual machine, which never changes, or
// the one that is asked for.
func (v *view) architecture() string {
	if v.vm != nil {
		if live := text(v.vm.Object, "spec", "template", "spec", "architecture"); live != "" {
			return live
		}
	}
	return v.machine.Spec.OS.Architecture
}

func (v *view) badDisk(d disk, what string) {
	v.problem(invalid(PartStorage, fmt.Sprintf("disk %q %s", clip.Line(d.name, 80), what)))
}

// checkSharedClaims refuses two disks on one claim: each would overwrite the
// other.
func (v *view) checkSharedClaims() {
	users := map[string]string{}
	for _, d := range v.disks {
		other, taken := users[d.claim]
		if taken && other != d.name {
			v.problem(invalid(PartStorage, fmt.Sprintf("disks %q and %q use the same claim %q: rename one", other, d.name, d.claim)))
		}
		users[d.claim] = d.name
	}
}
