package v1alpha3

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Node is one machine of a NodePool.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=nodes,singular=node,scope=Namespaced
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="ProviderID",type=string,JSONPath=`.spec.providerID`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.resources.cpu`,priority=1
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.resources.memory`,priority=1
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=`.status.resources.storage`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Node struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the machine is.
	// +optional
	Spec NodeSpec `json:"spec,omitzero"`
	// status is what has been seen.
	// +optional
	Status NodeStatus `json:"status,omitzero"`
}

// NodeList is a list of Nodes.
//
// +kubebuilder:object:root=true
type NodeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Node `json:"items"`
}

// NodeSpec is what a machine is.
type NodeSpec struct {
	// providerID names the machine on its platform, such as
	// kubevirt://<machine>.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`
}

// NodeStatus is what has been seen of a machine.
type NodeStatus struct {
	// conditions are statements of several controllers.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// resources are cpu, memory and storage of the machine.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// clusterServiceID is kept for old readers.
	// +optional
	ClusterServiceID string `json:"clusterServiceID,omitempty"`
	// cloudServiceID is kept for old readers.
	// +optional
	CloudServiceID string `json:"cloudServiceID,omitempty"`
	// systemInfo is what the machine's kubelet tells of it.
	// +optional
	SystemInfo *corev1.NodeSystemInfo `json:"systemInfo,omitempty"`
}
