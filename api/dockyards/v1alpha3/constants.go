package v1alpha3

// Labels of the group.
const (
	LabelOrganizationName       = "dockyards.io/organization-name"
	LabelClusterName            = "dockyards.io/cluster-name"
	LabelNodePoolName           = "dockyards.io/node-pool-name"
	LabelNodeName               = "dockyards.io/node-name"
	LabelReleaseName            = "dockyards.io/release-name"
	LabelWorkloadName           = "dockyards.io/workload-name"
	LabelWorkloadTemplateName   = "dockyards.io/workload-template-name"
	LabelNamespaceName          = "dockyards.io/namespace-name"
	LabelCredentialTemplateName = "dockyards.io/credential-template-name" //nolint:gosec // the name of a label
	LabelUserName               = "dockyards.io/user-name"
	LabelMemberName             = "dockyards.io/member-name"
	LabelRoleName               = "dockyards.io/role-name"
	LabelProviderName           = "dockyards.io/provider-name"
	LabelDeploymentName         = "dockyards.io/deployment-name"
	// LabelHelmDeploymentName is on Helm and on container-image deployments: upstream
	// swapped this value and the next one, and live objects carry them so.
	LabelHelmDeploymentName = "dockyards.io/helm-deployment-name"
	// LabelKustomizeDeploymentName is on kustomize deployments.
	LabelKustomizeDeploymentName = "dockyards.io/container-image-deployment-name"
)

// Labels of the platform below.
const (
	// LabelNetworkAsDefault marks a NetworkAttachmentDefinition as the default
	// network of virtual machines. Its presence counts, whatever its value.
	LabelNetworkAsDefault = "kubevirt.dockyards.io/network-as-default"
	// LabelMachineName is on a Node the name of its Cluster API Machine.
	LabelMachineName = "cluster-api.dockyards.io/machine-name"
)

// Annotations of the group.
const (
	// AnnotationDefaultRelease marks a Release as the default of its type. Its
	// presence counts, whatever its value.
	AnnotationDefaultRelease = "dockyards.io/is-default-release"
	// AnnotationDefaultTemplate marks a ClusterTemplate as the default, by its
	// presence.
	AnnotationDefaultTemplate = "dockyards.io/is-default-template"
	// AnnotationSkipRemediation asks controllers to leave an object as it is, by
	// its presence.
	AnnotationSkipRemediation = "dockyards.io/skip-remediation"
	// AnnotationVoucherCode is the code that an Organization was paid with.
	AnnotationVoucherCode = "dockyards.io/voucher-code"
	// AnnotationIgnoreDeployments is kept for old readers.
	AnnotationIgnoreDeployments = "dockyards.io/ignore-deployments"
	// AnnotationTalosPlatform is on a Release the platform its image is made for.
	AnnotationTalosPlatform = "talos.dockyards.io/platform-name"
	// AnnotationTalosSchematic is on a Release the schematic of its image.
	AnnotationTalosSchematic = "talos.dockyards.io/schematic-id"
)

// Annotations that these functions add.
const (
	// AnnotationRolloutInputs is, on what rolls machines or moves a hostname, the
	// hash of what it was made from.
	AnnotationRolloutInputs = "slipway.dev/rollout-inputs"
	// AnnotationHoldRollouts is set by a person, on a NodePool or its Cluster, to
	// keep machines from being replaced. Its presence counts.
	AnnotationHoldRollouts = "slipway.dev/hold-rollouts"
	// AnnotationManagedBy marks the ingress Workload that a function keeps.
	AnnotationManagedBy = "slipway.dev/managed-by"
	// AnnotationSuperseded is "true" on an image that another one has taken the
	// place of.
	AnnotationSuperseded = "slipway.dev/superseded"
)

// Finalizers of sibling controllers.
const (
	FinalizerClusterAPI = "cluster-api.dockyards.io/finalizer"
	FinalizerBackend    = "dockyards.io/backend-controller"
)

// Values of fields.
const (
	ProvenienceDockyards = "Dockyards"
	ProvenienceUser      = "User"

	ReleaseTypeKubernetes     = "KubernetesReleases"
	ReleaseTypeTalosInstaller = "TalosInstaller"

	WorkloadTemplateTypeCUE = "dockyards.io/cue"

	StorageResourceTypeHostPath = "HostPath"

	RoleSuperUser = "SuperUser"
	RoleUser      = "User"
	RoleReader    = "Reader"

	// ProviderIDKubevirt begins the provider ID of a machine that KubeVirt runs.
	ProviderIDKubevirt = "kubevirt://"
	// ProviderIDDockyards begins the provider ID of what Dockyards itself keeps.
	ProviderIDDockyards = "dockyards://"

	SecretTypeCredential = "dockyards.io/credential" //nolint:gosec // the type of a Secret

	// DefaultTalosSchematic is the schematic of a Release that names none.
	DefaultTalosSchematic = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

	// ResourceCPU, ResourceMemory and ResourceStorage are the keys of resource
	// lists.
	ResourceCPU     = "cpu"
	ResourceMemory  = "memory"
	ResourceStorage = "storage"
)

// Keys of the shared config map, which is DefaultConfigMap in
// DefaultDockyardsNamespace unless a controller is told otherwise.
const (
	DefaultConfigMap          = "dockyards-system"
	DefaultDockyardsNamespace = "dockyards-system"
	DefaultPublicNamespace    = "dockyards-public"

	ConfigKeyExternalURL     = "externalURL"
	ConfigKeyEnvironmentName = "environmentName"
	ConfigKeyPublicNamespace = "publicNamespace"
)
