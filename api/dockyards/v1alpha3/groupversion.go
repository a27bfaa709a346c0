package v1alpha3

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group.
const GroupName = "dockyards.io"

// SchemeGroupVersion is the group and version of every kind in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha3"}

var (
	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers the kinds of this package.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kinds of the group.
const (
	KindCluster           = "Cluster"
	KindDNSZone           = "DNSZone"
	KindNode              = "Node"
	KindNodePool          = "NodePool"
	KindOrganization      = "Organization"
	KindRelease           = "Release"
	KindWorkload          = "Workload"
	KindWorkloadInventory = "WorkloadInventory"
	KindWorkloadTemplate  = "WorkloadTemplate"
	KindWorktree          = "Worktree"
)

// Kind qualifies a kind with the group.
func Kind(kind string) schema.GroupKind {
	return SchemeGroupVersion.WithKind(kind).GroupKind()
}

// Resource qualifies a plural with the group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&Cluster{}, &ClusterList{},
		&DNSZone{}, &DNSZoneList{},
		&Node{}, &NodeList{},
		&NodePool{}, &NodePoolList{},
		&Organization{}, &OrganizationList{},
		&Release{}, &ReleaseList{},
		&Workload{}, &WorkloadList{},
		&WorkloadInventory{}, &WorkloadInventoryList{},
		&WorkloadTemplate{}, &WorkloadTemplateList{},
		&Worktree{}, &WorktreeList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
