package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stack"
	"github.com/slipway-dev/slipway/shared/dockyards"
)

const (
	// samples is the folder of the sample, shop the Cluster in it, acme its namespace.
	samples = "deploy/samples/dockyards"
	shop    = "shop"
	acme    = "acme"
	pools   = 3
)

// common is what all environments of the sample share; the rest is environment's.
func common(root string) ([]*unstructured.Unstructured, error) {
	return read(root, "platform.yaml", "releases.yaml", "organization.yaml")
}

func read(root string, files ...string) ([]*unstructured.Unstructured, error) {
	paths := make([]string, 0, len(files))
	for _, file := range files {
		paths = append(paths, filepath.Join(root, samples, file))
	}
	return kube.ReadFiles(paths...)
}

// environment is a Cluster of the sample under another name, with one machine in each
// of its three pools.
func environment(root, name string) ([]*unstructured.Unstructured, error) {
	all, err := read(root, "cluster.yaml", "cluster-api.yaml", "nodepools.yaml")
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cannot find a Cluster in %s", samples)
	}
	further := all[len(all)-1].DeepCopy()
	further.SetName(shop + "-further")
	for i, obj := range append(all, further) {
		raw, err := json.Marshal(obj.Object)
		if err != nil {
			return nil, err
		}
		renamed := &unstructured.Unstructured{}
		if err := json.Unmarshal(bytes.ReplaceAll(raw, []byte(shop), []byte(name)), &renamed.Object); err != nil {
			return nil, err
		}
		if dockyards.NodePools.Is(renamed.GetAPIVersion(), renamed.GetKind()) {
			_ = unstructured.SetNestedField(renamed.Object, int64(1), "spec", "replicas")
		}
		if i < len(all) {
			all[i] = renamed
		} else {
			all = append(all, renamed)
		}
	}
	return all, nil
}

// siblings are the statuses that the controllers beside Slipway write.
func siblings(ctx context.Context, root string, client dynamic.Interface, file, name string) error {
	all, err := read(root, "status/"+file)
	if err != nil {
		return err
	}
	for _, obj := range all {
		raw, err := json.Marshal(map[string]any{"status": obj.Object["status"]})
		if err != nil {
			return err
		}
		gvr := schema.GroupVersionResource{Group: "dockyards.io", Version: "v1alpha3", Resource: stack.ResourceOf("dockyards.io", obj.GetKind())}
		target := obj.GetName()
		if target == shop {
			target = name
		}
		raw = bytes.ReplaceAll(raw, []byte(shop), []byte(name))
		if _, err := client.Resource(gvr).Namespace(obj.GetNamespace()).Patch(ctx, target, types.MergePatchType, raw, metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	return nil
}

// environments are Clusters with their pools.
func environments(root string, count int) *load {
	return &load{
		what: "Cluster with 3 NodePools", count: count, clusters: 1,
		functions: []string{"cluster-anchor", "nodepool-provisioner", "node-capacity"},
		subjects:  dockyards.NodePools.GVR(), namespace: acme, each: pools,
		prepare: func(ctx context.Context, s *stack.Stack) error {
			all, err := common(root)
			if err != nil {
				return err
			}
			if err := s.Apply(ctx, all...); err != nil {
				return err
			}
			return siblings(ctx, root, s.Client, "releases.yaml", "")
		},
		create: func(ctx context.Context, s *stack.Stack, i int) error {
			name := fmt.Sprintf("env-%04d", i)
			all, err := environment(root, name)
			if err != nil {
				return err
			}
			if err := s.Apply(ctx, all...); err != nil {
				return err
			}
			return siblings(ctx, root, s.Client, "cluster.yaml", name)
		},
	}
}

// imported is what a run of the whole installation has besides: an image, and the
// Gateway's address.
const imported = `
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata: {name: talos-v1.12.1, namespace: dockyards-public}
spec:
  source: {http: {url: "https://images.example.com/talos"}}
  pvc: {accessModes: [ReadWriteMany], resources: {requests: {storage: 8Gi}}}
---
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataSource
metadata: {name: talos, namespace: dockyards-public}
spec: {source: {pvc: {name: talos-v1.12.1, namespace: dockyards-public}}}
`

// platformStatus is what the platform says of itself.
func platformStatus(ctx context.Context, c *kube.Cluster, client dynamic.Interface, root string) error {
	objects, err := kube.Decode(strings.NewReader(imported))
	if err != nil {
		return err
	}
	if err := kube.Apply(ctx, c.Config, objects...); err != nil {
		return err
	}
	if err := siblings(ctx, root, client, "releases.yaml", ""); err != nil {
		return err
	}
	status := []byte(`{"status": {"addresses": [{"type": "IPAddress", "value": "192.0.2.10"}]}}`)
	_, err = client.Resource(dockyards.Gateways.GVR()).Namespace(settings["GATEWAY_NAMESPACE"]).
		Patch(ctx, settings["GATEWAY_NAME"], types.MergePatchType, status, metav1.PatchOptions{}, "status")
	return err
}
