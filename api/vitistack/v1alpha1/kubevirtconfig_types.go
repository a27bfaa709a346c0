package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KubevirtConfig is a cluster with KubeVirt on which Machines can run.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=kubevirtconfigs,singular=kubevirtconfig,scope=Cluster,shortName=kvc
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type KubevirtConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is how the cluster is reached.
	// +optional
	Spec KubevirtConfigSpec `json:"spec,omitzero"`
	// status is what has been seen of the cluster.
	// +optional
	Status KubevirtConfigStatus `json:"status,omitzero"`
}

// KubevirtConfigList is a list of KubevirtConfigs.
//
// +kubebuilder:object:root=true
type KubevirtConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []KubevirtConfig `json:"items"`
}

// KubevirtConfigSpec is how a cluster is reached.
type KubevirtConfigSpec struct {
	// name is shown to people. References use metadata.name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name,omitempty"`

	// kubeconfigSecretRef is the name of a Secret that holds a kubeconfig under
	// the key kubeconfig.
	// +required
	// +kubebuilder:validation:MinLength=1
	KubeconfigSecretRef string `json:"kubeconfigSecretRef"`

	// secretNamespace is the namespace of that Secret. Absent, the function's
	// configuration gives it.
	// +optional
	SecretNamespace string `json:"secretNamespace,omitempty"`
}

// KubevirtConfigStatus is what has been seen of a cluster.
type KubevirtConfigStatus struct {
	// name is metadata.name.
	// +optional
	Name string `json:"name,omitempty"`
	// phase is Ready or Failed.
	// +optional
	Phase string `json:"phase,omitempty"`
	// status is Connected or Disconnected.
	// +optional
	Status string `json:"status,omitempty"`
	// message is what is wrong.
	// +optional
	Message string `json:"message,omitempty"`
	// created is kept for other writers.
	// +optional
	Created string `json:"created,omitempty"`
	// conditions are Connected, KubeVirtReady and VersionsMatch.
	// +optional
	// +listType=atomic
	Conditions []MachineCondition `json:"conditions,omitempty"`
}
