package v1alpha3

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DNSZone is a zone whose name Clusters may use.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=dnszones,singular=dnszone,scope=Namespaced
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="ZoneName",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="ProviderID",type=string,JSONPath=`.spec.providerID`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DNSZone struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the zone is.
	// +optional
	Spec DNSZoneSpec `json:"spec,omitzero"`
	// status is what has been seen.
	// +optional
	Status DNSZoneStatus `json:"status,omitzero"`
}

// DNSZoneList is a list of DNSZones.
//
// +kubebuilder:object:root=true
type DNSZoneList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []DNSZone `json:"items"`
}

// DNSZoneSpec is what a zone is.
type DNSZoneSpec struct {
	// name is the zone's name, with or without a dot at its end.
	Name string `json:"name"`
	// providerID names the zone on its platform.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`
}

// DNSZoneStatus is what has been seen of a zone.
type DNSZoneStatus struct {
	// conditions are statements of several controllers.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
