package decide

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/shared/fault"
)

// SingleCluster says whether Machines run on the management cluster itself.
type SingleCluster string

// The ways to choose the single-cluster mode.
const (
	// SingleAuto: if no KubevirtConfig exists and the cluster serves KubeVirt.
	SingleAuto SingleCluster = "auto"
	// SingleTrue: for every Machine that names no KubevirtConfig.
	SingleTrue SingleCluster = "true"
	// SingleFalse: never.
	SingleFalse SingleCluster = "false"
)

// Settings are the parts of the environment that a decision depends on.
type Settings struct {
	// VMNamePrefix goes before a Machine's name in that of its VirtualMachine.
	VMNamePrefix string
	// ManagedBy is the value of the label vitistack.io/managed-by.
	ManagedBy string
	// SingleCluster, DefaultConfig and ConfigsNamespace choose the cluster.
	SingleCluster                   SingleCluster
	DefaultConfig, ConfigsNamespace string
	// StorageClass, AccessMode and VolumeMode are for claims that state none.
	StorageClass, AccessMode, VolumeMode string
	// CPUModel and EFI are for new virtual machines.
	CPUModel string
	EFI      bool
	// MACSet is the second octet of generated MAC addresses, two hex digits.
	MACSet string
	// CNIVersion and DefaultBridge are for generated network definitions.
	CNIVersion, DefaultBridge string
	// AddressesFromRecord takes public addresses from the NetworkConfiguration
	// of the Machine instead of from its instance.
	AddressesFromRecord bool
	// ISOSize is the size of the volume for a boot image.
	ISOSize resource.Quantity
}

// DefaultSettings are those of an empty environment.
func DefaultSettings() Settings {
	return Settings{
		VMNamePrefix: v1alpha1.DefaultVMNamePrefix, ManagedBy: v1alpha1.DefaultManagedBy,
		SingleCluster: SingleAuto, ConfigsNamespace: "default",
		MACSet: "12", CNIVersion: "1.0.0", DefaultBridge: "br0",
		ISOSize: resource.MustParse("8Gi"),
	}
}

// Input is all that one decision is made from. Lists may come in any order.
type Input struct {
	Settings Settings
	// Installation is the UID of the management cluster's namespace
	// kube-system; empty when it cannot be read.
	Installation string
	// Machine is the reconciled object.
	Machine *unstructured.Unstructured
	// Target is the cluster that the Machine's objects lie on.
	Target Target
	// Faults are reads that a server refused. VMsUnread tells that one of them
	// hides whether there is a virtual machine or an instance.
	Faults    []fault.Fault
	VMsUnread bool

	// VMs are the virtual machines whose names may be the Machine's.
	VMs []unstructured.Unstructured
	// Instance is the instance of the Machine's virtual machine.
	Instance *unstructured.Unstructured
	// Claims are those labelled for the Machine, and those whose names it may
	// use.
	Claims []unstructured.Unstructured
	// ISO is the DataVolume with the Machine's boot image.
	ISO *unstructured.Unstructured
	// CloudInit is the Secret with cloud-init's data beside the virtual machine.
	CloudInit *unstructured.Unstructured
	// Attachments are the NetworkAttachmentDefinitions that the Machine may use;
	// of a Machine that goes, all of its namespace.
	Attachments []unstructured.Unstructured
	// AttachmentsServed tells whether the target knows such definitions. It is
	// asked only when one that is wanted was not found.
	AttachmentsServed bool
	// Record is the NetworkConfiguration named like the Machine.
	Record *unstructured.Unstructured

	// Addresses is the same object read once more, after what is decided from
	// its status; nil unless addresses are given out one by one.
	Addresses *unstructured.Unstructured
	// Networks are the NetworkConfigurations that the spec names.
	Networks []unstructured.Unstructured
	// NetworkNamespace is the one that the spec names.
	NetworkNamespace *unstructured.Unstructured
	// Classes are the MachineClasses that the spec names.
	Classes []unstructured.Unstructured
	// Secrets and ConfigMaps are those that the spec names for cloud-init.
	Secrets, ConfigMaps []unstructured.Unstructured
}

// Target is the cluster of a Machine's objects.
type Target struct {
	// Cluster is the name by which the runtime knows the cluster; empty for the
	// management cluster.
	Cluster string
	// Config is the KubevirtConfig of the cluster; empty in single-cluster mode.
	Config string
	// Same tells that it is the cluster that holds the Machine.
	Same bool
	// KubeVirtMissing tells that the cluster does not serve virtual machines.
	KubeVirtMissing bool
	// Automatic tells that nobody has named the KubevirtConfig: it was found.
	Automatic bool
	// Problem is why there is no cluster.
	Problem *Problem
	// Conflict is why the Machine's objects stay where they are although it is
	// to run elsewhere.
	Conflict *Problem
	// Unreachable is set when the cluster did not answer.
	Unreachable *fault.Fault
	// Undecided tells that it is not even known whether that cluster counts.
	Undecided bool
	// Nothing tells, of a Machine that goes, that no cluster holds anything of
	// it; More that another one may, besides this.
	Nothing, More bool
}

// find is the object of a name among objects of one namespace, or nil.
func find(objects []unstructured.Unstructured, name string) *unstructured.Unstructured {
	for i := range objects {
		if objects[i].GetName() == name {
			return &objects[i]
		}
	}
	return nil
}
