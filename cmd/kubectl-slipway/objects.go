package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

// reconcilerOf is the function that reconciles a kind, named as kubectl names it.
func reconcilerOf(name string) (reconcile.Spec, error) {
	var known []string
	for _, spec := range slipway.Specs() {
		if called(spec.Reconciles, name) {
			return spec, nil
		}
		known = append(known, strings.ToLower(spec.Reconciles.Kind))
	}
	slices.Sort(known)
	return reconcile.Spec{}, fmt.Errorf("cannot find kind %q: functions reconcile %s", name, strings.Join(slices.Compact(known), ", "))
}

// called tells whether a resource can be called by a name: machine, machines,
// Machine, machines.vitistack.io.
func called(res kind.Resource, name string) bool {
	name = strings.ToLower(name)
	bare, group, qualified := strings.Cut(name, ".")
	if qualified && group != res.Group {
		return false
	}
	return bare == strings.ToLower(res.Kind) || bare == res.Plural
}

// resources are all that the functions speak of, each once.
func resources() []kind.Resource {
	var all []kind.Resource
	add := func(res kind.Resource) {
		if !slices.ContainsFunc(all, func(known kind.Resource) bool { return known.String() == res.String() }) {
			all = append(all, res)
		}
	}
	for _, spec := range slipway.Specs() {
		add(spec.Reconciles)
		for _, watch := range spec.Watches {
			add(watch.Resource)
		}
		for _, grant := range append(slices.Clone(spec.Grants), spec.TargetGrants...) {
			add(grant.Resource)
		}
	}
	return all
}

// liveCluster is the cluster, with the rights of whoever runs the command.
type liveCluster struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func (o *options) live() (*liveCluster, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	return &liveCluster{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))}, nil
}

// in is the interface to an object's resource, in its namespace if it has one.
func (c *liveCluster) in(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, bool, error) {
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, false, fmt.Errorf("cannot find kind %q: %w", gvk.Kind, err)
	}
	if mapping.Scope.Name() == "namespace" {
		return c.client.Resource(mapping.Resource).Namespace(namespace), true, nil
	}
	return c.client.Resource(mapping.Resource), false, nil
}

// find reads KIND/NAME; a kind that functions know is looked for first.
func (c *liveCluster) find(ctx context.Context, argument, namespace string) (*unstructured.Unstructured, error) {
	kindName, name, ok := strings.Cut(argument, "/")
	if !ok || name == "" || kindName == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("cannot find %q: write KIND/NAME, like machine/web", argument)
	}
	gvk, err := c.kindOf(kindName)
	if err != nil {
		return nil, err
	}
	client, namespaced, err := c.in(gvk, namespace)
	if err != nil {
		return nil, err
	}
	obj, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && namespaced {
		return nil, fmt.Errorf("cannot find %s %q in namespace %q", gvk.Kind, name, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s %q: %w", gvk.Kind, name, err)
	}
	return obj, nil
}

func (c *liveCluster) kindOf(name string) (schema.GroupVersionKind, error) {
	matches := map[string]kind.Resource{}
	for _, spec := range slipway.Specs() {
		if called(spec.Reconciles, name) {
			matches[spec.Reconciles.Group] = spec.Reconciles
		}
	}
	if len(matches) == 0 {
		for _, res := range resources() {
			if called(res, name) {
				matches[res.Group] = res
			}
		}
	}
	// What is not served here was not meant.
	var found []schema.GroupVersionKind
	for _, res := range matches {
		if served, err := c.mapper.RESTMapping(res.GVK().GroupKind(), res.Versions...); err == nil {
			found = append(found, served.GroupVersionKind)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		groups := make([]string, 0, len(found))
		for _, gvk := range found {
			groups = append(groups, strings.ToLower(gvk.Kind)+"."+gvk.Group)
		}
		slices.Sort(groups)
		return schema.GroupVersionKind{}, fmt.Errorf("cannot tell which kind %q is: write one of %s", name, strings.Join(groups, ", "))
	}
	bare, group, _ := strings.Cut(strings.ToLower(name), ".")
	gvk, err := c.mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: bare})
	if err != nil {
		return gvk, errors.Join(fmt.Errorf("cannot find kind %q", name), err)
	}
	return gvk, nil
}
