// Package kinds names the resources that baseline-applier reads and writes, and
// nothing else: plain data for the decision, the wiring and the generated
// manifests alike.
package kinds

import (
	"github.com/slipway-dev/slipway/shared/kind"
)

// HyperConvergeds are what the function reconciles. Where both versions are served
// the newer one is the stored one: fields of the older would be pruned.
var HyperConvergeds = kind.Resource{
	Group: "hco.kubevirt.io", Versions: []string{"v1", "v1beta1"}, Kind: "HyperConverged",
	Plural: "hyperconvergeds", Namespaced: true,
}

// Nodes are asked for the hardware that they have.
var Nodes = kind.Resource{
	Versions: []string{"v1"}, Kind: "Node", Plural: "nodes",
	Dropped: []string{"metadata.managedFields", "status.images", "status.conditions", "status.volumesInUse", "status.volumesAttached"},
}

// Definitions are CustomResourceDefinitions of which it is only asked whether, and
// in which versions, they are served.
var Definitions = kind.Resource{
	Group: kind.CRDs.Group, Versions: kind.CRDs.Versions, Kind: kind.CRDs.Kind, Plural: kind.CRDs.Plural,
	Dropped: []string{"spec.versions[].schema", "metadata.managedFields"},
}

// Schemas are CustomResourceDefinitions of which the schema is asked for.
var Schemas = kind.Resource{
	Group: kind.CRDs.Group, Versions: kind.CRDs.Versions, Kind: kind.CRDs.Kind, Plural: kind.CRDs.Plural,
	Dropped: []string{"metadata.managedFields"},
}

// The kinds that the catalog has objects of.
var (
	MachineConfigs = kind.Resource{
		Group: "machineconfiguration.openshift.io", Versions: []string{"v1"}, Kind: "MachineConfig", Plural: "machineconfigs",
	}
	KubeletConfigs = kind.Resource{
		Group: "machineconfiguration.openshift.io", Versions: []string{"v1"}, Kind: "KubeletConfig", Plural: "kubeletconfigs",
	}
	PrometheusRules = kind.Resource{
		Group: "monitoring.coreos.com", Versions: []string{"v1"}, Kind: "PrometheusRule", Plural: "prometheusrules", Namespaced: true,
	}
	NodeHealthChecks = kind.Resource{
		Group: "remediation.medik8s.io", Versions: []string{"v1alpha1"}, Kind: "NodeHealthCheck", Plural: "nodehealthchecks",
	}
	ForkliftControllers = kind.Resource{
		Group: "forklift.konveyor.io", Versions: []string{"v1beta1"}, Kind: "ForkliftController", Plural: "forkliftcontrollers", Namespaced: true,
	}
	MetalLBs = kind.Resource{
		Group: "metallb.io", Versions: []string{"v1beta1"}, Kind: "MetalLB", Plural: "metallbs", Namespaced: true,
	}
	UIPlugins = kind.Resource{
		Group: "observability.openshift.io", Versions: []string{"v1alpha1"}, Kind: "UIPlugin", Plural: "uiplugins",
	}
	KubeDeschedulers = kind.Resource{
		Group: "operator.openshift.io", Versions: []string{"v1"}, Kind: "KubeDescheduler", Plural: "kubedeschedulers", Namespaced: true,
	}
	AAQs = kind.Resource{
		Group: "aaq.kubevirt.io", Versions: []string{"v1alpha1"}, Kind: "AAQ", Plural: "aaqs",
	}
)

// Managed are all kinds that the catalog has objects of.
func Managed() []kind.Resource {
	return []kind.Resource{
		AAQs, ForkliftControllers, HyperConvergeds, KubeDeschedulers, KubeletConfigs, MachineConfigs, MetalLBs,
		NodeHealthChecks, PrometheusRules, UIPlugins,
	}
}

// Of finds the managed resource that an apiVersion and a kind name.
func Of(apiVersion, kindName string) (kind.Resource, bool) {
	for _, res := range Managed() {
		if res.Is(apiVersion, kindName) {
			return res, true
		}
	}
	return kind.Resource{}, false
}
