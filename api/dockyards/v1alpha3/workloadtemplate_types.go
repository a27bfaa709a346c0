package v1alpha3

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadTemplate renders Workloads.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=workloadtemplates,singular=workloadtemplate,scope=Namespaced
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WorkloadTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the template.
	// +optional
	Spec WorkloadTemplateSpec `json:"spec,omitzero"`
	// status is what has been found in it.
	// +optional
	Status WorkloadTemplateStatus `json:"status,omitzero"`
}

// WorkloadTemplateList is a list of WorkloadTemplates.
//
// +kubebuilder:object:root=true
type WorkloadTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []WorkloadTemplate `json:"items"`
}

// WorkloadTemplateSpec is a template.
type WorkloadTemplateSpec struct {
	// type is the language, dockyards.io/cue.
	Type string `json:"type"`
	// source is the template's text.
	// +optional
	Source string `json:"source,omitempty"`
}

// WorkloadTemplateStatus is what has been found in a template.
type WorkloadTemplateStatus struct {
	// inputSchema is the schema of what the template can be given.
	// +optional
	InputSchema *apiextensionsv1.JSON `json:"inputSchema,omitempty"`
}
