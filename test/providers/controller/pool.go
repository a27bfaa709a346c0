package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// pool is what a control plane and a deployment have in common.
type pool struct {
	owner    *unstructured.Unstructured
	kind     schema.GroupVersionResource
	cluster  string
	replicas int
	// template and config name what machines are cloned from; a control plane has
	// its configuration inline.
	template, config, version string
	// rollout identifies the state of the fields that roll machines.
	rollout string
	labels  map[string]string
}

// controlPlane: every machine is replaced whose configuration, template or version
// is another one.
func (p *player) controlPlane(obj *unstructured.Unstructured) pool {
	config, _, _ := unstructured.NestedMap(obj.Object, "spec", "controlPlaneConfig", "controlplane")
	template := text(obj, "spec", "infrastructureTemplate", "name")
	return pool{
		owner: obj, kind: p.controlPlanes, cluster: obj.GetLabels()[labelCluster], replicas: replicas(obj),
		template: template, version: text(obj, "spec", "version"),
		rollout: digest(config, template, text(obj, "spec", "version")),
		labels:  map[string]string{labelControlPlane: ""},
	}
}

// deployment: machines roll when the machine template changes in place; versions of
// references and metadata do not count.
func (p *player) deployment(obj *unstructured.Unstructured) pool {
	spec := []string{"spec", "template", "spec"}
	template := text(obj, append(spec, "infrastructureRef", "name")...)
	config := text(obj, append(spec, "bootstrap", "configRef", "name")...)
	version := text(obj, append(spec, "version")...)
	return pool{
		owner: obj, kind: p.deployments, cluster: text(obj, "spec", "clusterName"), replicas: replicas(obj),
		template: template, config: config, version: version,
		rollout: digest(template, config, version, text(obj, append(spec, "failureDomain")...)),
		labels:  map[string]string{labelDeployment: obj.GetName()},
	}
}

func replicas(obj *unstructured.Unstructured) int {
	if _, set, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); !set {
		return 1
	}
	return int(number(obj, "spec", "replicas"))
}

func digest(parts ...any) string {
	raw, err := json.Marshal(parts)
	if err != nil {
		panic(err) // plain JSON values
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:8]
}

// pool brings a pool to its number of machines of today's state, then lets those of
// other states go.
func (p *player) pool(ctx context.Context, pool pool) error {
	if pool.cluster == "" || pool.template == "" {
		return errAwaited
	}
	namespace := pool.owner.GetNamespace()
	template, err := p.template(ctx, pool)
	if err != nil {
		return err
	}
	maker, err := p.maker(ctx, pool)
	if err != nil {
		return err
	}
	list, err := p.client.Resource(p.machines).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: labelPool + "=" + pool.owner.GetName()})
	if err != nil {
		return err
	}
	var current, outdated []unstructured.Unstructured
	for _, machine := range list.Items {
		switch {
		case machine.GetDeletionTimestamp() != nil:
		case machine.GetLabels()[labelRollout] == pool.rollout:
			current = append(current, machine)
		default:
			outdated = append(outdated, machine)
		}
	}
	for i := 0; len(current) < pool.replicas; i++ {
		name := fmt.Sprintf("%s-%s-%d", pool.owner.GetName(), pool.rollout, i)
		if slices.ContainsFunc(list.Items, func(m unstructured.Unstructured) bool { return m.GetName() == name }) {
			continue
		}
		machine, err := p.ensure(ctx, p.machines, p.machine(pool, maker, name))
		if err != nil {
			return err
		}
		current = append(current, *machine)
	}
	if err := p.replace(ctx, pool, template, current, outdated); err != nil {
		return err
	}
	if err := p.dropSets(ctx, pool); err != nil {
		return err
	}
	return p.say(ctx, pool.kind, pool.owner, p.poolStatus(pool))
}

// replace boots the machines of today's state, then lets the others go.
func (p *player) replace(ctx context.Context, pool pool, template *unstructured.Unstructured, current, outdated []unstructured.Unstructured) error {
	for i := range current[:pool.replicas] {
		if err := p.boot(ctx, pool, template, &current[i]); err != nil {
			return err
		}
	}
	for _, machine := range slices.Concat(outdated, current[pool.replicas:]) {
		err := p.client.Resource(p.machines).Namespace(pool.owner.GetNamespace()).Delete(ctx, machine.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (p *player) poolStatus(pool pool) map[string]any {
	n := int64(pool.replicas)
	status := map[string]any{"replicas": n, "readyReplicas": n}
	if pool.kind == p.controlPlanes {
		status["ready"], status["initialized"] = true, true
		return status
	}
	status["availableReplicas"] = n
	if p.deployments.Version != "v1beta1" {
		status["upToDateReplicas"] = n
	}
	return status
}

// template is what a pool's machines are cloned from, adopted by the Cluster as
// Cluster API adopts templates.
func (p *player) template(ctx context.Context, pool pool) (*unstructured.Unstructured, error) {
	namespace := pool.owner.GetNamespace()
	cluster, err := p.client.Resource(p.clusters).Namespace(namespace).Get(ctx, pool.cluster, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if _, err := p.adopt(ctx, pool.kind, pool.owner, cluster, pool.kind == p.controlPlanes); err != nil {
		return nil, err
	}
	if pool.config != "" {
		config, err := p.client.Resource(p.configTemplates).Namespace(namespace).Get(ctx, pool.config, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if _, err := p.adopt(ctx, p.configTemplates, config, cluster, false); err != nil {
			return nil, err
		}
	}
	template, err := p.client.Resource(p.templates).Namespace(namespace).Get(ctx, pool.template, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	_, err = p.adopt(ctx, p.templates, template, cluster, false)
	return template, err
}

// maker owns a pool's machines: the control plane itself, or a MachineSet for each
// state of a deployment.
func (p *player) maker(ctx context.Context, pool pool) (*unstructured.Unstructured, error) {
	if pool.kind == p.controlPlanes {
		return pool.owner, nil
	}
	template, _, _ := unstructured.NestedMap(pool.owner.Object, "spec", "template")
	return p.ensure(ctx, p.sets, object(p.sets, "MachineSet", pool.owner.GetNamespace(), pool.owner.GetName()+"-"+pool.rollout, pool.owner,
		pool.marks(), map[string]any{
			"clusterName": pool.cluster, "replicas": int64(pool.replicas), "template": template,
			"selector": map[string]any{"matchLabels": map[string]any{labelPool: pool.owner.GetName(), labelRollout: pool.rollout}},
		}))
}

// dropSets deletes the MachineSets of other states.
func (p *player) dropSets(ctx context.Context, pool pool) error {
	if pool.kind == p.controlPlanes {
		return nil
	}
	client := p.client.Resource(p.sets).Namespace(pool.owner.GetNamespace())
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: labelPool + "=" + pool.owner.GetName() + "," + labelRollout + "!=" + pool.rollout})
	if err != nil {
		return err
	}
	for _, set := range list.Items {
		if err := client.Delete(ctx, set.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// marks are the labels of everything that a pool makes.
func (pool pool) marks() map[string]string {
	labels := map[string]string{labelCluster: pool.cluster, labelPool: pool.owner.GetName(), labelRollout: pool.rollout}
	maps.Copy(labels, pool.labels)
	return labels
}
