package v1alpha1

// Finalizers of a Machine.
const (
	// MachineFinalizer holds a Machine until everything made for it is gone.
	MachineFinalizer = "machine.vitistack.io/cleanup"
	// UpstreamMachineFinalizer is the upstream operator's. It is never added, left
	// in place while the Machine lives, and removed together with ours.
	UpstreamMachineFinalizer = "machine.vitistack.io/finalizer"
)

// Labels.
const (
	// LabelManagedBy is on every object that is made for a Machine.
	LabelManagedBy = "vitistack.io/managed-by"
	// LabelMachine holds the Machine's name as LabelValue shortens it.
	LabelMachine = "vitistack.io/machine"
	// LabelSourceMachine is upstream's key for the value of LabelMachine.
	LabelSourceMachine = "vitistack.io/source-machine"
	// LabelDiskType is DiskTypeBoot on the claim of the boot disk.
	LabelDiskType = "disk-type"
	// LabelVLANID is the VLAN of a NetworkAttachmentDefinition that has one.
	LabelVLANID = "vitistack.io/vlan-id"
	// LabelNetworkConfiguration is on a NetworkAttachmentDefinition the
	// NetworkConfiguration it was made from, as LabelValue shortens it.
	LabelNetworkConfiguration = "vitistack.io/network-configuration"
	// LabelClusterName is set by users on Machines, for information.
	LabelClusterName = "cluster.vitistack.io/cluster-name"
	// LabelMachineTemplate is set by users on Machines, for information.
	LabelMachineTemplate = "vitistack.io/machine-template"
	// LabelLegacyManagedBy is what upstream used before November 2025 in place of
	// LabelManagedBy. It is only read.
	LabelLegacyManagedBy = "managed-by"
	// LabelLegacySourceMachine is what upstream used before November 2025 in place
	// of LabelSourceMachine. It is only read.
	LabelLegacySourceMachine = "source-machine"
)

// Annotations.
const (
	// AnnotationKubevirtConfig is on a Machine the KubevirtConfig of its cluster.
	// It is read, and written back once a cluster has been chosen.
	AnnotationKubevirtConfig = "vitistack.io/kubevirt-config"
	// AnnotationMachineUID is on an object made for a Machine that Machine's UID.
	AnnotationMachineUID = "vitistack.io/machine-uid"
	// AnnotationMachineName is on an object made for a Machine that Machine's full
	// name.
	AnnotationMachineName = "vitistack.io/machine-name"
	// AnnotationAdopted is, on a virtual machine that others created, the
	// generation of the Machine when it was adopted.
	AnnotationAdopted = "vitistack.io/adopted"
	// AnnotationAdopt is set to "true" on a Machine by a person, to accept objects
	// of its name whose recorded UID is another: after a restore.
	AnnotationAdopt = "vitistack.io/adopt"
	// AnnotationAbandonRemote is set to "true" on a Machine by a person, to give up
	// what is on its cluster when the Machine is deleted.
	AnnotationAbandonRemote = "vitistack.io/abandon-remote"
	// AnnotationBootSource is BootSourceDataVolume on a Machine that boots from the
	// ISO image named in spec.os.imageID.
	AnnotationBootSource = "kubevirt.io/boot-source"
	// AnnotationBootSourceType is how the image is fetched: http, https or
	// registry.
	AnnotationBootSourceType = "kubevirt.io/boot-source-type"
	// AnnotationISOSize is the size of the volume for the image.
	AnnotationISOSize = "vitistack.io/iso-size"
	// AnnotationCDROMEjected is "true" on a Machine whose image may be removed.
	AnnotationCDROMEjected = "vitistack.io/cdrom-ejected"
	// AnnotationOSInstalled is "true" on a Machine whose image may be removed.
	AnnotationOSInstalled = "vitistack.io/os-installed"
	// AnnotationISOCleanedUp is set to "true" on a Machine when its image is gone.
	AnnotationISOCleanedUp = "vitistack.io/iso-cleaned-up"
	// AnnotationNADToCleanup is what upstream left during a deletion. It is ignored.
	AnnotationNADToCleanup = "vitistack.io/nad-to-cleanup"
)

