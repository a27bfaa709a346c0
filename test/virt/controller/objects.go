package controller

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

var (
	machines       = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	instances      = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
	claims         = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	storageClasses = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	dataVolumes    = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}
	revisions      = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
)

// machine is a VirtualMachine as it was read and as a type. What is written goes into
// the object that was read, so that nothing the type does not know is lost.
type machine struct {
	*kubevirtv1.VirtualMachine
	raw *unstructured.Unstructured
}

// instance is a VirtualMachineInstance as it was read and as a type.
type instance struct {
	*kubevirtv1.VirtualMachineInstance
	raw *unstructured.Unstructured
}

// get reads an object into a type; an object that does not exist is nil.
func get[T any](ctx context.Context, p *player, kind schema.GroupVersionResource, namespace, name string) (*T, *unstructured.Unstructured, error) {
	raw, err := p.client.Resource(kind).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	typed, err := as[T](raw)
	return typed, raw, err
}

// as reads an object as a type.
func as[T any](raw *unstructured.Unstructured) (*T, error) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, typed); err != nil {
		return nil, fmt.Errorf("cannot read %s %s/%s: %w", raw.GetKind(), raw.GetNamespace(), raw.GetName(), err)
	}
	return typed, nil
}

func (p *player) getMachine(ctx context.Context, namespace, name string) (*machine, error) {
	typed, raw, err := get[kubevirtv1.VirtualMachine](ctx, p, machines, namespace, name)
	if typed == nil || err != nil {
		return nil, err
	}
	return &machine{typed, raw}, nil
}

func (p *player) getInstance(ctx context.Context, namespace, name string) (*instance, error) {
	typed, raw, err := get[kubevirtv1.VirtualMachineInstance](ctx, p, instances, namespace, name)
	if typed == nil || err != nil {
		return nil, err
	}
	return &instance{typed, raw}, nil
}

func (p *player) getClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	claim, _, err := get[corev1.PersistentVolumeClaim](ctx, p, claims, namespace, name)
	return claim, err
}

func (p *player) getDataVolume(ctx context.Context, namespace, name string) (*cdiv1.DataVolume, error) {
	if !p.hasDataVolumes {
		return nil, nil
	}
	volume, _, err := get[cdiv1.DataVolume](ctx, p, dataVolumes, namespace, name)
	return volume, err
}

func (p *player) getStorageClass(ctx context.Context, name string) (*storagev1.StorageClass, error) {
	class, _, err := get[storagev1.StorageClass](ctx, p, storageClasses, "", name)
	return class, err
}

// patch merges fields into an object, provided it still has this resourceVersion.
func (p *player) patch(ctx context.Context, kind schema.GroupVersionResource, obj metav1.Object, fields map[string]any) (*unstructured.Unstructured, error) {
	if err := unstructured.SetNestedField(fields, obj.GetResourceVersion(), "metadata", "resourceVersion"); err != nil {
		return nil, err
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return p.client.Resource(kind).Namespace(obj.GetNamespace()).Patch(ctx, obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
}

// content turns a typed value into the fields of an object.
func content(typed any) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
}
