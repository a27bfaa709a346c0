package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// machine is a Machine of a pool.
func (p *player) machine(pool pool, maker *unstructured.Unstructured, name string) *unstructured.Unstructured {
	infrastructure := map[string]any{"kind": "KubevirtMachine", "name": name}
	if p.machines.Version == "v1beta1" {
		infrastructure["apiVersion"], infrastructure["namespace"] = p.kubevirtMachines.GroupVersion().String(), pool.owner.GetNamespace()
	} else {
		infrastructure["apiGroup"] = groupInfrastructure
	}
	spec := map[string]any{
		"clusterName": pool.cluster, "bootstrap": map[string]any{"dataSecretName": name + "-bootstrap-data"},
		"infrastructureRef": infrastructure, "providerID": providerID(name),
	}
	if pool.version != "" {
		spec["version"] = pool.version
	}
	return object(p.machines, "Machine", pool.owner.GetNamespace(), name, maker, pool.marks(), spec)
}

func providerID(machine string) string { return "kubevirt://" + machine }

// boot makes what a Machine consists of.
func (p *player) boot(ctx context.Context, pool pool, template, machine *unstructured.Unstructured) error {
	namespace, name := machine.GetNamespace(), machine.GetName()
	spec, _, _ := unstructured.NestedMap(template.Object, "spec", "template", "spec")
	spec["providerID"] = providerID(name)
	clone := object(p.kubevirtMachines, "KubevirtMachine", namespace, name, machine, pool.marks(), spec)
	clone.SetAnnotations(map[string]string{
		annotationCloned: template.GetName(), annotationClonedGroup: "KubevirtMachineTemplate." + groupInfrastructure,
	})
	clone, err := p.ensure(ctx, p.kubevirtMachines, clone)
	if err != nil {
		return err
	}
	if err := p.say(ctx, p.kubevirtMachines, clone, map[string]any{"ready": true}); err != nil {
		return err
	}
	if pool.config != "" {
		config := object(p.configs, "TalosConfig", namespace, name, machine, pool.marks(), map[string]any{"generateType": "worker"})
		config.SetAnnotations(map[string]string{
			annotationCloned: pool.config, annotationClonedGroup: "TalosConfigTemplate." + groupBootstrap,
		})
		if _, err := p.ensure(ctx, p.configs, config); err != nil {
			return err
		}
	}
	node := object(p.nodes, "Node", namespace, name, machine, map[string]string{
		"dockyards.io/cluster-name": pool.cluster, "dockyards.io/node-pool-name": pool.owner.GetName(),
		"cluster-api.dockyards.io/machine-name": name,
	}, map[string]any{"providerID": providerID(name)})
	_, err = p.ensure(ctx, p.nodes, node)
	return err
}