// Values of labels, annotations and fields that are fixed words.
const (
	// True is the value of every annotation that is a switch.
	True = "true"
	// DefaultManagedBy is the value of LabelManagedBy unless configured otherwise.
	DefaultManagedBy = "kubevirt-operator"
	// DiskTypeBoot is the value of LabelDiskType.
	DiskTypeBoot = "boot"
	// BootSourceDataVolume is the value of AnnotationBootSource.
	BootSourceDataVolume = "datavolume"
	// BootSourceTypeHTTP is the default of AnnotationBootSourceType.
	BootSourceTypeHTTP = "http"
	// BootSourceTypeHTTPS is a value of AnnotationBootSourceType.
	BootSourceTypeHTTPS = "https"
	// BootSourceTypeRegistry is a value of AnnotationBootSourceType.
	BootSourceTypeRegistry = "registry"
	// ProviderKubevirt is the provider of Machines on KubeVirt.
	ProviderKubevirt = "kubevirt"
	// BootDeviceDisk is an entry of spec.bootOrder.
	BootDeviceDisk = "disk"
	// BootDeviceNetwork is an entry of spec.bootOrder.
	BootDeviceNetwork = "network"
	// BootDeviceCDROM is an entry of spec.bootOrder.
	BootDeviceCDROM = "cdrom"
	// CloudInitTypeNoCloud is the default of spec.cloudInit.type.
	CloudInitTypeNoCloud = "noCloud"
	// CloudInitTypeConfigDrive is the other value of spec.cloudInit.type.
	CloudInitTypeConfigDrive = "configDrive"
	// CloudInitUserDataKey is the key of user data unless a reference gives one.
	CloudInitUserDataKey = "userdata"
	// CloudInitNetworkDataKey is the key of network data unless a reference gives
	// one.
	CloudInitNetworkDataKey = "networkdata"
	// KubeconfigKey is the key of a kubeconfig in its Secret.
	KubeconfigKey = "kubeconfig"
)

// Phases of a Machine.
const (
	// PhasePending means that nothing has been created yet and something is awaited.
	PhasePending = "Pending"
	// PhaseCreating means that objects are being made, or that the virtual machine
	// is on its way up.
	PhaseCreating = "Creating"
	// PhaseRunning means that the virtual machine runs.
	PhaseRunning = "Running"
	// PhaseStopped means that the virtual machine is off or going off.
	PhaseStopped = "Stopped"
	// PhaseFailed means that no virtual machine can be made from the spec as things
	// stand, or that KubeVirt reports a failed one. A KubevirtConfig is Failed when
	// its cluster cannot be used.
	PhaseFailed = "Failed"
	// PhaseReady is the phase of a KubevirtConfig whose cluster can be used.
	PhaseReady = "Ready"
)

// Values of status.status of a KubevirtConfig.
const (
	// StatusConnected means that the cluster answers.
	StatusConnected = "Connected"
	// StatusDisconnected means that the cluster does not answer.
	StatusDisconnected = "Disconnected"
)

// Values of a condition's status.
const (
	// ConditionTrue means that the statement holds.
	ConditionTrue = "True"
	// ConditionFalse means that the statement does not hold.
	ConditionFalse = "False"
	// ConditionUnknown means that nobody can tell.
	ConditionUnknown = "Unknown"
)

