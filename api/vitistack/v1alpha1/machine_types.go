package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Machine is a virtual machine that somebody wants to have.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=machines,singular=machine,scope=Namespaced,shortName=m
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Public IPs",type=string,JSONPath=`.status.publicIPAddresses`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Machine Class",type=string,JSONPath=`.spec.machineClass`
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.spec.template`,priority=1
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.kubevirtConfigRef`,priority=1
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`,priority=1
// +kubebuilder:printcolumn:name="VM",type=string,JSONPath=`.status.vmName`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Machine struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is wanted.
	// +optional
	Spec MachineSpec `json:"spec,omitzero"`
	// status is what has been seen.
	// +optional
	Status MachineStatus `json:"status,omitzero"`
}

// MachineList is a list of Machines.
//
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Machine `json:"items"`
}

// MachineSpec is what is wanted of a virtual machine.
type MachineSpec struct {
	// name is shown to people. Objects are named after metadata.name, never
	// after this field.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name,omitempty"`

	// template is a built-in size: small, medium or large.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Template string `json:"template,omitempty"`

	// instanceType is the name of a MachineClass or, if there is none of that
	// name, of a built-in template.
	// +optional
	// +kubebuilder:validation:MinLength=1
	InstanceType string `json:"instanceType,omitempty"`

	// machineClass is the name of a MachineClass.
	// +optional
	// +kubebuilder:validation:MinLength=1
	MachineClass string `json:"machineClass,omitempty"`

	// machineType is accepted and not used.
	// +optional
	MachineType string `json:"machineType,omitempty"`

	// resources overrides the size that the template or class gives.
	// +optional
	Resources MachineResources `json:"resources,omitzero"`

	// cpu is the second spelling of resources.cpu, which wins over it.
	// +optional
	CPU MachineCPU `json:"cpu,omitzero"`

	// memory is the guest memory in bytes, 0 meaning unset: the second spelling
	// of resources.memory.size, which wins over it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Memory int64 `json:"memory,omitempty"`

	// kubevirtConfigRef is the name of the KubevirtConfig on whose cluster the
	// virtual machine shall run.
	// +optional
	// +kubebuilder:validation:MinLength=1
	KubevirtConfigRef string `json:"kubevirtConfigRef,omitempty"`

	// running is the power switch. Absent, the machine is switched on when it is
	// created and left alone afterwards.
	// +optional
	Running *bool `json:"running,omitempty"`

	// provider is empty or kubevirt for a Machine of KubeVirt. Machines of any
	// other provider are left alone.
	// +optional
	Provider string `json:"provider,omitempty"`

	// providerConfig stands for the provider if provider is empty.
	// +optional
	ProviderConfig MachineProviderConfig `json:"providerConfig,omitzero"`

	// disks are merged by name with those of the template.
	// +optional
	// +listType=atomic
	Disks []MachineDisk `json:"disks,omitempty"`

	// networks are the interfaces. Without any, the machine has one interface on
	// the pod network.
	// +optional
	// +listType=map
	// +listMapKey=name
	Networks []MachineNetworkAttachment `json:"networks,omitempty"`

	// network is the upstream project's way to name a network.
	// +optional
	Network MachineNetwork `json:"network,omitzero"`

	// bootOrder is the order in which kinds of devices are tried.
	// +optional
	// +listType=set
	// +kubebuilder:validation:items:Enum=disk;network;cdrom
	BootOrder []string `json:"bootOrder,omitempty"`

	// cloudInit configures the guest at its first boot.
	// +optional
	CloudInit *MachineCloudInit `json:"cloudInit,omitempty"`

	// domain describes the virtual hardware.
	// +optional
	Domain MachineDomain `json:"domain,omitzero"`

	// os describes the guest's operating system.
	// +optional
	OS MachineOS `json:"os,omitzero"`

	// sshKeys is accepted and not used.
	// +optional
	// +listType=atomic
	SSHKeys []string `json:"sshKeys,omitempty"`

	// userData is accepted and not used; see cloudInit.
	// +optional
	UserData string `json:"userData,omitempty"`

	// tags is accepted and not used.
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// securityGroups is accepted and not used.
	// +optional
	// +listType=atomic
	SecurityGroups []string `json:"securityGroups,omitempty"`

	// monitoring is accepted and not used.
	// +optional
	Monitoring bool `json:"monitoring,omitempty"`

	// backup is accepted and not used.
	// +optional
	Backup MachineBackup `json:"backup,omitzero"`
}

