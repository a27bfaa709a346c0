package crds

import "sort"

// Names of the sources, as Load takes them.
const (
	// KubeVirt: virtual machines, their instances and migrations, the KubeVirt object.
	KubeVirt = "kubevirt"
	// CDI: data volumes, data sources, storage profiles and their relatives.
	CDI = "cdi"
	// Multus: network attachment definitions.
	Multus = "multus"
	// ClusterAPI: the core of Cluster API.
	ClusterAPI = "cluster-api"
	// CAPK: Cluster API's infrastructure provider for KubeVirt.
	CAPK = "capk"
	// TalosBootstrap: Cluster API's bootstrap provider for Talos.
	TalosBootstrap = "talos-bootstrap"
	// TalosControlPlane: Cluster API's control plane provider for Talos.
	TalosControlPlane = "talos-control-plane"
	// GatewayAPI: the Gateway API's standard channel.
	GatewayAPI = "gateway-api"
	// FluxKustomize: Flux' kustomize controller.
	FluxKustomize = "flux-kustomize"
	// FluxSource: Flux' source controller.
	FluxSource = "flux-source"
	// FluxHelm: Flux' helm controller.
	FluxHelm = "flux-helm"
	// KnativeEventing: brokers, triggers, sources and event policies.
	KnativeEventing = "knative-eventing"
	// KnativeServing: services, routes, revisions and configurations.
	KnativeServing = "knative-serving"
	// ServiceMonitors: what the Prometheus operator scrapes.
	ServiceMonitors = "service-monitors"
	// OpenShiftMachineConfig: machine and kubelet configurations of OpenShift's nodes.
	OpenShiftMachineConfig = "openshift-machine-config"
	// PrometheusRules: alerts and recording rules of the Prometheus operator.
	PrometheusRules = "prometheus-rules"
	// MetalLB: the MetalLB operator's installation.
	MetalLB = "metallb"
	// UIPlugins: console plugins of the cluster observability operator.
	UIPlugins = "ui-plugins"
	// AAQ: application-aware quotas.
	AAQ = "aaq"
)

// Source says where the definitions of one project lie.
type Source struct {
	// Name is what Load calls the project.
	Name string
	// Module and Version are the Go module that carries the definitions.
	Module, Version string
	// Files are the files to read, as glob patterns below the module's root.
	Files []string
	// Labels are what the project's own kustomization adds to each definition.
	Labels map[string]string

	// extract reads the definitions out of one file.
	extract extractor
}