// Condition types of a Machine.
const (
	// ConditionReady is True while the virtual machine runs, is not paused, and the
	// three parts are True.
	ConditionReady = "Ready"
	// ConditionVirtualMachineReady is True when the virtual machine exists as asked
	// for and KubeVirt reports no failure.
	ConditionVirtualMachineReady = "VirtualMachineReady"
	// ConditionStorageReady is True when every claim is bound.
	ConditionStorageReady = "StorageReady"
	// ConditionNetworkReady is True when every network is resolved and attached.
	ConditionNetworkReady = "NetworkReady"
	// ConditionRestartRequired is there, and True, while a change waits for a
	// restart.
	ConditionRestartRequired = "RestartRequired"
	// ConditionTypeUpstreamUnknown is a type that upstream wrote, several times over
	// and without a time. DropUpstreamUnknown removes it.
	ConditionTypeUpstreamUnknown = "Unknown"
)

// Condition types of a KubevirtConfig.
const (
	// ConditionConnected is True when the cluster answers to the kubeconfig.
	ConditionConnected = "Connected"
	// ConditionKubeVirtReady is True when KubeVirt is there and available.
	ConditionKubeVirtReady = "KubeVirtReady"
	// ConditionVersionsMatch is False as a warning: it makes no phase Failed.
	ConditionVersionsMatch = "VersionsMatch"
)

// Reasons of the conditions VirtualMachineReady, StorageReady, NetworkReady and
// RestartRequired.
const (
	// ReasonVMCreated is VirtualMachineReady True.
	ReasonVMCreated = "VMCreated"
	// ReasonVMFailed is VirtualMachineReady False: it cannot be created or changed,
	// or KubeVirt reports a failure.
	ReasonVMFailed = "VMFailed"
	// ReasonPVCBound is StorageReady True.
	ReasonPVCBound = "PVCBound"
	// ReasonPVCPending is StorageReady False: a claim is missing, not bound, or
	// cannot be made.
	ReasonPVCPending = "PVCPending"
	// ReasonNetworkConfigured is NetworkReady True.
	ReasonNetworkConfigured = "NetworkConfigured"
	// ReasonNetworkFailed is NetworkReady False, and an error of its own as reason
	// of Ready: a network cannot be attached.
	ReasonNetworkFailed = "NetworkFailed"
	// ReasonWaiting is any of the three Unknown: not reached yet, or the cluster
	// cannot be seen.
	ReasonWaiting = "Waiting"
	// ReasonRestartRequired is RestartRequired True.
	ReasonRestartRequired = "RestartRequired"
)

// Reasons of the condition Ready: life cycle.
const (
	// ReasonRunning is Ready True.
	ReasonRunning = "Running"
	// ReasonCreating means that the virtual machine is on its way up.
	ReasonCreating = "Creating"
	// ReasonStopped means that the virtual machine is off or going off.
	ReasonStopped = "Stopped"
	// ReasonPaused means that the virtual machine runs and is paused.
	ReasonPaused = "Paused"
	// ReasonDeleting means that the Machine is being deleted.
	ReasonDeleting = "Deleting"
)

// Reasons of the condition Ready: something is awaited or cannot be seen.
const (
	// ReasonCloudInitSourceNotFound means that a Secret, ConfigMap or key that
	// cloud-init names does not exist.
	ReasonCloudInitSourceNotFound = "CloudInitSourceNotFound"
	// ReasonStaticAddressPending means that no static address has been allotted yet.
	ReasonStaticAddressPending = "StaticAddressPending"
	// ReasonObjectTerminating means that an object of the same name is still being
	// deleted.
	ReasonObjectTerminating = "ObjectTerminating"
	// ReasonStoragePending means that the virtual machine runs and a claim is not
	// bound.
	ReasonStoragePending = "StoragePending"
	// ReasonClusterUnreachable is Ready Unknown: the cluster does not answer.
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonVMStatusUnknown is Ready Unknown: KubeVirt does not tell.
	ReasonVMStatusUnknown = "VMStatusUnknown"
)

