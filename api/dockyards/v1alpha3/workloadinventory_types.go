package v1alpha3

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WorkloadInventory is what a Workload has brought about. It has no status.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=workloadinventories,singular=workloadinventory,scope=Namespaced
type WorkloadInventory struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the inventory.
	// +optional
	Spec WorkloadInventorySpec `json:"spec,omitzero"`
}

// WorkloadInventoryList is a list of WorkloadInventories.
//
// +kubebuilder:object:root=true
type WorkloadInventoryList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []WorkloadInventory `json:"items"`
}

// WorkloadInventorySpec is what a Workload has brought about.
type WorkloadInventorySpec struct {
	// selector finds the objects in the cluster.
	Selector metav1.LabelSelector `json:"selector"`
	// urls are where the workload answers.
	// +optional
	URLs []string `json:"urls,omitempty"`
}
