package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const (
	// FieldManager is the field manager of what [Apply] writes.
	FieldManager = "slipway-local"
	// settle is how long an object is tried again while what it needs (its
	// definition, its namespace) is on its way.
	settle = 30 * time.Second
	// establish is how long definitions may take to be served: a machine that
	// starts several API servers at once has a lot to do.
	establish = 2 * time.Minute
	// parallel is how many definitions are written at once.
	parallel = 8
)

var (
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	definitions    = schema.GroupVersionResource{Group: definitionKind.Group, Version: "v1", Resource: "customresourcedefinitions"}
)

// Apply writes the objects by server-side apply: the definitions first, all at
// once, until they are established; then the namespaces; then the rest in the given
// order. An object whose definition or namespace is not there yet is tried again
// for half a minute. Fields that others own are taken from them.
func Apply(ctx context.Context, cfg *rest.Config, objs ...*unstructured.Unstructured) error {
	a, err := newApplier(cfg)
	if err != nil {
		return err
	}
	crds, namespaces, rest := split(objs)
	if err := a.each(ctx, crds); err != nil {
		return err
	}
	names := make([]string, 0, len(crds))
	for _, crd := range crds {
		names = append(names, crd.GetName())
	}
	if err := WaitEstablished(ctx, cfg, names...); err != nil {
		return err
	}
	for _, obj := range slices.Concat(namespaces, rest) {
		if err := a.apply(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

func split(objs []*unstructured.Unstructured) (crds, namespaces, rest []*unstructured.Unstructured) {
	for _, obj := range objs {
		switch obj.GroupVersionKind().GroupKind() {
		case definitionKind:
			crds = append(crds, obj)
		case namespaceKind:
			namespaces = append(namespaces, obj)
		default:
			rest = append(rest, obj)
		}
	}
	return crds, namespaces, rest
}

type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(cfg *rest.Config) (*applier, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of %q: %w", cfg.Host, err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of %q: %w", cfg.Host, err)
	}
	return &applier{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}, nil
}

// each applies the objects a few at a time, and returns the errors of all that
// failed.
func (a *applier) each(ctx context.Context, objs []*unstructured.Unstructured) error {
	var group sync.WaitGroup
	slots := make(chan struct{}, parallel)
	errs := make([]error, len(objs))
	for i, obj := range objs {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = a.apply(ctx, obj)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// apply writes one object, trying again while the failure may pass by itself.
func (a *applier) apply(ctx context.Context, obj *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		err := a.try(ctx, obj)
		if err == nil {
			return nil
		}
		if !passes(err) {
			return fmt.Errorf("cannot apply %s %q: %w", obj.GetKind(), key(obj), err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("cannot apply %s %q: %w: %w", obj.GetKind(), key(obj), ctx.Err(), err)
		}
	}
}

func (a *applier) try(ctx context.Context, obj *unstructured.Unstructured) error {
	gvk := obj.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		// What discovery said may be older than the definition.
		a.mapper.Reset()
		return err
	}
	var client dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if obj.GetNamespace() == "" {
			return errors.New("it has no namespace, and its kind needs one")
		}
		client = a.client.Resource(mapping.Resource).Namespace(obj.GetNamespace())
	}
	_, err = client.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	return err
}

// passes tells whether a failure may pass by itself, shortly after a start.
func passes(err error) bool {
	for _, is := range []func(error) bool{
		meta.IsNoMatchError,
		// The namespace or the definition is not there yet.
		apierrors.IsNotFound,
		apierrors.IsConflict,
		apierrors.IsServerTimeout,
		apierrors.IsTimeout,
		apierrors.IsTooManyRequests,
		apierrors.IsServiceUnavailable,
		utilnet.IsConnectionRefused,
		utilnet.IsConnectionReset,
	} {
		if is(err) {
			return true
		}
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	// A webhook that is not serving yet. Only the text tells it from the other
	// internal errors, among them a field of the wrong type, which stay.
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}

// WaitEstablished waits until the API server serves the named definitions.
func WaitEstablished(ctx context.Context, cfg *rest.Config, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("cannot make a client of %q: %w", cfg.Host, err)
	}
	ctx, cancel := context.WithTimeout(ctx, establish)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		missing, err := unestablished(ctx, client, names)
		if err == nil && len(missing) == 0 {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for definitions %q to be established: %w (last answer: %w)", missing, context.Cause(ctx), err)
		}
	}
}

// unestablished returns which of the named definitions are not served.
func unestablished(ctx context.Context, client dynamic.Interface, names []string) ([]string, error) {
	list, err := client.Resource(definitions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return names, err
	}
	served := map[string]bool{}
	for i := range list.Items {
		served[list.Items[i].GetName()] = established(&list.Items[i])
	}
	var missing []string
	for _, name := range names {
		if !served[name] {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing, nil
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}

func key(obj *unstructured.Unstructured) string {
	if obj.GetNamespace() == "" {
		return obj.GetName()
	}
	return obj.GetNamespace() + "/" + obj.GetName()
}
