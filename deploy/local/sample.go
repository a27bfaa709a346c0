package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stack"
	"github.com/slipway-dev/slipway/shared/dockyards"
)

// sample is a folder of deploy/samples:
//
//	kustomization.yaml           what is submitted
//	status/                      what controllers beside Slipway know: statuses
//	workload/<namespace>/<name>  what lies in a workload cluster, which gets an API
//	                             server of its own
type sample struct {
	// folder is relative to the root of the repository; empty for none.
	folder string
	// statuses tells that there is a folder with statuses.
	statuses bool
	// inside are the objects of workload clusters, by "namespace/name" of the Cluster.
	inside map[string][]*unstructured.Unstructured
}

// find looks at a sample.
func find(root, name string) (*sample, error) {
	if name == "" {
		return &sample{}, nil
	}
	s := &sample{folder: path.Join("deploy/samples", name), inside: map[string][]*unstructured.Unstructured{}}
	whole := filepath.Join(root, filepath.FromSlash(s.folder))
	if _, err := os.Stat(filepath.Join(whole, "kustomization.yaml")); err != nil {
		return nil, fmt.Errorf("cannot find sample %q in deploy/samples: %w", name, err)
	}
	_, err := os.Stat(filepath.Join(whole, "status"))
	s.statuses = err == nil
	folders, err := filepath.Glob(filepath.Join(whole, "workload", "*", "*"))
	if err != nil {
		return nil, fmt.Errorf("cannot read sample %q: %w", name, err)
	}
	for _, folder := range folders {
		cluster := dockyards.RemoteName(filepath.Base(filepath.Dir(folder)), filepath.Base(folder))
		if s.inside[cluster], err = kube.ReadFiles(folder); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// clusters are the workload clusters of the sample.
func (s *sample) clusters() []string {
	var names []string
	for name := range s.inside {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// submit brings the sample in, and returns what a person would have to submit.
func (s *sample) submit(ctx context.Context, to *stack.Stack) ([]*unstructured.Unstructured, error) {
	if s.folder == "" {
		return nil, nil
	}
	objects, err := to.Kustomize(ctx, s.folder)
	if err != nil {
		return nil, err
	}
	if err := to.Apply(ctx, objects...); err != nil {
		return nil, err
	}
	for _, workload := range to.Workloads {
		if err := kube.Apply(ctx, workload.Cluster.Config, s.inside[workload.Name]...); err != nil {
			return nil, err
		}
	}
	if s.statuses {
		_, err = to.Kubectl(ctx, "apply", "--server-side", "--subresource=status", "-k", path.Join(s.folder, "status"))
	}
	return objects, err
}

// workloads are the Workloads whose Services lie in workload clusters. Who makes them
// is another function.
func (s *sample) workloads() []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for _, cluster := range s.clusters() {
		namespace, _, _ := dockyards.ParseRemoteName(cluster)
		for _, obj := range s.inside[cluster] {
			name := obj.GetLabels()[v1alpha3.LabelWorkloadName]
			if name == "" || slices.ContainsFunc(list, func(w *unstructured.Unstructured) bool {
				return w.GetNamespace() == namespace && w.GetName() == name
			}) {
				continue
			}
			workload := &unstructured.Unstructured{}
			workload.SetGroupVersionKind(dockyards.Workloads.GVK())
			workload.SetNamespace(namespace)
			workload.SetName(name)
			list = append(list, workload)
		}
	}
	return list
}

// reached waits until every load balancer in a workload cluster knows where it is
// reached: a Workload without any is Ready too.
func (s *sample) reached(ctx context.Context, in *stack.Stack, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for _, workload := range in.Workloads {
		for _, obj := range s.inside[workload.Name] {
			if obj.GetLabels()[v1alpha3.LabelWorkloadName] == "" {
				continue
			}
			for !hasAddress(ctx, workload, obj) {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return fmt.Errorf("service %s/%s in %s is not told any address: its Workload says why", obj.GetNamespace(), obj.GetName(), workload.Name)
				}
			}
		}
	}
	return nil
}

func hasAddress(ctx context.Context, workload *stack.Remote, service *unstructured.Unstructured) bool {
	live, err := workload.Client.Resource(dockyards.Services.GVR()).Namespace(service.GetNamespace()).Get(ctx, service.GetName(), metav1.GetOptions{})
	if err != nil {
		return false
	}
	addresses, _, _ := unstructured.NestedSlice(live.Object, "status", "loadBalancer", "ingress")
	return len(addresses) > 0
}

// show prints a table of objects of all namespaces.
func show(ctx context.Context, s *stack.Stack, what string) error {
	table, err := s.Kubectl(ctx, "get", what, "-A")
	fmt.Printf("\n%s\n", table)
	return err
}

// ingresses print what the workload clusters know of their load balancers.
func ingresses(ctx context.Context, s *stack.Stack) error {
	var all []error
	for _, workload := range s.Workloads {
		// In one piece: what happens meanwhile is printed in between.
		table, err := s.KubectlOn(ctx, workload, "get", "services", "-A")
		fmt.Printf("\n%s:\n%s\n", workload.Name, table)
		all = append(all, err)
	}
	return errors.Join(all...)
}