// MachineResources overrides the size of a template or class.
type MachineResources struct {
	// cpu is the topology of virtual processors.
	// +optional
	CPU MachineResourcesCPU `json:"cpu,omitzero"`
	// memory is the guest's memory.
	// +optional
	Memory MachineResourcesMemory `json:"memory,omitzero"`
}

// MachineResourcesCPU is a topology of virtual processors. A count of zero is
// unset.
type MachineResourcesCPU struct {
	// cores per socket.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Cores int `json:"cores,omitempty"`
	// threads per core.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	Threads int `json:"threads,omitempty"`
	// sockets of the machine.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Sockets int `json:"sockets,omitempty"`
}

// MachineResourcesMemory is the memory of a guest.
type MachineResourcesMemory struct {
	// size is the guest memory.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
}

// MachineCPU is the second spelling of a topology of virtual processors. A
// count of zero is unset.
type MachineCPU struct {
	// cores per socket.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Cores int `json:"cores,omitempty"`
	// threadsPerCore is the number of threads of each core.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	ThreadsPerCore int `json:"threadsPerCore,omitempty"`
	// sockets of the machine.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Sockets int `json:"sockets,omitempty"`
}

// MachineProviderConfig names a provider. Only its name is used.
type MachineProviderConfig struct {
	// name is the provider if spec.provider is empty.
	// +optional
	Name string `json:"name,omitempty"`
	// region is accepted and not used.
	// +optional
	Region string `json:"region,omitempty"`
	// zone is accepted and not used.
	// +optional
	Zone string `json:"zone,omitempty"`
	// config is accepted and not used.
	// +optional
	Config map[string]string `json:"config,omitempty"`
	// credentialsRef is accepted and not used.
	// +optional
	CredentialsRef MachineCredentialsRef `json:"credentialsRef,omitzero"`
}

