// Package kinds names the resources that cluster-check reads and writes, and
// nothing else: plain data for the decision, the wiring and the generated
// manifests alike.
package kinds

import "github.com/slipway-dev/slipway/shared/kind"

// KubevirtConfigs are what the function reconciles. They are cluster-scoped; an
// older definition has them in namespaces.
var KubevirtConfigs = kind.Resource{
	Group: "vitistack.io", Versions: []string{"v1alpha1"}, Kind: "KubevirtConfig",
	Plural: "kubevirtconfigs", EitherScope: true,
}

// Resources of vitistack.io that the management cluster has to serve.
var (
	// Machines are virtual machines that somebody asks for.
	Machines = kind.Resource{
		Group: "vitistack.io", Versions: []string{"v1alpha1"}, Kind: "Machine", Plural: "machines", Namespaced: true,
	}
	// NetworkConfigurations are networks, and records of interfaces.
	NetworkConfigurations = kind.Resource{
		Group: "vitistack.io", Versions: []string{"v1alpha1"}, Kind: "NetworkConfiguration",
		Plural: "networkconfigurations", Namespaced: true,
	}
)

// Resources of a target cluster.
var (
	// KubeVirts are installations of KubeVirt.
	KubeVirts = kind.Resource{
		Group: "kubevirt.io", Versions: []string{"v1"}, Kind: "KubeVirt", Plural: "kubevirts", Namespaced: true,
	}
	// Definitions are a target's own, of which nothing but the names of the
	// versions is looked at: the schemas of KubeVirt take megabytes.
	Definitions = kind.Resource{
		Group: kind.CRDs.Group, Versions: kind.CRDs.Versions, Kind: kind.CRDs.Kind, Plural: kind.CRDs.Plural,
		Dropped: []string{"spec.versions[].schema", "metadata.managedFields"},
	}
	// VirtualMachines are KubeVirt's.
	VirtualMachines = kind.Resource{
		Group: "kubevirt.io", Versions: []string{"v1"}, Kind: "VirtualMachine", Plural: "virtualmachines", Namespaced: true,
	}
	// VirtualMachineInstances are KubeVirt's.
	VirtualMachineInstances = kind.Resource{
		Group: "kubevirt.io", Versions: []string{"v1"}, Kind: "VirtualMachineInstance",
		Plural: "virtualmachineinstances", Namespaced: true,
	}
)
