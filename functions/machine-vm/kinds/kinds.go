// Package kinds names the resources that machine-vm reads and writes, which of
// their fields are secret, and nothing else: plain data for the decision, the
// wiring and the generated manifests alike.
package kinds

import "github.com/slipway-dev/slipway/shared/kind"

// Resources of vitistack.io.
var (
	// Machines are what the function reconciles. Everything that a person can
	// write into cloud-init is secret.
	Machines = kind.Resource{
		Group: "vitistack.io", Versions: []string{"v1alpha1"}, Kind: "Machine", Plural: "machines", Namespaced: true,
		Sealed: []string{
			"spec.userData",
			"spec.cloudInit.userData", "spec.cloudInit.userDataBase64:base64",
			"spec.cloudInit.networkData", "spec.cloudInit.networkDataBase64:base64",
		},
	}
	// MachineClasses are sizes that have a name.
	MachineClasses = kind.Resource{
		Group: "vitistack.io", Versions: []string{"v1alpha1"}, Kind: "MachineClass", Plural: "machineclasses",
	}
	// KubevirtConfigs are the clusters that Machines can run on.
	KubevirtConfigs = kind.Resource{
		Group: "vitistack.io", Versions: []string{"v1alpha1"}, Kind: "KubevirtConfig", Plural: "kubevirtconfigs",
	}
	// NetworkConfigurations are networks and, named like a Machine, the records
	// of interfaces.
	NetworkConfigurations = kind.Resource{
		Group: "vitistack.io", Versions: []string{"v1alpha1"}, Kind: "NetworkConfiguration",
		Plural: "networkconfigurations", Namespaced: true,
	}
	// NetworkNamespaces belong to another project and may not be served.
	NetworkNamespaces = kind.Resource{
		Group: "vitistack.io", Versions: []string{"v1alpha1"}, Kind: "NetworkNamespace",
		Plural: "networknamespaces", Namespaced: true,
	}
)

// Resources of a target cluster, besides those of Kubernetes itself.
var (
	// VirtualMachines carry cloud-init's data in their volumes.
	VirtualMachines = kind.Resource{
		Group: "kubevirt.io", Versions: []string{"v1"}, Kind: "VirtualMachine", Plural: "virtualmachines", Namespaced: true,
		Sealed: cloudInitPaths("spec.template.spec.volumes[]."),
	}
	// VirtualMachineInstances carry the same data.
	VirtualMachineInstances = kind.Resource{
		Group: "kubevirt.io", Versions: []string{"v1"}, Kind: "VirtualMachineInstance",
		Plural: "virtualmachineinstances", Namespaced: true,
		Sealed: cloudInitPaths("spec.volumes[]."),
	}
	// DataVolumes fill a claim with an image.
	DataVolumes = kind.Resource{
		Group: "cdi.kubevirt.io", Versions: []string{"v1beta1"}, Kind: "DataVolume", Plural: "datavolumes", Namespaced: true,
	}
	// StorageProfiles tell which access modes a StorageClass offers.
	StorageProfiles = kind.Resource{
		Group: "cdi.kubevirt.io", Versions: []string{"v1beta1"}, Kind: "StorageProfile", Plural: "storageprofiles",
	}
	// NetworkAttachmentDefinitions are the networks that Multus attaches.
	NetworkAttachmentDefinitions = kind.Resource{
		Group: "k8s.cni.cncf.io", Versions: []string{"v1"}, Kind: "NetworkAttachmentDefinition",
		Plural: "network-attachment-definitions", Namespaced: true,
	}
)

func cloudInitPaths(volume string) []string {
	var paths []string
	for _, source := range []string{"cloudInitNoCloud", "cloudInitConfigDrive"} {
		for _, field := range []string{"userData", "userDataBase64:base64", "networkData", "networkDataBase64:base64"} {
			paths = append(paths, volume+source+"."+field)
		}
	}
	return paths
}
