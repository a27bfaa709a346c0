package decide

import (
	"slices"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
)

// bootOrder numbers the devices of a virtual machine: diskWord or nicWord of a
// device to its number.
func bootOrder(stated []string, disks []disk, nics []nic, iso, network bool) map[string]uint {
	devices := map[string][]string{}
	if boot := bootDisk(disks); boot >= 0 {
		devices[v1alpha1.BootDeviceDisk] = append(devices[v1alpha1.BootDeviceDisk], diskWord(disks[boot].name))
	}
	for i, d := range disks {
		if i != bootDisk(disks) {
			devices[v1alpha1.BootDeviceDisk] = append(devices[v1alpha1.BootDeviceDisk], diskWord(d.name))
		}
	}
	for _, n := range nics {
		devices[v1alpha1.BootDeviceNetwork] = append(devices[v1alpha1.BootDeviceNetwork], nicWord(n.name))
	}
	if iso {
		devices[v1alpha1.BootDeviceCDROM] = []string{diskWord(v1alpha1.ISODiskName)}
	}
	if len(stated) == 0 {
		return numbered(defaultBoot(devices, network))
	}
	var order []string
	for _, class := range stated {
		order = append(order, devices[class]...)
	}
	return numbered(order)
}

// defaultBoot is the order when none is stated: the boot disk, then the image
// if there is one, else the first interface, unless an image was named.
func defaultBoot(devices map[string][]string, network bool) []string {
	order := slices.Clone(devices[v1alpha1.BootDeviceDisk][:min(1, len(devices[v1alpha1.BootDeviceDisk]))])
	if cdrom := devices[v1alpha1.BootDeviceCDROM]; len(cdrom) > 0 {
		return append(order, cdrom...)
	}
	if nics := devices[v1alpha1.BootDeviceNetwork]; network && len(nics) > 0 {
		return append(order, nics[0])
	}
	return order
}

func numbered(devices []string) map[string]uint {
	numbers := make(map[string]uint, len(devices))
	for _, device := range devices {
		numbers[device] = uint(len(numbers)) + 1
	}
	return numbers
}

// diskWord and nicWord name a device among the words of what was written.
func diskWord(name string) string { return "disk/" + name }
func nicWord(name string) string  { return "interface/" + name }