// Reasons of the condition Ready: errors.
const (
	// ReasonTemplateNotFound means that no template or class of the name exists.
	ReasonTemplateNotFound = "TemplateNotFound"
	// ReasonNetworkConfigurationNotFound means that a NetworkConfiguration that the
	// spec names does not exist.
	ReasonNetworkConfigurationNotFound = "NetworkConfigurationNotFound"
	// ReasonStorageClassNotFound means that a StorageClass does not exist on the
	// cluster.
	ReasonStorageClassNotFound = "StorageClassNotFound"
	// ReasonInsufficientResources means that no node has room.
	ReasonInsufficientResources = "InsufficientResources"
	// ReasonKubeVirtAPIError means that the cluster refused a request.
	ReasonKubeVirtAPIError = "KubeVirtApiError"
	// ReasonInvalidSpec means that the spec cannot work.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonClaimConflict means that a claim of the name belongs to somebody else.
	ReasonClaimConflict = "ClaimConflict"
	// ReasonVirtualMachineConflict means that a virtual machine of the name belongs
	// to somebody else.
	ReasonVirtualMachineConflict = "VirtualMachineConflict"
	// ReasonKubevirtConfigNotFound means that the KubevirtConfig does not exist.
	ReasonKubevirtConfigNotFound = "KubevirtConfigNotFound"
	// ReasonKubevirtConfigInvalid means that the KubevirtConfig or its Secret cannot
	// be used.
	ReasonKubevirtConfigInvalid = "KubevirtConfigInvalid"
	// ReasonPlacementAmbiguous means that several clusters qualify.
	ReasonPlacementAmbiguous = "PlacementAmbiguous"
	// ReasonPlacementConflict means that the spec names another cluster than the one
	// that holds the virtual machine.
	ReasonPlacementConflict = "PlacementConflict"
)

// Reasons of the condition Ready that are KubeVirt's own printable status.
const (
	// ReasonCrashLoopBackOff means that the instance fails again and again.
	ReasonCrashLoopBackOff = "CrashLoopBackOff"
	// ReasonErrImagePull means that an image cannot be fetched.
	ReasonErrImagePull = "ErrImagePull"
	// ReasonImagePullBackOff means that an image could not be fetched several times.
	ReasonImagePullBackOff = "ImagePullBackOff"
	// ReasonErrorPVCNotFound means that KubeVirt misses a claim.
	ReasonErrorPVCNotFound = "ErrorPvcNotFound"
	// ReasonDataVolumeError means that a DataVolume cannot be filled.
	ReasonDataVolumeError = "DataVolumeError"
)

// Reasons of the conditions of a KubevirtConfig.
const (
	// ReasonConnected is Connected True.
	ReasonConnected = "Connected"
	// ReasonSecretNotFound is Connected False: no such Secret, or no kubeconfig in
	// it.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonKubeconfigInvalid is Connected False: the kubeconfig cannot be read or
	// is refused.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonUnreachable is Connected False: the API server does not answer.
	ReasonUnreachable = "Unreachable"
	// ReasonUnauthorized is Connected False: the API server refuses the credentials.
	ReasonUnauthorized = "Unauthorized"
	// ReasonKubeVirtAvailable is KubeVirtReady True.
	ReasonKubeVirtAvailable = "KubeVirtAvailable"
	// ReasonKubeVirtMissing is KubeVirtReady False: KubeVirt is not installed.
	ReasonKubeVirtMissing = "KubeVirtMissing"
	// ReasonKubeVirtNotAvailable is KubeVirtReady False: KubeVirt is installed and
	// does not work.
	ReasonKubeVirtNotAvailable = "KubeVirtNotAvailable"
	// ReasonVersionsMatch is VersionsMatch True.
	ReasonVersionsMatch = "VersionsMatch"
	// ReasonVersionsDiffer is VersionsMatch False: clusters serve different versions.
	ReasonVersionsDiffer = "VersionsDiffer"
	// ReasonSchemaIncomplete is VersionsMatch False: an installed schema lacks
	// fields.
	ReasonSchemaIncomplete = "SchemaIncomplete"
)
