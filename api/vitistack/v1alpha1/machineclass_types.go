package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineClass is a size of machine that has a name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=machineclasses,singular=machineclass,scope=Cluster,shortName=mc
// +kubebuilder:printcolumn:name="Display Name",type=string,JSONPath=`.spec.displayName`
// +kubebuilder:printcolumn:name="Category",type=string,JSONPath=`.spec.category`
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.spec.default`
// +kubebuilder:printcolumn:name="Cpu Cores",type=string,JSONPath=`.spec.cpu.cores`
// +kubebuilder:printcolumn:name="Cpu Sockets",type=string,JSONPath=`.spec.cpu.sockets`
// +kubebuilder:printcolumn:name="Cpu Threads",type=string,JSONPath=`.spec.cpu.threads`
// +kubebuilder:printcolumn:name="Gpu Cores",type=string,JSONPath=`.spec.gpu.cores`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.memory.quantity`
// +kubebuilder:printcolumn:name="Enabled",type=string,JSONPath=`.spec.enabled`
// +kubebuilder:printcolumn:name="Created",type=string,JSONPath=`.status.created`
type MachineClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the size.
	// +optional
	Spec MachineClassSpec `json:"spec,omitzero"`
	// status is kept for other writers.
	// +optional
	Status MachineClassStatus `json:"status,omitzero"`
}

// MachineClassList is a list of MachineClasses.
//
// +kubebuilder:object:root=true
type MachineClassList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []MachineClass `json:"items"`
}

// MachineClassSpec is a size of machine.
type MachineClassSpec struct {
	// enabled tells whether Machines may name this class.
	// +required
	// +kubebuilder:default=true
	Enabled bool `json:"enabled"`

	// default is accepted and not used.
	// +required
	// +kubebuilder:default=false
	Default bool `json:"default"`

	// displayName is shown to people.
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// description is shown to people.
	// +optional
	Description string `json:"description,omitempty"`

	// category groups classes for people.
	// +required
	// +kubebuilder:default=Standard
	Category string `json:"category"`

	// cpu is the topology of virtual processors.
	// +required
	CPU MachineClassCPU `json:"cpu"`

	// memory of the guest.
	// +required
	Memory MachineClassMemory `json:"memory"`

	// gpu is accepted and not used.
	// +optional
	GPU *MachineClassGPU `json:"gpu,omitempty"`

	// machineProviders is accepted and not used. It may be empty, not absent.
	// +required
	// +listType=atomic
	MachineProviders []string `json:"machineProviders"`
}

// MachineClassCPU is a topology of virtual processors. A count of zero is
// unset.
type MachineClassCPU struct {
	// cores per socket.
	// +required
	Cores uint `json:"cores"`
	// sockets of the machine.
	// +optional
	Sockets uint `json:"sockets,omitempty"`
	// threads per core.
	// +optional
	Threads uint `json:"threads,omitempty"`
}

// MachineClassMemory is the memory of a guest.
type MachineClassMemory struct {
	// quantity is the guest memory.
	// +required
	Quantity resource.Quantity `json:"quantity"`
	// minQuantity is accepted and not used.
	// +optional
	MinQuantity *resource.Quantity `json:"minQuantity,omitempty"`
	// maxQuantity is accepted and not used.
	// +optional
	MaxQuantity *resource.Quantity `json:"maxQuantity,omitempty"`
}

// MachineClassGPU is accepted and not used.
type MachineClassGPU struct {
	// cores is accepted and not used.
	// +required
	Cores uint `json:"cores"`
	// manufacturer is accepted and not used.
	// +optional
	Manufacturer string `json:"manufacturer,omitempty"`
}

// MachineClassStatus is kept for other writers.
type MachineClassStatus struct {
	// name is kept for other writers.
	// +optional
	Name string `json:"name,omitempty"`
	// phase is kept for other writers.
	// +optional
	Phase string `json:"phase,omitempty"`
	// status is kept for other writers.
	// +optional
	Status string `json:"status,omitempty"`
	// message is kept for other writers.
	// +optional
	Message string `json:"message,omitempty"`
	// created is kept for other writers.
	// +optional
	Created string `json:"created,omitempty"`
}
