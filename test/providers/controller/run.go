package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// FieldManager is the field manager of everything that is written here.
const FieldManager = "capi-providers"

const workers = 4

// key is one object that is worked on: a Cluster, a control plane or a deployment.
type key struct {
	kind            schema.GroupVersionResource
	namespace, name string
}

type player struct {
	kinds
	client dynamic.Interface
	log    *slog.Logger
	queue  workqueue.TypedRateLimitingInterface[key]
}

// Run plays the providers in a namespace, or in all if it is empty, until the context
// ends. The API server has to serve all their kinds, and dockyards.io, already.
func Run(ctx context.Context, config *rest.Config, namespace string, log *slog.Logger) error {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = FieldManager
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	found, err := discover(finder)
	if err != nil {
		return err
	}
	p := &player{
		kinds: found, client: client, log: log,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[key](20*time.Millisecond, 2*time.Second),
		),
	}
	defer p.queue.ShutDown()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	if err := p.watch(factory); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("cannot watch %s: %w", kind.Resource, cmp.Or(ctx.Err(), errors.New("no list came")))
		}
	}
	log.Info("playing Cluster API and its providers", "version", p.clusters.Version)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() { p.work(ctx) })
	}
	<-ctx.Done()
	p.queue.ShutDown()
	wait.Wait()
	return nil
}

// watch queues what is worked on when it changes, and the owner when a Machine does.
func (p *player) watch(factory dynamicinformer.DynamicSharedInformerFactory) error {
	for _, kind := range []schema.GroupVersionResource{p.clusters, p.controlPlanes, p.deployments} {
		if err := p.follow(factory, kind, func(obj metav1.Object) []key {
			keys := []key{{kind: kind, namespace: obj.GetNamespace(), name: obj.GetName()}}
			if cluster := obj.GetLabels()[labelCluster]; kind != p.clusters && cluster != "" {
				keys = append(keys, key{kind: p.clusters, namespace: obj.GetNamespace(), name: cluster})
			}
			return keys
		}); err != nil {
			return err
		}
	}
	return p.follow(factory, p.machines, func(obj metav1.Object) []key {
		kind := p.deployments
		if _, ok := obj.GetLabels()[labelControlPlane]; ok {
			kind = p.controlPlanes
		}
		return []key{{kind: kind, namespace: obj.GetNamespace(), name: obj.GetLabels()[labelPool]}}
	})
}

func (p *player) follow(factory dynamicinformer.DynamicSharedInformerFactory, kind schema.GroupVersionResource, keys func(metav1.Object) []key) error {
	seen := func(raw any) {
		if gone, ok := raw.(cache.DeletedFinalStateUnknown); ok {
			raw = gone.Obj
		}
		obj, ok := raw.(metav1.Object)
		if !ok {
			return
		}
		for _, k := range keys(obj) {
			p.queue.Add(k)
		}
	}
	_, err := factory.ForResource(kind).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: seen, UpdateFunc: func(_, obj any) { seen(obj) }, DeleteFunc: seen,
	})
	if err != nil {
		return fmt.Errorf("cannot watch %s: %w", kind.Resource, err)
	}
	return nil
}

func (p *player) work(ctx context.Context) {
	for {
		k, shutdown := p.queue.Get()
		if shutdown {
			return
		}
		if err := p.reconcile(ctx, k); err != nil && ctx.Err() == nil {
			if !apierrors.IsConflict(err) && !errors.Is(err, errAwaited) {
				p.log.Warn("pass failed", "kind", k.kind.Resource, "namespace", k.namespace, "name", k.name, "error", err)
			}
			p.queue.AddRateLimited(k)
		} else {
			p.queue.Forget(k)
		}
		p.queue.Done(k)
	}
}

// errAwaited: something is not there yet, and will be looked for again.
var errAwaited = errors.New("awaited")

func (p *player) reconcile(ctx context.Context, k key) error {
	obj, err := p.client.Resource(k.kind).Namespace(k.namespace).Get(ctx, k.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && obj.GetDeletionTimestamp() != nil) {
		return nil // garbage collection takes what belonged to it
	}
	if err != nil {
		return err
	}
	switch k.kind {
	case p.clusters:
		return p.cluster(ctx, obj)
	case p.controlPlanes:
		return p.pool(ctx, p.controlPlane(obj))
	}
	return p.pool(ctx, p.deployment(obj))
}
