package v1alpha3

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Release are versions that can be installed, and where their image is. It has
// no conditions.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=releases,singular=release,scope=Namespaced
// +kubebuilder:printcolumn:name="Latest",type=string,JSONPath=`.status.latestVersion`
type Release struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is wanted.
	// +optional
	Spec ReleaseSpec `json:"spec,omitzero"`
	// status is what has been found.
	// +optional
	Status ReleaseStatus `json:"status,omitzero"`
}

// ReleaseList is a list of Releases.
//
// +kubebuilder:object:root=true
type ReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Release `json:"items"`
}

// ReleaseSpec is what versions are wanted.
type ReleaseSpec struct {
	// type is KubernetesReleases or TalosInstaller.
	Type string `json:"type"`
	// ranges are ranges of semantic versions.
	// +optional
	Ranges []string `json:"ranges,omitempty"`
}

// ReleaseStatus is what versions there are.
type ReleaseStatus struct {
	// latestVersion is the newest of them.
	// +optional
	LatestVersion string `json:"latestVersion,omitempty"`
	// versions are all of them, the newest one first.
	// +optional
	Versions []string `json:"versions,omitempty"`
	// latestURL is where the disk image of the newest one is. Absent is different
	// from empty.
	// +optional
	LatestURL *string `json:"latestURL,omitempty"`
}
