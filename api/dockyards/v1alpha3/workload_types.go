package v1alpha3

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workload is something that is installed into a Cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=workloads,singular=workload,scope=Namespaced
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Ingress",type=string,JSONPath=`.status.conditions[?(@.type=="WorkloadIngressReconciled")].reason`
// +kubebuilder:printcolumn:name="WorkloadTemplate",type=string,JSONPath=`.spec.workloadTemplateRef.name`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="IngressMessage",type=string,JSONPath=`.status.conditions[?(@.type=="WorkloadIngressReconciled")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Workload struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is wanted.
	// +optional
	Spec WorkloadSpec `json:"spec,omitzero"`
	// status is what has been seen.
	// +optional
	Status WorkloadStatus `json:"status,omitzero"`
}

// WorkloadList is a list of Workloads.
//
// +kubebuilder:object:root=true
type WorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Workload `json:"items"`
}

// WorkloadSpec is what is wanted of a workload.
type WorkloadSpec struct {
	// clusterComponent marks what the cluster itself needs.
	// +optional
	ClusterComponent bool `json:"clusterComponent,omitempty"`
	// targetNamespace is where in the cluster it is installed.
	TargetNamespace string `json:"targetNamespace"`
	// provenience says who asked for it.
	// +kubebuilder:validation:Enum=Dockyards;User
	Provenience string `json:"provenience"`
	// workloadTemplateRef names the template that renders it.
	// +optional
	WorkloadTemplateRef *corev1.TypedObjectReference `json:"workloadTemplateRef,omitempty"`
	// input is what the template is given.
	// +optional
	Input *apiextensionsv1.JSON `json:"input,omitempty"`
	// workloadTemplateInput is what input was called before.
	// +optional
	WorkloadTemplateInput *apiextensionsv1.JSON `json:"workloadTemplateInput,omitempty"`
}

// WorkloadStatus is what has been seen of a workload.
type WorkloadStatus struct {
	// conditions are statements of several controllers.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// urls are where it answers.
	// +optional
	URLs []string `json:"urls,omitempty"`
	// dependencyRefs is kept for old readers.
	// +optional
	DependencyRefs []corev1.TypedLocalObjectReference `json:"dependencyRefs,omitempty"`
	// references is kept for old readers.
	// +optional
	References []WorkloadReference `json:"references,omitempty"`
}

// WorkloadReference names an object that a workload has brought about.
type WorkloadReference struct {
	corev1.TypedObjectReference `json:",inline"`

	// parent is the object that this one belongs to.
	// +optional
	Parent *corev1.TypedLocalObjectReference `json:"parent,omitempty"`
	// urls are where it answers.
	// +optional
	URLs []string `json:"urls,omitempty"`
}
