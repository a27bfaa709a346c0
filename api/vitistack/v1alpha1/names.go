package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	// MaxNameLength is the longest name of an API object.
	MaxNameLength = 253
	// MaxLabelValueLength is the longest value of a label.
	MaxLabelValueLength = 63

	// DefaultVMNamePrefix goes before a Machine's name in that of its
	// VirtualMachine unless configured otherwise.
	DefaultVMNamePrefix = "vm-"

	// RootDiskName is the name of the first disk unless the spec gives one.
	RootDiskName = "root"
	// CloudInitDiskName is the disk and volume with cloud-init's data.
	CloudInitDiskName = "cloudinitdisk"
	// ISODiskName is the disk and volume with the image to boot from.
	ISODiskName = "cdrom-iso"
	// PodNetworkName is the interface and network of a Machine that names none.
	PodNetworkName = "default"

	isoSuffix       = "iso"
	cloudInitSuffix = "cloudinit"

	// digestLength is how much of a hash a shortened name ends with: forty bits.
	// Of ten thousand names that begin alike, two clash once in twenty thousand
	// times.
	digestLength = 10
)

// Short is s if s has at most limit bytes. Else it is the beginning of s, a dash,
// and ten hexadecimal digits of the SHA-256 of all of s, limit bytes at most: a
// function of s alone, and different for names that begin alike. The beginning
// does not end in a dash, an underscore or a dot, so a DNS name stays one.
//
// A limit below twelve leaves no room for a beginning; then the digits alone
// remain, as many as fit.
func Short(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	digest := hex.EncodeToString(sum[:])[:digestLength]
	head := strings.TrimRight(s[:max(0, limit-digestLength-1)], "-_.")
	if head == "" {
		return digest[:min(digestLength, max(0, limit))]
	}
	return head + "-" + digest
}

// LabelValue is a name as the value of a label.
func LabelValue(name string) string { return Short(name, MaxLabelValueLength) }

// VirtualMachineName is the VirtualMachine of a Machine.
func VirtualMachineName(prefix, machine string) string { return Short(prefix+machine, MaxNameLength) }

// ClaimName is the PersistentVolumeClaim of a disk of a Machine.
func ClaimName(machine, disk string) string { return child(machine, disk) }

// ISOName is the DataVolume, and its claim, with the image a Machine boots from.
func ISOName(machine string) string { return child(machine, isoSuffix) }

// CloudInitName is the Secret with cloud-init's data of a Machine.
func CloudInitName(machine string) string { return child(machine, cloudInitSuffix) }

// AttachmentName is the NetworkAttachmentDefinition of a NetworkConfiguration.
func AttachmentName(networkConfiguration string) string { return networkConfiguration }

// VLANAttachmentName is the NetworkAttachmentDefinition of a NetworkNamespace,
// and the interface and network that use it.
func VLANAttachmentName(vlan int) string { return "vlan" + strconv.Itoa(vlan) }

// RecordName is the NetworkConfiguration with the interfaces of a Machine.
func RecordName(machine string) string { return machine }

// DiskName is the name of the disk at an index of spec.disks: its own, if it has
// one.
func DiskName(name string, index int) string {
	switch {
	case name != "":
		return name
	case index == 0:
		return RootDiskName
	default:
		return "disk" + strconv.Itoa(index)
	}
}

func child(machine, suffix string) string { return Short(machine+"-"+suffix, MaxNameLength) }
