package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// kinds are the resources that are played, in the versions that are served.
type kinds struct {
	clusters, deployments, sets, machines         schema.GroupVersionResource
	kubevirtClusters, kubevirtMachines, templates schema.GroupVersionResource
	controlPlanes, configs, configTemplates       schema.GroupVersionResource
	nodes, services                               schema.GroupVersionResource
}

const (
	groupCAPI           = "cluster.x-k8s.io"
	groupInfrastructure = "infrastructure.cluster.x-k8s.io"
	groupControlPlane   = "controlplane.cluster.x-k8s.io"
	groupBootstrap      = "bootstrap.cluster.x-k8s.io"
)

func discover(client discovery.DiscoveryInterface) (kinds, error) {
	k := kinds{
		nodes:    schema.GroupVersionResource{Group: "dockyards.io", Version: "v1alpha3", Resource: "nodes"},
		services: schema.GroupVersionResource{Version: "v1", Resource: "services"},
	}
	for _, want := range []struct {
		resource        *schema.GroupVersionResource
		group, plural   string
		first, fallback string
	}{
		{&k.clusters, groupCAPI, "clusters", "v1beta2", "v1beta1"},
		{&k.deployments, groupCAPI, "machinedeployments", "v1beta2", "v1beta1"},
		{&k.sets, groupCAPI, "machinesets", "v1beta2", "v1beta1"},
		{&k.machines, groupCAPI, "machines", "v1beta2", "v1beta1"},
		{&k.kubevirtClusters, groupInfrastructure, "kubevirtclusters", "v1alpha1", ""},
		{&k.kubevirtMachines, groupInfrastructure, "kubevirtmachines", "v1alpha1", ""},
		{&k.templates, groupInfrastructure, "kubevirtmachinetemplates", "v1alpha1", ""},
		{&k.controlPlanes, groupControlPlane, "taloscontrolplanes", "v1alpha3", ""},
		{&k.configs, groupBootstrap, "talosconfigs", "v1alpha3", "v1beta1"},
		{&k.configTemplates, groupBootstrap, "talosconfigtemplates", "v1alpha3", "v1beta1"},
	} {
		version, err := served(client, want.group, want.plural, want.first, want.fallback)
		if err != nil {
			return kinds{}, err
		}
		*want.resource = schema.GroupVersionResource{Group: want.group, Version: version, Resource: want.plural}
	}
	return k, nil
}

// served is the first of two versions in which the API server serves a resource.
func served(client discovery.DiscoveryInterface, group, plural string, versions ...string) (string, error) {
	for _, version := range versions {
		if version == "" {
			continue
		}
		list, err := client.ServerResourcesForGroupVersion(group + "/" + version)
		if err != nil {
			continue // told below if no version is served
		}
		for _, resource := range list.APIResources {
			if resource.Name == plural {
				return version, nil
			}
		}
	}
	return "", fmt.Errorf("cannot play the providers: the API server does not serve %s.%s", plural, group)
}
