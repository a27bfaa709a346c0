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
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// FieldManager is the field manager of everything that is written here.
const FieldManager = "virt-controller"

// Options say what the platform is like.
type Options struct {
	// Node is the name of the one node; "" is "node-1".
	Node string
	// Memory is what the node offers to one instance. An instance that asks for more
	// is unschedulable. Zero is no limit.
	Memory resource.Quantity
	// Workers is how many names are worked on at once; 0 is 2.
	Workers int
	// Log gets one line per change; nil is slog.Default().
	Log *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Node = cmp.Or(o.Node, "node-1")
	o.Workers = cmp.Or(o.Workers, 2)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// player holds what is common to all passes.
type player struct {
	Options
	client dynamic.Interface
	// hasDataVolumes says that the API server serves CDI's kinds.
	hasDataVolumes bool
	queue          workqueue.TypedRateLimitingInterface[key]
	// machines and instances find who uses a claim.
	machines, instances cache.Indexer
}

// Run plays virt-controller until the context ends. The API server has to serve
// VirtualMachines and VirtualMachineInstances already; DataVolumes are left alone
// where it does not serve them.
func Run(ctx context.Context, config *rest.Config, opts Options) error {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = FieldManager
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	hasDataVolumes, err := checkKinds(config)
	if err != nil {
		return err
	}
	p := &player{
		Options: opts.withDefaults(), client: client, hasDataVolumes: hasDataVolumes,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[key](5*time.Millisecond, 2*time.Second),
		),
	}
	defer p.queue.ShutDown()
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
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
	p.Log.Info("playing virt-controller", "node", p.Node, "dataVolumes", hasDataVolumes)
	var workers sync.WaitGroup
	for range p.Workers {
		workers.Go(func() { p.work(ctx) })
	}
	<-ctx.Done()
	p.queue.ShutDown()
	workers.Wait()
	return nil
}

// checkKinds makes sure that the kinds of KubeVirt are served, and tells whether
// DataVolumes are.
func checkKinds(config *rest.Config) (hasDataVolumes bool, err error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false, fmt.Errorf("cannot make a client: %w", err)
	}
	for _, kind := range []schema.GroupVersionResource{machines, instances} {
		served, err := serves(client, kind)
		if err != nil {
			return false, err
		}
		if !served {
			return false, fmt.Errorf("cannot play virt-controller: the API server does not serve %s of %s", kind.Resource, kind.GroupVersion())
		}
	}
	return serves(client, dataVolumes)
}

func serves(client discovery.DiscoveryInterface, kind schema.GroupVersionResource) (bool, error) {
	list, err := client.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot ask which kinds of %s are served: %w", kind.GroupVersion(), err)
	}
	for _, served := range list.APIResources {
		if served.Name == kind.Resource {
			return true, nil
		}
	}
	return false, nil
}

// work takes names from the queue until it is shut down.
func (p *player) work(ctx context.Context) {
	for {
		k, shutdown := p.queue.Get()
		if shutdown {
			return
		}
		p.pass(ctx, k)
		p.queue.Done(k)
	}
}

func (p *player) pass(ctx context.Context, k key) {
	err := p.reconcile(ctx, k)
	if err == nil {
		p.queue.Forget(k)
		return
	}
	if ctx.Err() != nil {
		return
	}
	// Somebody else was faster: what they wrote is read in the next pass.
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		p.Log.Warn("pass failed", "kind", k.kind, "namespace", k.namespace, "name", k.name, "error", err)
	}
	p.queue.AddRateLimited(k)
}

func (p *player) reconcile(ctx context.Context, k key) error {
	if k.kind == claimKey {
		return p.protectClaim(ctx, k)
	}
	return p.reconcileMachine(ctx, k)
}
