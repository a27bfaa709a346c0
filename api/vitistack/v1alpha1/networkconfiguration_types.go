package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NetworkConfiguration is a network that Machines attach to, and, named like a
// Machine, the record of that Machine's interfaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=networkconfigurations,singular=networkconfiguration,scope=Namespaced,shortName=nc
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="VLAN",type=integer,JSONPath=`.spec.vlan`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NetworkConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the network, or what a Machine asks of it.
	// +optional
	Spec NetworkConfigurationSpec `json:"spec,omitzero"`
	// status belongs to the operators that allot addresses.
	// +optional
	Status NetworkConfigurationStatus `json:"status,omitzero"`
}

// NetworkConfigurationList is a list of NetworkConfigurations.
//
// +kubebuilder:object:root=true
type NetworkConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NetworkConfiguration `json:"items"`
}

// NetworkConfigurationSpec is a network, or what a Machine asks of it.
type NetworkConfigurationSpec struct {
	// name is shown to people.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	Name string `json:"name,omitempty"`

	// description is shown to people.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Description string `json:"description,omitempty"`

	// vlan of the network; 0 or absent is untagged.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	VLAN *int `json:"vlan,omitempty"`

	// bridge on the nodes that carries the network.
	// +optional
	// +kubebuilder:validation:MaxLength=15
	Bridge string `json:"bridge,omitempty"`

	// networks is accepted and not used.
	// +optional
	// +listType=atomic
	Networks []NetworkConfigurationNetwork `json:"networks,omitempty"`

	// networkNamespaceName is the NetworkNamespace that the addresses come from.
	// +optional
	NetworkNamespaceName string `json:"networkNamespaceName,omitempty"`

	// datacenterIdentifier is for the operators that allot addresses.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	DatacenterIdentifier string `json:"datacenterIdentifier,omitempty"`

	// supervisorIdentifier is for the operators that allot addresses.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	SupervisorIdentifier string `json:"supervisorIdentifier,omitempty"`

	// clusterIdentifier is for the operators that allot addresses.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	ClusterIdentifier string `json:"clusterIdentifier,omitempty"`

	// provider chooses the operator that allots addresses.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	Provider string `json:"provider,omitempty"`

	// networkInterfaces is what a Machine asks for.
	// +optional
	// +listType=atomic
	NetworkInterfaces []NetworkConfigurationInterface `json:"networkInterfaces,omitempty"`
}

// NetworkConfigurationNetwork is accepted and not used.
type NetworkConfigurationNetwork struct {
	// name is accepted and not used.
	// +optional
	Name string `json:"name,omitempty"`
	// vlan is accepted and not used.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	VLAN *int `json:"vlan,omitempty"`
	// bridge is accepted and not used.
	// +optional
	// +kubebuilder:validation:MaxLength=15
	Bridge string `json:"bridge,omitempty"`
	// macAddress is accepted and not used.
	// +optional
	MACAddress string `json:"macAddress,omitempty"`
}

// NetworkConfigurationInterface is an interface of a Machine: in spec what the
// Machine asks for, in status what it has been allotted.
type NetworkConfigurationInterface struct {
	// name of the interface in the virtual machine.
	// +optional
	Name string `json:"name,omitempty"`
	// macAddress of the interface.
	// +optional
	MACAddress string `json:"macAddress,omitempty"`
	// ipv4Addresses of the interface.
	// +optional
	// +listType=atomic
	IPv4Addresses []string `json:"ipv4Addresses,omitempty"`
	// ipv6Addresses of the interface.
	// +optional
	// +listType=atomic
	IPv6Addresses []string `json:"ipv6Addresses,omitempty"`
	// vlan of the network, as text.
	// +optional
	VLAN string `json:"vlan,omitempty"`
	// ipv4Subnet in CIDR notation.
	// +optional
	IPv4Subnet string `json:"ipv4Subnet,omitempty"`
	// ipv6Subnet in CIDR notation.
	// +optional
	IPv6Subnet string `json:"ipv6Subnet,omitempty"`
	// ipv4Gateway of the subnet.
	// +optional
	IPv4Gateway string `json:"ipv4Gateway,omitempty"`
	// ipv6Gateway of the subnet.
	// +optional
	IPv6Gateway string `json:"ipv6Gateway,omitempty"`
	// dns are the name servers.
	// +optional
	// +listType=atomic
	DNS []string `json:"dns,omitempty"`
	// dhcpReserved tells whether the DHCP server keeps the address.
	// +optional
	DHCPReserved bool `json:"dhcpReserved,omitempty"`
	// ipAllocated tells whether an address has been allotted.
	// +optional
	IPAllocated bool `json:"ipAllocated,omitempty"`
	// allocationMethod is how the address was allotted.
	// +optional
	// +kubebuilder:validation:Enum=dhcp;static
	AllocationMethod string `json:"allocationMethod,omitempty"`
	// allocationExpiry is until when the address is allotted.
	// +optional
	AllocationExpiry *metav1.Time `json:"allocationExpiry,omitempty"`
}

// NetworkConfigurationStatus is what operators have allotted.
type NetworkConfigurationStatus struct {
	// phase is for the operators that allot addresses.
	// +optional
	Phase string `json:"phase,omitempty"`
	// status is for the operators that allot addresses.
	// +optional
	Status string `json:"status,omitempty"`
	// message is what is wrong.
	// +optional
	Message string `json:"message,omitempty"`
	// created is for the operators that allot addresses.
	// +optional
	// +nullable
	Created metav1.Time `json:"created,omitzero"`
	// conditions are those of the operators that allot addresses.
	// +optional
	// +listType=atomic
	Conditions []MachineCondition `json:"conditions,omitempty"`
	// networkInterfaces is what has been allotted.
	// +optional
	// +listType=atomic
	NetworkInterfaces []NetworkConfigurationInterface `json:"networkInterfaces,omitempty"`
}
