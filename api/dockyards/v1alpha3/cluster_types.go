package v1alpha3

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is a workload cluster that a tenant asks for.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusters,singular=cluster,scope=Namespaced
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.spec.duration`,priority=1
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is wanted.
	// +optional
	Spec ClusterSpec `json:"spec,omitzero"`
	// status is what has been seen.
	// +optional
	Status ClusterStatus `json:"status,omitzero"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Cluster `json:"items"`
}

// ClusterSpec is what is wanted of a cluster.
type ClusterSpec struct {
	// version is the Kubernetes version, such as v1.34.1. It may be empty until
	// the backend has filled it in.
	// +optional
	Version string `json:"version,omitempty"`
	// noDefaultIngressProvider asks for no ingress Workload.
	// +optional
	NoDefaultIngressProvider bool `json:"noDefaultIngressProvider,omitempty"`
	// noDefaultNetworkPlugin asks for no network plugin.
	// +optional
	NoDefaultNetworkPlugin bool `json:"noDefaultNetworkPlugin,omitempty"`
	// podSubnets are the CIDRs of pods.
	// +optional
	PodSubnets []string `json:"podSubnets,omitempty"`
	// serviceSubnets are the CIDRs of services.
	// +optional
	ServiceSubnets []string `json:"serviceSubnets,omitempty"`
	// upgrades are the versions that the cluster shall go through.
	// +optional
	Upgrades []ClusterUpgrade `json:"upgrades,omitempty"`
	// blockDeletion keeps the backend from deleting the cluster before it expires.
	// +optional
	BlockDeletion bool `json:"blockDeletion,omitempty"`
	// allocateInternalIP asks for an internal address.
	// +optional
	AllocateInternalIP bool `json:"allocateInternalIP,omitempty"`
	// ipPoolRef names the pool that addresses come from.
	// +optional
	IPPoolRef *corev1.TypedLocalObjectReference `json:"ipPoolRef,omitempty"`
	// duration is how long the cluster lives.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
	// authenticationConfig is how the cluster's API server tells who asks. Since
	// the group's second revision.
	// +optional
	AuthenticationConfig *AuthenticationConfig `json:"authenticationConfig,omitempty"`
	// advanced are settings of the platform below. Since the group's second
	// revision.
	// +optional
	Advanced ClusterAdvanced `json:"advanced,omitzero"`
}

// ClusterUpgrade is one step of an upgrade.
type ClusterUpgrade struct {
	// to is the Kubernetes version after the step.
	To string `json:"to"`
}

// ClusterAdvanced are settings by platform.
type ClusterAdvanced struct {
	// kubevirt is for clusters whose machines KubeVirt runs.
	// +optional
	Kubevirt ClusterAdvancedKubevirt `json:"kubevirt,omitzero"`
}

// ClusterAdvancedKubevirt are settings of clusters whose machines KubeVirt runs.
type ClusterAdvancedKubevirt struct {
	// talos is for machines that run Talos.
	// +optional
	Talos ClusterAdvancedTalos `json:"talos,omitzero"`
}

// ClusterAdvancedTalos are settings of machines that run Talos.
type ClusterAdvancedTalos struct {
	// additionalSharedConfigPatches are for every machine.
	// +optional
	// +kubebuilder:validation:items:Type=object
	AdditionalSharedConfigPatches []apiextensionsv1.JSON `json:"additionalSharedConfigPatches,omitempty"`
	// additionalControlPlaneConfigPatches are for control planes.
	// +optional
	// +kubebuilder:validation:items:Type=object
	AdditionalControlPlaneConfigPatches []apiextensionsv1.JSON `json:"additionalControlPlaneConfigPatches,omitempty"`
	// additionalWorkerConfigPatches are for workers.
	// +optional
	// +kubebuilder:validation:items:Type=object
	AdditionalWorkerConfigPatches []apiextensionsv1.JSON `json:"additionalWorkerConfigPatches,omitempty"`
}

// ClusterStatus is what has been seen of a cluster.
type ClusterStatus struct {
	// conditions are statements of several controllers.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// clusterServiceID is an identity in another system.
	// +optional
	ClusterServiceID string `json:"clusterServiceID,omitempty"`
	// version is the Kubernetes version that runs.
	// +optional
	Version string `json:"version,omitempty"`
	// dnsZones are the names of zones, with or without a dot at their end.
	// +optional
	DNSZones []string `json:"dnsZones,omitempty"`
	// apiEndpoint is where the cluster's API server answers.
	// +optional
	APIEndpoint ClusterAPIEndpoint `json:"apiEndpoint,omitzero"`
	// expirationTimestamp is when the cluster is deleted.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`
}

// ClusterAPIEndpoint is where an API server answers. Both fields are zero while
// that is not known.
type ClusterAPIEndpoint struct {
	// host is a name or an address.
	Host string `json:"host"`
	// port is a TCP port.
	Port int32 `json:"port"`
}