// MachineCredentialsRef names a Secret with credentials of a provider. It is
// not used.
type MachineCredentialsRef struct {
	// secretName is accepted and not used.
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// namespace is accepted and not used.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// MachineDisk is a disk that is wanted, or an override of the template's disk
// of the same name.
type MachineDisk struct {
	// name is a DNS label. Absent, it is root for the first entry and
	// disk<index> for the others.
	// +optional
	Name string `json:"name,omitempty"`

	// size is how much the disk holds. It wins over sizeGB.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// sizeGB is how much the disk holds, in GiB.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	SizeGB int64 `json:"sizeGB,omitempty"`

	// storageClass is a StorageClass of the cluster that runs the machine.
	// Absent, or with the word default, that cluster's default class is used.
	// +optional
	StorageClass string `json:"storageClass,omitempty"`

	// accessMode is how many nodes may use the volume.
	// +optional
	// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteMany;ReadOnlyMany;ReadWriteOncePod
	AccessMode string `json:"accessMode,omitempty"`

	// volumeMode is whether the volume is a file system or a block device.
	// +optional
	// +kubebuilder:validation:Enum=Filesystem;Block
	VolumeMode string `json:"volumeMode,omitempty"`

	// type is a hint for the bus: virtio, sata, scsi or usb. Anything else is
	// virtio.
	// +optional
	Type string `json:"type,omitempty"`

	// boot marks the disk to boot from; at most one.
	// +optional
	Boot bool `json:"boot,omitempty"`

	// device is accepted and not used.
	// +optional
	Device string `json:"device,omitempty"`

	// encrypted is accepted and not used.
	// +optional
	Encrypted bool `json:"encrypted,omitempty"`

	// iops is accepted and not used.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=64000
	IOPS int `json:"iops,omitempty"`

	// throughput is accepted and not used.
	// +optional
	// +kubebuilder:validation:Minimum=125
	// +kubebuilder:validation:Maximum=4000
	Throughput int `json:"throughput,omitempty"`
}

// MachineNetworkAttachment is one interface and the network it is plugged into.
type MachineNetworkAttachment struct {
	// name of the interface and of the network in the virtual machine.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	Name string `json:"name"`

	// networkName is a NetworkConfiguration in the Machine's namespace. Absent,
	// the interface is on the pod network.
	// +optional
	NetworkName string `json:"networkName,omitempty"`

	// model is the network card that the guest sees. Absent, it is virtio.
	// +optional
	// +kubebuilder:validation:Enum=virtio;e1000;e1000e;rtl8139;ne2k_pci;pcnet
	Model string `json:"model,omitempty"`

	// macAddress is six octets in hexadecimal. Absent, one is derived.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$`
	MACAddress string `json:"macAddress,omitempty"`
}

// MachineNetwork is the upstream project's way to name a network. Only the
// NetworkNamespace is used.
type MachineNetwork struct {
	// networkNamespaceName is a NetworkNamespace in the Machine's namespace.
	// +optional
	NetworkNamespaceName string `json:"networkNamespaceName,omitempty"`
	// vpc is accepted and not used.
	// +optional
	VPC string `json:"vpc,omitempty"`
	// subnet is accepted and not used.
	// +optional
	Subnet string `json:"subnet,omitempty"`
	// privateIP is accepted and not used.
	// +optional
	PrivateIP string `json:"privateIP,omitempty"`
	// publicIP is accepted and not used.
	// +optional
	PublicIP string `json:"publicIP,omitempty"`
	// assignPublicIP is accepted and not used.
	// +optional
	AssignPublicIP bool `json:"assignPublicIP,omitempty"`
	// interfaces is accepted and not used.
	// +optional
	// +listType=atomic
	Interfaces []MachineNetworkInterfaceSpec `json:"interfaces,omitempty"`
}

// MachineNetworkInterfaceSpec is accepted and not used.
type MachineNetworkInterfaceSpec struct {
	// name is accepted and not used.
	// +optional
	Name string `json:"name,omitempty"`
	// subnet is accepted and not used.
	// +optional
	Subnet string `json:"subnet,omitempty"`
	// securityGroups is accepted and not used.
	// +optional
	// +listType=atomic
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// primary is accepted and not used.
	// +optional
	Primary bool `json:"primary,omitempty"`
}

// MachineCloudInit configures a guest at its first boot. User data and network
// data have four sources each, tried in this order: inline, base64, Secret,
// ConfigMap.
type MachineCloudInit struct {
	// type is the data source that the guest is shown.
	// +optional
	// +kubebuilder:validation:Enum=noCloud;configDrive
	// +kubebuilder:default=noCloud
	Type string `json:"type,omitempty"`
	// userData is user data in plain text.
	// +optional
	UserData string `json:"userData,omitempty"`
	// networkData is network data in plain text.
	// +optional
	NetworkData string `json:"networkData,omitempty"`
	// userDataBase64 is user data in base64.
	// +optional
	UserDataBase64 string `json:"userDataBase64,omitempty"`
	// networkDataBase64 is network data in base64.
	// +optional
	NetworkDataBase64 string `json:"networkDataBase64,omitempty"`
	// secretRef is a Secret with user data, tried after userDataSecretRef. Its
	// key is userdata unless given.
	// +optional
	SecretRef *MachineCloudInitRef `json:"secretRef,omitempty"`
	// userDataSecretRef is a Secret with user data. Its key is userdata unless
	// given.
	// +optional
	UserDataSecretRef *MachineCloudInitRef `json:"userDataSecretRef,omitempty"`
	// networkDataSecretRef is a Secret with network data. Its key is networkdata
	// unless given.
	// +optional
	NetworkDataSecretRef *MachineCloudInitRef `json:"networkDataSecretRef,omitempty"`
	// userDataConfigMapRef is a ConfigMap with user data. Its key is userdata
	// unless given.
	// +optional
	UserDataConfigMapRef *MachineCloudInitRef `json:"userDataConfigMapRef,omitempty"`
	// networkDataConfigMapRef is a ConfigMap with network data. Its key is
	// networkdata unless given.
	// +optional
	NetworkDataConfigMapRef *MachineCloudInitRef `json:"networkDataConfigMapRef,omitempty"`
}

// MachineCloudInitRef is an entry of a Secret or ConfigMap in the Machine's
// namespace.
type MachineCloudInitRef struct {
	// name of the Secret or ConfigMap.
	// +required
	Name string `json:"name"`
	// key of the entry.
	// +optional
	Key string `json:"key,omitempty"`
}

// MachineDomain describes virtual hardware.
type MachineDomain struct {
	// machine is the board.
	// +optional
	Machine MachineDomainMachine `json:"machine,omitzero"`
	// features are switches of the processor and the board.
	// +optional
	Features MachineDomainFeatures `json:"features,omitzero"`
	// firmware is what starts the boot loader.
	// +optional
	Firmware MachineDomainFirmware `json:"firmware,omitzero"`
}

// MachineDomainMachine is a board.
type MachineDomainMachine struct {
	// type is a machine type of QEMU: q35, pc-q35, pc-i440fx.
	// +optional
	Type string `json:"type,omitempty"`
}

// MachineDomainFeatures are switches of the processor and the board. Absent is
// the platform's default.
type MachineDomainFeatures struct {
	// acpi is power management by ACPI.
	// +optional
	ACPI *bool `json:"acpi,omitempty"`
	// apic is the interrupt controller of the processor.
	// +optional
	APIC *bool `json:"apic,omitempty"`
	// hyperv shows Windows the interfaces it knows from Hyper-V.
	// +optional
	HyperV *bool `json:"hyperv,omitempty"`
}

// MachineDomainFirmware is what starts the boot loader.
type MachineDomainFirmware struct {
	// bootloader chooses between BIOS and EFI.
	// +optional
	Bootloader MachineDomainBootloader `json:"bootloader,omitzero"`
}

// MachineDomainBootloader chooses between BIOS and EFI.
type MachineDomainBootloader struct {
	// efi is EFI if true and BIOS if false.
	// +optional
	EFI *bool `json:"efi,omitempty"`
	// secureBoot starts signed boot loaders only.
	// +optional
	SecureBoot *bool `json:"secureBoot,omitempty"`
}

// MachineOS describes the operating system of a guest.
type MachineOS struct {
	// family is accepted and not used.
	// +optional
	Family string `json:"family,omitempty"`
	// distribution is accepted and not used.
	// +optional
	Distribution string `json:"distribution,omitempty"`
	// version is accepted and not used.
	// +optional
	Version string `json:"version,omitempty"`
	// architecture of the processor.
	// +optional
	// +kubebuilder:validation:Enum=amd64;arm64;x86_64
	Architecture string `json:"architecture,omitempty"`
	// imageFamily is accepted and not used.
	// +optional
	ImageFamily string `json:"imageFamily,omitempty"`
	// imageID is the URL of an ISO image to boot from.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// isoUri is accepted and not used; see imageID.
	// +optional
	ISOURI string `json:"isoUri,omitempty"`
}

// MachineBackup is accepted and not used.
type MachineBackup struct {
	// enabled is accepted and not used.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// schedule is accepted and not used.
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// retentionDays is accepted and not used.
	// +optional
	RetentionDays int `json:"retentionDays,omitempty"`
}

// MachineStatus is what has been seen of a virtual machine.
type MachineStatus struct {
	// phase is one word on where the machine stands: Pending, Creating, Running,
	// Stopped or Failed.
	// +optional
	Phase string `json:"phase,omitempty"`

	// conditions are Ready, VirtualMachineReady, StorageReady and NetworkReady,
	// RestartRequired where it applies, and whatever others add.
	// +optional
	// +listType=atomic
	Conditions []MachineCondition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// message is the message of the condition Ready.
	// +optional
	Message string `json:"message,omitempty"`

	// state is what KubeVirt prints of the virtual machine, and Running while its
	// instance runs.
	// +optional
	State string `json:"state,omitempty"`

	// vmName is the VirtualMachine.
	// +optional
	VMName string `json:"vmName,omitempty"`

	// vmiName is the VirtualMachineInstance, if there is one.
	// +optional
	VMIName string `json:"vmiName,omitempty"`

	// nodeName is the node that the instance is on.
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// kubevirtConfigRef is the KubevirtConfig of the cluster that holds the
	// virtual machine.
	// +optional
	KubevirtConfigRef string `json:"kubevirtConfigRef,omitempty"`

	// resourceVersion is that of the VirtualMachine after it was last written for
	// this Machine.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`

	// lastUpdated is when this status was last written.
	// +optional
	// +nullable
	LastUpdated metav1.Time `json:"lastUpdated,omitzero"`

	// provider is kubevirt.
	// +optional
	Provider string `json:"provider,omitempty"`

	// ipAddresses are all IPv4 addresses.
	// +optional
	// +listType=atomic
	IPAddresses []string `json:"ipAddresses,omitempty"`

	// ipv6Addresses are all IPv6 addresses.
	// +optional
	// +listType=atomic
	IPv6Addresses []string `json:"ipv6Addresses,omitempty"`

	// publicIPAddresses are the addresses of interfaces that have a name.
	// +optional
	// +listType=atomic
	PublicIPAddresses []string `json:"publicIPAddresses,omitempty"`

	// privateIPAddresses are the addresses of interfaces without a name.
	// +optional
	// +listType=atomic
	PrivateIPAddresses []string `json:"privateIPAddresses,omitempty"`

	// networkInterfaces are the interfaces as the instance reports them.
	// +optional
	// +listType=atomic
	NetworkInterfaces []MachineNetworkInterfaceStatus `json:"networkInterfaces,omitempty"`

	// disks are the volumes as the instance reports them.
	// +optional
	// +listType=atomic
	Disks []MachineDiskStatus `json:"disks,omitempty"`

	// failureReason is the type of the present error. It is absent when there is
	// none.
	// +optional
	FailureReason *string `json:"failureReason,omitempty"`

	// failureMessage is the text of the present error. It is absent when there is
	// none.
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`

	// hostname is what the guest calls itself.
	// +optional
	Hostname string `json:"hostname,omitempty"`

	// architecture of the guest's processor.
	// +optional
	Architecture string `json:"architecture,omitempty"`

	// operatingSystem that the guest runs.
	// +optional
	OperatingSystem string `json:"operatingSystem,omitempty"`

	// operatingSystemVersion is the version of the guest's operating system.
	// +optional
	OperatingSystemVersion string `json:"operatingSystemVersion,omitempty"`

	// kernelVersion is the version of the guest's kernel.
	// +optional
	KernelVersion string `json:"kernelVersion,omitempty"`

	// cpus is the number of virtual processors.
	// +optional
	CPUs int `json:"cpus,omitempty"`

	// memory is the guest memory in bytes.
	// +optional
	Memory int64 `json:"memory,omitempty"`

	// bootTime is when the running instance became Running.
	// +optional
	BootTime *metav1.Time `json:"bootTime,omitempty"`

	// creationTime is kept for other writers.
	// +optional
	CreationTime *metav1.Time `json:"creationTime,omitempty"`

	// providerID is kept for other writers.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// machineID is kept for other writers.
	// +optional
	MachineID string `json:"machineID,omitempty"`

	// region is kept for other writers.
	// +optional
	Region string `json:"region,omitempty"`

	// zone is kept for other writers.
	// +optional
	Zone string `json:"zone,omitempty"`
}

// MachineNetworkInterfaceStatus is an interface as an instance reports it.
type MachineNetworkInterfaceStatus struct {
	// name of the interface in the virtual machine.
	// +optional
	Name string `json:"name,omitempty"`
	// macAddress of the interface.
	// +optional
	MACAddress string `json:"macAddress,omitempty"`
	// state of the link.
	// +optional
	State string `json:"state,omitempty"`
	// type of the interface.
	// +optional
	Type string `json:"type,omitempty"`
	// ipAddresses are its IPv4 addresses.
	// +optional
	// +listType=atomic
	IPAddresses []string `json:"ipAddresses,omitempty"`
	// ipv6Addresses are its IPv6 addresses.
	// +optional
	// +listType=atomic
	IPv6Addresses []string `json:"ipv6Addresses,omitempty"`
	// mtu is the largest packet it carries.
	// +optional
	MTU int `json:"mtu,omitempty"`
}

// MachineDiskStatus is a volume as an instance reports it.
type MachineDiskStatus struct {
	// name of the disk in the virtual machine.
	// +optional
	Name string `json:"name,omitempty"`
	// type is kept for other writers.
	// +optional
	Type string `json:"type,omitempty"`
	// mountPoint is kept for other writers.
	// +optional
	MountPoint string `json:"mountPoint,omitempty"`
	// pvcName is the PersistentVolumeClaim.
	// +optional
	PVCName string `json:"pvcName,omitempty"`
	// volumeMode of the claim.
	// +optional
	VolumeMode string `json:"volumeMode,omitempty"`
	// filesystemType is kept for other writers.
	// +optional
	FilesystemType string `json:"filesystemType,omitempty"`
	// uuid is kept for other writers.
	// +optional
	UUID string `json:"uuid,omitempty"`
	// label is kept for other writers.
	// +optional
	Label string `json:"label,omitempty"`
	// serialNumber is kept for other writers.
	// +optional
	SerialNumber string `json:"serialNumber,omitempty"`
	// device is the path in the guest.
	// +optional
	Device string `json:"device,omitempty"`
	// usagePercent is kept for other writers.
	// +optional
	UsagePercent string `json:"usagePercent,omitempty"`
	// accessModes of the claim.
	// +optional
	// +listType=atomic
	AccessModes []string `json:"accessModes,omitempty"`
	// size is the capacity in bytes.
	// +optional
	Size int64 `json:"size,omitempty"`
	// usedBytes is kept for other writers.
	// +optional
	UsedBytes int64 `json:"usedBytes,omitempty"`
	// availableBytes is kept for other writers.
	// +optional
	AvailableBytes int64 `json:"availableBytes,omitempty"`
}

// MachineCondition is one statement about an object. A list of them has no
// key: upstream stored several entries of the type Unknown.
type MachineCondition struct {
	// type is what the statement is about.
	// +optional
	Type string `json:"type,omitempty"`
	// status is True, False or Unknown.
	// +optional
	Status string `json:"status,omitempty"`
	// reason is one word, in CamelCase, on why.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is a sentence for people.
	// +optional
	Message string `json:"message,omitempty"`
	// observedGeneration is the generation of the spec that the statement is
	// about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// lastTransitionTime is when status last changed.
	// +optional
	// +nullable
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`
}
