package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	labelCluster      = "cluster.x-k8s.io/cluster-name"
	labelDeployment   = "cluster.x-k8s.io/deployment-name"
	labelControlPlane = "cluster.x-k8s.io/control-plane"
	// labelPool and labelRollout tell which pool, in which state, made a Machine.
	labelPool    = "providers.slipway.dev/pool"
	labelRollout = "providers.slipway.dev/rollout"

	annotationCloned      = "cluster.x-k8s.io/cloned-from-name"
	annotationClonedGroup = "cluster.x-k8s.io/cloned-from-groupkind"
)

// ensure creates an object unless one of its name is there.
func (p *player) ensure(ctx context.Context, kind schema.GroupVersionResource, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	client := p.client.Resource(kind).Namespace(obj.GetNamespace())
	have, err := client.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return have, err
	}
	made, err := client.Create(ctx, obj, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil {
		return nil, fmt.Errorf("cannot create %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	return made, nil
}

// say writes fields of an object's status that are not so already.
func (p *player) say(ctx context.Context, kind schema.GroupVersionResource, obj *unstructured.Unstructured, status map[string]any) error {
	have, _, _ := unstructured.NestedMap(obj.Object, "status")
	if within(have, status) {
		return nil
	}
	return p.patch(ctx, kind, obj, map[string]any{"status": status}, "status")
}

// within reports whether every field of want is in have.
func within(have, want map[string]any) bool {
	for name, value := range want {
		nested, ok := value.(map[string]any)
		if !ok {
			if !equality.Semantic.DeepEqual(have[name], value) {
				return false
			}
			continue
		}
		inner, _ := have[name].(map[string]any)
		if !within(inner, nested) {
			return false
		}
	}
	return true
}

func (p *player) patch(ctx context.Context, kind schema.GroupVersionResource, obj *unstructured.Unstructured, change map[string]any, subresources ...string) error {
	meta, _ := change["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["resourceVersion"] = obj.GetResourceVersion()
	change["metadata"] = meta
	raw, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("cannot encode a patch: %w", err)
	}
	_, err = p.client.Resource(kind).Namespace(obj.GetNamespace()).Patch(
		ctx, obj.GetName(), types.MergePatchType, raw, metav1.PatchOptions{FieldManager: FieldManager}, subresources...)
	if err != nil {
		return fmt.Errorf("cannot patch %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	return nil
}

// adopt gives an object the owner reference and the label that Cluster API adds. It
// tells whether something was written.
func (p *player) adopt(ctx context.Context, kind schema.GroupVersionResource, obj, owner *unstructured.Unstructured, controller bool) (bool, error) {
	refs := obj.GetOwnerReferences()
	owned := slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() })
	labels := obj.GetLabels()
	if owned && labels[labelCluster] == owner.GetName() {
		return false, nil
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelCluster] = owner.GetName()
	if !owned {
		refs = append(refs, reference(owner, controller))
	}
	return true, p.patch(ctx, kind, obj, map[string]any{"metadata": map[string]any{"labels": labels, "ownerReferences": refs}})
}

func reference(owner *unstructured.Unstructured, controller bool) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}
	if controller {
		ref.Controller, ref.BlockOwnerDeletion = &controller, &controller
	}
	return ref
}

// object is a new object with an owner.
func object(kind schema.GroupVersionResource, kindName, namespace, name string, owner *unstructured.Unstructured, labels map[string]string, spec map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(kind.GroupVersion().WithKind(kindName))
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetLabels(labels)
	obj.SetOwnerReferences([]metav1.OwnerReference{reference(owner, true)})
	if spec != nil {
		obj.Object["spec"] = spec
	}
	return obj
}

func text(obj *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(obj.Object, fields...)
	return value
}

func number(obj *unstructured.Unstructured, fields ...string) int64 {
	value, _, _ := unstructured.NestedInt64(obj.Object, fields...)
	return value
}