var sources = map[string]Source{
	KubeVirt: {
		Module: "kubevirt.io/kubevirt", Version: "v1.9.0",
		Files:   []string{"pkg/virt-operator/resource/generate/components/validations_generated.go"},
		extract: fromSchemaMap("CRDsValidation", kubevirtKinds),
	},
	CDI: {
		Module: "kubevirt.io/containerized-data-importer", Version: "v1.65.0",
		Files:   []string{"pkg/operator/resources/crds_generated.go"},
		extract: fromDefinitionMap("CDICRDs"),
	},
	Multus: {
		Module: "gopkg.in/k8snetworkplumbingwg/multus-cni.v4", Version: "v4.3.0",
		Files:   []string{"deployments/multus-daemonset.yml"},
		extract: fromYAML,
	},
	ClusterAPI: {
		Module: "sigs.k8s.io/cluster-api", Version: "v1.13.2",
		Files:   []string{"config/crd/bases/*.yaml"},
		extract: fromYAML,
	},
	CAPK: {
		Module: "sigs.k8s.io/cluster-api-provider-kubevirt", Version: "v0.11.2",
		Files: []string{"config/crd/bases/*.yaml"},
		Labels: map[string]string{
			"cluster.x-k8s.io/provider": "kubevirt",
			"cluster.x-k8s.io/v1alpha1": "v1alpha1",
			"cluster.x-k8s.io/v1alpha2": "v1alpha1",
			"cluster.x-k8s.io/v1alpha3": "v1alpha1",
			"cluster.x-k8s.io/v1alpha4": "v1alpha1",
			"cluster.x-k8s.io/v1beta1":  "v1alpha1",
		},
		extract: fromYAML,
	},
	TalosBootstrap: {
		Module: "github.com/siderolabs/cluster-api-bootstrap-provider-talos", Version: "v0.6.12",
		Files:   []string{"config/crd/bases/*.yaml"},
		Labels:  talosLabels,
		extract: fromYAML,
	},
	TalosControlPlane: {
		Module: "github.com/siderolabs/cluster-api-control-plane-provider-talos", Version: "v0.5.13",
		Files:   []string{"config/crd/bases/*.yaml"},
		Labels:  talosLabels,
		extract: fromYAML,
	},
	GatewayAPI: {
		Module: "sigs.k8s.io/gateway-api", Version: "v1.6.0",
		Files:   []string{"config/crd/standard/*.yaml"},
		extract: fromYAML,
	},
	FluxKustomize: {
		Module: "github.com/fluxcd/kustomize-controller", Version: "v1.9.5",
		Files:   []string{"config/crd/bases/*.yaml"},
		extract: fromYAML,
	},
	FluxSource: {
		Module: "github.com/fluxcd/source-controller", Version: "v1.9.5",
		Files:   []string{"config/crd/bases/*.yaml"},
		extract: fromYAML,
	},
	OpenShiftMachineConfig: {
		Module: "github.com/openshift/api", Version: "v0.0.0-20260304172252-b0658d22beea",
		Files: []string{
			"machineconfiguration/v1/zz_generated.crd-manifests/*_machineconfigs.crd.yaml",
			"machineconfiguration/v1/zz_generated.crd-manifests/*_kubeletconfigs.crd.yaml",
		},
		extract: fromYAML,
	},
	PrometheusRules: {
		Module: "github.com/prometheus-operator/prometheus-operator", Version: "v0.85.0",
		Files:   []string{"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"},
		extract: fromYAML,
	},
	MetalLB: {
		Module: "github.com/metallb/metallb-operator", Version: "v0.14.2",
		Files:   []string{"config/crd/bases/metallb.io_metallbs.yaml"},
		extract: fromYAML,
	},
	UIPlugins: {
		Module: "github.com/rhobs/observability-operator", Version: "v1.3.0",
		Files:   []string{"bundle/manifests/observability.openshift.io_uiplugins.yaml"},
		extract: fromYAML,
	},
	AAQ: {
		Module: "kubevirt.io/application-aware-quota", Version: "v1.5.0",
		Files:   []string{"pkg/aaq-operator/resources/crds_generated.go"},
		extract: fromDefinitionMap("AAQCRDs"),
	},
	FluxHelm: {
		Module: "github.com/fluxcd/helm-controller", Version: "v1.6.4",
		Files:   []string{"config/crd/bases/*.yaml"},
		extract: fromYAML,
	},
	KnativeEventing: {
		Module: "knative.dev/eventing", Version: "v0.50.0",
		Files: []string{
			"config/core/resources/apiserversource.yaml", "config/core/resources/broker.yaml",
			"config/core/resources/eventpolicy.yaml", "config/core/resources/pingsource.yaml",
			"config/core/resources/trigger.yaml",
		},
		extract: fromYAML,
	},
	KnativeServing: {
		Module: "knative.dev/serving", Version: "v0.48.0",
		Files: []string{
			"config/core/300-resources/configuration.yaml", "config/core/300-resources/revision.yaml",
			"config/core/300-resources/route.yaml", "config/core/300-resources/service.yaml",
		},
		extract: fromYAML,
	},
	ServiceMonitors: {
		Module: "github.com/prometheus-operator/prometheus-operator", Version: "v0.85.0",
		Files:   []string{"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"},
		extract: fromYAML,
	},
}

// talosLabels tell Cluster API which versions of its contract the Talos providers
// speak.
var talosLabels = map[string]string{
	"cluster.x-k8s.io/v1alpha3": "v1alpha3",
	"cluster.x-k8s.io/v1alpha4": "v1alpha3",
	"cluster.x-k8s.io/v1beta1":  "v1alpha3",
}

// Sources returns the table, sorted by name.
func Sources() []Source {
	all := make([]Source, 0, len(sources))
	for name, source := range sources {
		source.Name = name
		all = append(all, source)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// Names returns the names of all sources, sorted.
func Names() []string {
	names := make([]string, 0, len(sources))
	for _, source := range Sources() {
		names = append(names, source.Name)
	}
	return names
}
