package v1alpha3

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Organization is a tenant.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=organizations,singular=organization,scope=Cluster
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="NamespaceReference",type=string,JSONPath=`.spec.namespaceRef.name`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.spec.duration`,priority=1
type Organization struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the tenant is.
	Spec OrganizationSpec `json:"spec"`
	// status is what has been seen.
	// +optional
	Status OrganizationStatus `json:"status,omitzero"`
}

// OrganizationList is a list of Organizations.
//
// +kubebuilder:object:root=true
type OrganizationList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Organization `json:"items"`
}

// OrganizationSpec is what a tenant is.
type OrganizationSpec struct {
	// displayName is shown to people.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// namespaceRef names the tenant's namespace.
	// +optional
	NamespaceRef *corev1.LocalObjectReference `json:"namespaceRef,omitempty"`
	// skipAutoAssign keeps the tenant from being made ready on its own.
	// +optional
	SkipAutoAssign bool `json:"skipAutoAssign,omitempty"`
	// duration is how long the tenant lives.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
	// providerID names the tenant on its platform.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`
	// projectRef names the tenant's project on its platform.
	// +optional
	ProjectRef *corev1.TypedObjectReference `json:"projectRef,omitempty"`
	// credentialRef names the credential for that project.
	// +optional
	CredentialRef *corev1.TypedObjectReference `json:"credentialRef,omitempty"`
	// memberRefs is kept for old readers.
	// +optional
	MemberRefs []OrganizationMemberReference `json:"memberRefs,omitempty"`
}

// OrganizationMemberReference names a member of a tenant.
//
// +structType=atomic
type OrganizationMemberReference struct {
	corev1.TypedLocalObjectReference `json:",inline"`

	// role is what the member may do.
	// +kubebuilder:validation:Enum=SuperUser;User;Reader
	Role string `json:"role"`
	// uid is the member's identity.
	UID types.UID `json:"uid"`
}

// OrganizationStatus is what has been seen of a tenant.
type OrganizationStatus struct {
	// conditions are statements of several controllers.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// resourceQuotas are what the tenant may use.
	// +optional
	ResourceQuotas corev1.ResourceList `json:"resourceQuotas,omitempty"`
	// expirationTimestamp is when the tenant is deleted.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`
	// namespaceRef is kept for old readers.
	// +optional
	NamespaceRef *corev1.LocalObjectReference `json:"namespaceRef,omitempty"`
}
