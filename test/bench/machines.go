package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/stack"
)

// spreadMachines are Machines placed on several clusters in turn.
func spreadMachines(count, clusters int) *load {
	return &load{
		what: "Machine", count: count, clusters: clusters, functions: []string{"machine-vm"},
		subjects: machines, namespace: "default", each: 1,
		prepare: func(context.Context, *stack.Stack) error { return nil },
		create: func(ctx context.Context, s *stack.Stack, i int) error {
			obj := machine(fmt.Sprintf("spread-%04d", i))
			if len(s.Remotes) > 0 {
				_ = unstructured.SetNestedField(obj.Object, s.Remotes[i%len(s.Remotes)].Name, "spec", "kubevirtConfigRef")
			}
			_, err := s.Client.Resource(machines).Namespace("default").Create(ctx, obj, metav1.CreateOptions{})
			return err
		},
	}
}
