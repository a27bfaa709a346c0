package v1alpha3

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePool is a set of equal machines of a Cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=nodepools,singular=nodepool,scope=Namespaced
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodePool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is wanted.
	// +optional
	Spec NodePoolSpec `json:"spec,omitzero"`
	// status is what has been seen.
	// +optional
	Status NodePoolStatus `json:"status,omitzero"`
}

// NodePoolList is a list of NodePools.
//
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NodePool `json:"items"`
}

// NodePoolSpec is what is wanted of a set of machines.
type NodePoolSpec struct {
	// replicas is how many machines there are. Absent is different from 0.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// controlPlane makes the machines the cluster's control plane.
	// +optional
	ControlPlane bool `json:"controlPlane,omitempty"`
	// loadBalancer lets the machines announce addresses.
	// +optional
	LoadBalancer bool `json:"loadBalancer,omitempty"`
	// dedicatedRole keeps other work off the machines.
	// +optional
	DedicatedRole bool `json:"dedicatedRole,omitempty"`
	// resources are cpu, memory and storage of each machine.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// storage lets the machines serve storage.
	// +optional
	Storage bool `json:"storage,omitempty"`
	// storageResources are further disks of each machine.
	// +optional
	StorageResources []NodePoolStorageResource `json:"storageResources,omitempty"`
	// releaseRef names the Release that the machines run.
	// +optional
	ReleaseRef *corev1.TypedObjectReference `json:"releaseRef,omitempty"`
	// security are settings of the machines.
	// +optional
	Security NodePoolSecurity `json:"security,omitzero"`
	// nodeLabels are labels of the cluster's nodes. Since the group's second
	// revision.
	// +optional
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
}

// NodePoolStorageResource is one further disk of each machine of a pool.
type NodePoolStorageResource struct {
	// name is the disk's name.
	Name string `json:"name"`
	// type is HostPath, or not given.
	// +optional
	Type string `json:"type,omitempty"`
	// quantity is the disk's size.
	Quantity resource.Quantity `json:"quantity"`
}

// NodePoolSecurity are security settings of machines.
type NodePoolSecurity struct {
	// enableAppArmor turns AppArmor on.
	// +optional
	EnableAppArmor bool `json:"enableAppArmor,omitempty"`
}

// NodePoolStatus is what has been seen of a set of machines.
type NodePoolStatus struct {
	// conditions are statements of several controllers.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// clusterServiceID is an identity in another system.
	// +optional
	ClusterServiceID string `json:"clusterServiceID,omitempty"`
	// resources are what the machines have.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}
