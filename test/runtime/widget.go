// Package runtime tests the engine as functions use it, against a real API
// server. Its function, made for these tests, turns a Widget into parts: one
// ConfigMap per part by create, one settings ConfigMap by server-side apply,
// and a status; it has a finalizer and cleans up after itself.
package runtime

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

const (
	finalizer = "demo.slipway.dev/cleanup"
	label     = "demo.slipway.dev/widget"
	ownerUID  = "demo.slipway.dev/widget-uid"
	ownerName = "demo.slipway.dev/widget-name"
)

var widgets = kind.Resource{
	Group: "demo.slipway.dev", Versions: []string{"v1"}, Kind: "Widget", Plural: "widgets", Namespaced: true,
	Sealed: []string{"spec.token"},
}

// configMaps are where Widgets keep their parts; the token is secret in them too.
var configMaps = kind.Resource{
	Versions: []string{"v1"}, Kind: "ConfigMap", Plural: "configmaps", Namespaced: true, Sealed: []string{"data.token"},
}

// crd is Widget's definition.
const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.demo.slipway.dev}
spec:
  group: demo.slipway.dev
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              parts: {type: integer}
              color: {type: string}
              token: {type: string}
          status:
            type: object
            properties:
              parts: {type: integer}
              message: {type: string}
`

// input is all that one decision about a Widget needs.
type input struct {
	root     *unstructured.Unstructured
	parts    []unstructured.Unstructured
	settings *unstructured.Unstructured
	site     string
}

func spec() reconcile.Spec {
	return reconcile.Spec{
		Name: "widget", Reconciles: widgets, Concurrency: 10,
		Watches: []reconcile.Watch{
			{Resource: widgets},
			{Resource: configMaps, Keys: func(_ context.Context, _ *read.Reader, e event.Event) ([]reconcile.Key, error) {
				if len(e.Name) < 2 {
					return nil, nil
				}
				return []reconcile.Key{{Namespace: e.Namespace, Name: e.Name[:len(e.Name)-2]}}, nil
			}},
		},
		Grants: []reconcile.Grant{
			{Resource: widgets, Verbs: []string{"get", "list", "patch"}},
			{Resource: widgets, Subresource: "status", Verbs: []string{"patch"}},
			{Resource: configMaps, Verbs: []string{"list", "get", "create", "patch", "delete"}},
			{Resource: kind.Namespaces, Verbs: []string{"get"}, Names: []string{"kube-system"}},
		},
		Children: []reconcile.Children{{Resource: configMaps, Selector: label, Owner: func(c *unstructured.Unstructured) (reconcile.Key, string, string, bool) {
			a := c.GetAnnotations()
			return reconcile.Key{Namespace: c.GetNamespace(), Name: a[ownerName]}, a[ownerUID], a[reconcile.AnnotationInstallation], a[ownerUID] != ""
		}}},
	}
}

// function is the declared function; with light it makes no children and reads
// only the Widget itself.
func function(light bool) reconcile.Function[input] {
	return reconcile.Function[input]{
		Spec: spec(),
		Gather: func(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) (input, error) {
			in := input{root: root}
			if light {
				return in, nil
			}
			var err error
			if in.parts, err = r.List(ctx, cluster.Management, configMaps, root.GetNamespace(), label+"="+root.GetName()); err != nil {
				return in, err
			}
			if in.settings, err = r.Get(ctx, cluster.Management, configMaps, root.GetNamespace(), root.GetName()+"-s"); err != nil {
				return in, err
			}
			in.site, err = r.ClusterUID(ctx, cluster.Management)
			return in, err
		},
		Decide: func(_ time.Time, in input, _ plan.Answers) plan.Decision {
			if light {
				return plan.Decision{}
			}
			return decide(in)
		},
		Conclude: conclude,
	}
}

func decide(in input) plan.Decision {
	if in.root.GetDeletionTimestamp() != nil {
		return decideDeletion(in)
	}
	var p plan.Plan
	if !slices.Contains(in.root.GetFinalizers(), finalizer) {
		p.Add("finalizer", withFinalizers(in.root, append(slices.Clone(in.root.GetFinalizers()), finalizer), "so that the parts can be removed"))
	}
	settings := child(in, in.root.GetName()+"-s")
	color, _, _ := unstructured.NestedString(in.root.Object, "spec", "color")
	token, _, _ := unstructured.NestedString(in.root.Object, "spec", "token")
	settings.Object["data"] = map[string]any{"color": color, "token": token}
	entries := []plan.Entry{{Verb: plan.Apply, Resource: configMaps, Object: settings, Base: in.settings, Reason: "the settings"}}

	want, _, _ := unstructured.NestedInt64(in.root.Object, "spec", "parts")
	names := map[string]bool{in.root.GetName() + "-s": true}
	for i := range want {
		name := fmt.Sprintf("%s-%d", in.root.GetName(), i)
		names[name] = true
		if !slices.ContainsFunc(in.parts, func(c unstructured.Unstructured) bool { return c.GetName() == name }) {
			entries = append(entries, plan.Entry{Verb: plan.Create, Resource: configMaps, Object: child(in, name), Reason: "a part"})
		}
	}
	p.Add("objects", entries...)
	var extra []plan.Entry
	for i := range in.parts {
		if !names[in.parts[i].GetName()] {
			extra = append(extra, plan.Entry{Verb: plan.Delete, Resource: configMaps, Base: &in.parts[i], Reason: "a part too many"})
		}
	}
	p.Add("prune", extra...)
	return plan.Decision{Plan: p}
}

func decideDeletion(in input) plan.Decision {
	var p plan.Plan
	var entries []plan.Entry
	for i := range in.parts {
		entries = append(entries, plan.Entry{Verb: plan.Delete, Resource: configMaps, Base: &in.parts[i], Reason: "the Widget goes"})
	}
	p.Add("children", entries...)
	left := slices.DeleteFunc(slices.Clone(in.root.GetFinalizers()), func(f string) bool { return f == finalizer })
	if len(left) != len(in.root.GetFinalizers()) {
		p.Add("finalizer", withFinalizers(in.root, left, "nothing is left"))
	}
	return plan.Decision{Plan: p}
}

func withFinalizers(root *unstructured.Unstructured, finalizers []string, reason string) plan.Entry {
	changed := root.DeepCopy()
	changed.SetFinalizers(finalizers)
	return plan.Entry{Verb: plan.Patch, Resource: widgets, Object: changed, Base: root, Reason: reason}
}

func child(in input, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"namespace": in.root.GetNamespace(), "name": name, "labels": map[string]any{label: in.root.GetName()},
			"annotations": map[string]any{
				ownerUID: string(in.root.GetUID()), ownerName: in.root.GetName(), reconcile.AnnotationInstallation: in.site,
			},
		},
	}}
}

func conclude(_ time.Time, in input, _ plan.Answers, outcomes plan.Outcomes) plan.Conclusion {
	want, _, _ := unstructured.NestedInt64(in.root.Object, "spec", "parts")
	status := map[string]any{"parts": want, "message": "ok"}
	c := plan.Conclusion{Class: plan.Done, Reason: "Ok", Status: status}
	if failed := outcomes.Faults(); len(failed) > 0 {
		status["message"] = failed[0].Fault.Message
		c.Class, c.Reason = plan.Terminal, "Refused"
	}
	return c
}
