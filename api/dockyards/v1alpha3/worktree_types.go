package v1alpha3

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Worktree are files that belong to a Workload.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=worktrees,singular=worktree,scope=Namespaced
type Worktree struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec are the files.
	// +optional
	Spec WorktreeSpec `json:"spec,omitzero"`
	// status is where they have been put.
	// +optional
	Status WorktreeStatus `json:"status,omitzero"`
}

// WorktreeList is a list of Worktrees.
//
// +kubebuilder:object:root=true
type WorktreeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Worktree `json:"items"`
}

// WorktreeSpec are files.
type WorktreeSpec struct {
	// files are contents by path.
	// +optional
	Files map[string][]byte `json:"files,omitempty"`
}

// WorktreeStatus is where files have been put.
type WorktreeStatus struct {
	// conditions are statements of several controllers.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// url is the repository.
	// +optional
	URL *string `json:"url,omitempty"`
	// referenceName is the branch.
	// +optional
	ReferenceName *string `json:"referenceName,omitempty"`
	// commitHash is the commit that holds them.
	// +optional
	CommitHash *string `json:"commitHash,omitempty"`
}
