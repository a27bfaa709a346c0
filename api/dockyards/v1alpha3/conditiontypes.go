package v1alpha3

// Types of conditions of the whole group.
const (
	ConditionReady                      = "Ready"
	ConditionReconciling                = "Reconciling"
	ConditionWorkloadTemplateReconciled = "WorkloadTemplateReconciled"
	ConditionRoleBindingsReady          = "RoleBindingsReady"
	ConditionClusterUpgradesReady       = "ClusterUpgradesReady"
	ConditionWorkloadInventoryReady     = "WorkloadInventoryReady"
	ConditionMemberAuthorizationReady   = "MemberAuthorizationReady"
	ConditionUserAuthorizationReady     = "UserAuthorizationReady"
	ConditionVerified                   = "Verified"
)

// Types of conditions that dockyards-kubevirt wrote, and these functions write
// in its place.
const (
	// ConditionAPIEndpointReconciled is on a Cluster.
	ConditionAPIEndpointReconciled = "APIEndpointReconciled"
	// ConditionIngressWorkloadReconciled is on a Cluster.
	ConditionIngressWorkloadReconciled = "IngressWorkloadReconciled"
	// ConditionKubevirtMachineTemplateReconciled is on a NodePool.
	ConditionKubevirtMachineTemplateReconciled = "KubevirtMachineTemplateReconciled"
	// ConditionTalosControlPlaneReconciled is on a NodePool of the control plane.
	ConditionTalosControlPlaneReconciled = "TalosControlPlaneReconciled"
	// ConditionTalosConfigTemplateReconciled is on a NodePool of workers.
	ConditionTalosConfigTemplateReconciled = "TalosConfigTemplateReconciled"
	// ConditionMachineDeploymentReconciled is on a NodePool of workers.
	ConditionMachineDeploymentReconciled = "MachineDeploymentReconciled"
	// ConditionWorkloadIngressReconciled is on a Workload. Upstream had none.
	ConditionWorkloadIngressReconciled = "WorkloadIngressReconciled"
)

// Types of conditions that siblings write into the same lists.
const (
	// ConditionClusterReady is on a Cluster.
	ConditionClusterReady = "ClusterReady"
	// ConditionClusterControlPlaneReady is on a Cluster.
	ConditionClusterControlPlaneReady = "ClusterControlPlaneReady"
	// ConditionClusterComponentsReady is on a Cluster.
	ConditionClusterComponentsReady = "ClusterComponentsReady"
	// ConditionClusterAvailable is on a Cluster.
	ConditionClusterAvailable = "ClusterAvailable"
	// ConditionMachineReady is on a Node.
	ConditionMachineReady = "MachineReady"
	// ConditionNodeHealthy is on a Node.
	ConditionNodeHealthy = "NodeHealthy"
)

// Reasons of the whole group.
const (
	ReasonReady                            = "Ready"
	ReasonDeleting                         = "Deleting"
	ReasonDeleted                          = "Deleted"
	ReasonCloudProjectAssigned             = "CloudProjectAssigned"
	ReasonRoleBindingsReconcileFailed      = "RoleBindingsReconcileFailed"
	ReasonClusterUpgradesReconcileFailed   = "ClusterUpgradesReconcileFailed"
	ReasonWaitingForDefaultRelease         = "WaitingForDefaultRelease"
	ReasonMemberAuthorizationInternalError = "MemberAuthorizationInternalError"
	ReasonUserAuthorizationInternalError   = "UserAuthorizationInternalError"
	ReasonVerified                         = "Verified"
	ReasonNotVerified                      = "NotVerified"
)

// Reasons that dockyards-kubevirt knew.
const (
	ReasonReconciled                 = "Reconciled"
	ReasonErrorReconciling           = "ErrorReconciling"
	ReasonNoDefaultIngressProvider   = "NoDefaultIngressProvider"
	ReasonWaitingForClusterEndpoint  = "WaitingForClusterEndpoint"
	ReasonWaitingForDataSource       = "WaitingForDataSource"
	ReasonWaitingForGatewayAddress   = "WaitingForGatewayAddress"
	ReasonWaitingForListenerHostname = "WaitingForListenerHostname"
	// ReasonWaitingForDataVolume was declared and never written.
	ReasonWaitingForDataVolume = "WaitingForDataVolume"
	// ReasonWaitingForTLSRoute was declared and never written.
	ReasonWaitingForTLSRoute = "WaitingForTLSRoute"
)

// Reasons that these functions add.
const (
	ReasonWaitingForRelease         = "WaitingForRelease"
	ReasonWaitingForMachineTemplate = "WaitingForMachineTemplate"
	ReasonWaitingForCluster         = "WaitingForCluster"
	ReasonWaitingForConfigMap       = "WaitingForConfigMap"
	ReasonWaitingForVersion         = "WaitingForVersion"
	ReasonWaitingForGateway         = "WaitingForGateway"
	ReasonWaitingForControlPlane    = "WaitingForControlPlane"
	ReasonWaitingForDNSZones        = "WaitingForDNSZones"
	ReasonClusterUnreachable        = "ClusterUnreachable"
	ReasonNoLoadBalancerService     = "NoLoadBalancerService"
	ReasonInvalidSpec               = "InvalidSpec"
	ReasonInvalidHostname           = "InvalidHostname"
	ReasonHostConflict              = "HostConflict"
	ReasonNameConflict              = "NameConflict"
	ReasonControlPlaneConflict      = "ControlPlaneConflict"
	ReasonAmbiguousDefaultNetwork   = "AmbiguousDefaultNetwork"
	ReasonRolloutHeld               = "RolloutHeld"
	// ReasonRolloutStarted is a reason of Kubernetes Events.
	ReasonRolloutStarted = "RolloutStarted"
)

// Reasons on a Workload that is rendered from a template.
const (
	ReasonWaitingForWorkloadTemplate    = "WaitingForWorkloadTemplate"
	ReasonIncorrectWorkloadTemplateType = "IncorrectWorkloadTemplateType"
	ReasonWaitingForClusterReady        = "WaitingForClusterReady"
	ReasonLoadInstanceFailed            = "LoadInstanceFailed"
	ReasonBuildInstanceFailed           = "BuildInstanceFailed"
	ReasonLookupPathFailed              = "LookupPathFailed"
	ReasonFillPathFailed                = "FillPathFailed"
	ReasonValidateFailed                = "ValidateFailed"
	ReasonFieldsFailed                  = "FieldsFailed"
	ReasonDecodeFailed                  = "DecodeFailed"
	ReasonReconcileFailed               = "ReconcileFailed"
	ReasonKustomizationReconciling      = "KustomizationReconciling"
	ReasonHelmReleaseReconciling        = "HelmReleaseReconciling"
)
