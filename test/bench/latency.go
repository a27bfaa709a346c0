package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/deploy/local/stack"
)

// warmRuns is how many Machines are applied, one after the other.
const warmRuns = 60

var (
	machines        = schema.GroupVersionResource{Group: "vitistack.io", Version: "v1alpha1", Resource: "machines"}
	virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
)

// latency times Machine applied to VirtualMachine present, through the real
// source and broker, with the function's process up.
func latency(ctx context.Context, root string, r *report) error {
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := stack.Start(ctx, stack.Options{Root: root, Data: dir, Idle: time.Minute, Out: io.Discard, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer s.Stop()
	watch, err := s.Client.Resource(virtualMachines).Namespace("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watch.Stop()
	var durations []time.Duration
	for i := range warmRuns + 1 {
		name := fmt.Sprintf("warm-%03d", i)
		started := time.Now()
		if _, err := s.Client.Resource(machines).Namespace("default").Create(ctx, machine(name), metav1.CreateOptions{}); err != nil {
			return err
		}
		for seen := false; !seen; {
			select {
			case event, open := <-watch.ResultChan():
				if !open {
					return errors.New("the watch ended")
				}
				vm, ok := event.Object.(*unstructured.Unstructured)
				seen = ok && vm.GetName() == "vm-"+name
			case <-time.After(30 * time.Second):
				return fmt.Errorf("no VirtualMachine for Machine %q within 30 s", name)
			}
		}
		// The first one started the process: that is not warm.
		if i > 0 {
			durations = append(durations, time.Since(started))
		}
		if err := s.WaitReady(ctx, 30*time.Second, machine(name)); err != nil {
			return err
		}
	}
	r.WarmMs = spreadOf(durations)
	return nil
}
