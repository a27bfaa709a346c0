package dockyards

import "github.com/slipway-dev/slipway/shared/kind"

// Resources of dockyards.io.
var (
	Clusters      = dockyards("Cluster", "clusters")
	NodePools     = dockyards("NodePool", "nodepools")
	Nodes         = dockyards("Node", "nodes")
	Releases      = dockyards("Release", "releases")
	Workloads     = dockyards("Workload", "workloads")
	Organizations = kind.Resource{
		Group: "dockyards.io", Versions: []string{"v1alpha3"}, Kind: "Organization", Plural: "organizations",
	}
)

// Resources of Cluster API and its providers. Cluster API serves v1beta1,
// v1beta2 or both; the Talos bootstrap provider v1alpha3, v1beta1 or both.
var (
	CAPIClusters       = capi("Cluster", "clusters")
	MachineDeployments = capi("MachineDeployment", "machinedeployments")
	MachineSets        = capi("MachineSet", "machinesets")

	KubevirtClusters         = kubevirt("KubevirtCluster", "kubevirtclusters")
	KubevirtMachines         = kubevirt("KubevirtMachine", "kubevirtmachines")
	KubevirtMachineTemplates = kubevirt("KubevirtMachineTemplate", "kubevirtmachinetemplates")

	TalosControlPlanes = kind.Resource{
		Group: "controlplane.cluster.x-k8s.io", Versions: []string{"v1alpha3"},
		Kind: "TalosControlPlane", Plural: "taloscontrolplanes", Namespaced: true,
	}
	TalosConfigTemplates = bootstrap("TalosConfigTemplate", "talosconfigtemplates")
	TalosConfigs         = bootstrap("TalosConfig", "talosconfigs")
)

// Resources of Gateway API. TLSRoute is served as v1, v1alpha3 or v1alpha2.
var (
	Gateways   = gateway("Gateway", "gateways", "v1")
	HTTPRoutes = gateway("HTTPRoute", "httproutes", "v1")
	TLSRoutes  = gateway("TLSRoute", "tlsroutes", "v1", "v1alpha3", "v1alpha2")
)

// Resources of images, networks and rights.
var (
	DataVolumes = kind.Resource{
		Group: "cdi.kubevirt.io", Versions: []string{"v1beta1"}, Kind: "DataVolume", Plural: "datavolumes", Namespaced: true,
	}
	DataSources = kind.Resource{
		Group: "cdi.kubevirt.io", Versions: []string{"v1beta1"}, Kind: "DataSource", Plural: "datasources", Namespaced: true,
	}
	NetworkAttachmentDefinitions = kind.Resource{
		Group: "k8s.cni.cncf.io", Versions: []string{"v1"}, Kind: "NetworkAttachmentDefinition",
		Plural: "network-attachment-definitions", Namespaced: true,
	}
	Roles = kind.Resource{
		Group: "rbac.authorization.k8s.io", Versions: []string{"v1"}, Kind: "Role", Plural: "roles", Namespaced: true,
	}
	RoleBindings = kind.Resource{
		Group: "rbac.authorization.k8s.io", Versions: []string{"v1"}, Kind: "RoleBinding", Plural: "rolebindings", Namespaced: true,
	}
	Services = kind.Resource{Versions: []string{"v1"}, Kind: "Service", Plural: "services", Namespaced: true}
)

func dockyards(kindName, plural string) kind.Resource {
	return kind.Resource{Group: "dockyards.io", Versions: []string{"v1alpha3"}, Kind: kindName, Plural: plural, Namespaced: true}
}

func capi(kindName, plural string) kind.Resource {
	return kind.Resource{Group: "cluster.x-k8s.io", Versions: []string{"v1beta2", "v1beta1"}, Kind: kindName, Plural: plural, Namespaced: true}
}

func kubevirt(kindName, plural string) kind.Resource {
	return kind.Resource{
		Group: "infrastructure.cluster.x-k8s.io", Versions: []string{"v1alpha1"}, Kind: kindName, Plural: plural, Namespaced: true,
	}
}

func bootstrap(kindName, plural string) kind.Resource {
	return kind.Resource{
		Group: "bootstrap.cluster.x-k8s.io", Versions: []string{"v1alpha3", "v1beta1"}, Kind: kindName, Plural: plural, Namespaced: true,
	}
}

func gateway(kindName, plural string, versions ...string) kind.Resource {
	return kind.Resource{Group: "gateway.networking.k8s.io", Versions: versions, Kind: kindName, Plural: plural, Namespaced: true}
}
