package stack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// WaitReady waits until the condition Ready of every object is True. The error
// names the first that is not, and what its conditions say.
func (s *Stack) WaitReady(ctx context.Context, timeout time.Duration, objects ...*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for _, obj := range objects {
		for {
			live, err := s.get(ctx, obj)
			if err == nil && ready(live) {
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return notReady(obj, live, err)
			}
		}
	}
	return nil
}

func (s *Stack) get(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk := obj.GroupVersionKind()
	gvr := gvk.GroupVersion().WithResource(ResourceOf(gvk.Group, gvk.Kind))
	live, err := s.Client.Resource(gvr).Namespace(obj.GetNamespace()).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot read %s %s/%s: %w", gvk.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	return live, nil
}

func conditions(obj *unstructured.Unstructured) []map[string]any {
	if obj == nil {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var out []map[string]any
	for _, item := range list {
		if c, ok := item.(map[string]any); ok {
			out = append(out, c)
		}
	}
	return out
}

// ready tells whether the condition Ready is True; of an object that has no such
// condition, whether all are that it has.
func ready(obj *unstructured.Unstructured) bool {
	all := conditions(obj)
	for _, c := range all {
		if c["type"] == "Ready" {
			return c["status"] == "True"
		}
	}
	return len(all) > 0 && !slices.ContainsFunc(all, func(c map[string]any) bool { return c["status"] != "True" })
}

func notReady(obj, live *unstructured.Unstructured, err error) error {
	name := fmt.Sprintf("%s %s/%s", obj.GetKind(), obj.GetNamespace(), obj.GetName())
	if live == nil {
		return fmt.Errorf("%s is not Ready: %w", name, err)
	}
	var said []string
	for _, c := range conditions(live) {
		if c["status"] != "True" {
			said = append(said, fmt.Sprintf("%v is %v (%v: %v)", c["type"], c["status"], c["reason"], c["message"]))
		}
	}
	if len(said) == 0 {
		said = append(said, "it has no conditions: no function has taken care of it")
	}
	return fmt.Errorf("%s is not Ready: %s", name, strings.Join(said, "; "))
}
