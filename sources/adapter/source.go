package adapter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// Source watches clusters and sends what happens there to one sink.
type Source struct {
	config Config
	log    *slog.Logger
	send   sender

	mu       sync.Mutex
	ctx      context.Context // of Run; nil before it
	wait     sync.WaitGroup
	clusters map[string]*watched
}

// watched is a cluster at work.
type watched struct {
	follower *follower
	cancel   context.CancelFunc
	ended    chan struct{}
}

// New makes a Source. The configuration must come from Load.
func New(config Config, log *slog.Logger) (*Source, error) {
	send, err := newSender(config)
	if err != nil {
		return nil, err
	}
	return &Source{config: config, log: log, send: send, clusters: map[string]*watched{}}, nil
}

// Run watches the given clusters, and those that are added later, until ctx is
// done. It returns when everything has stopped.
func (s *Source) Run(ctx context.Context, clusters ...Cluster) error {
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	for _, cluster := range clusters {
		if err := s.Add(cluster); err != nil {
			return err
		}
	}
	<-ctx.Done()
	s.mu.Lock()
	s.ctx = nil
	s.mu.Unlock()
	s.wait.Wait()
	return nil
}

// Add watches one more cluster. A cluster of the same name is left first.
func (s *Source) Add(cluster Cluster) error {
	s.Remove(cluster.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		return errors.New("cannot watch a cluster: the source does not run")
	}
	ctx, cancel := context.WithCancel(s.ctx)
	one, run, err := s.watch(ctx, cluster)
	if err != nil {
		cancel()
		return fmt.Errorf("cannot watch cluster %q: %w", cluster.Name, err)
	}
	one.cancel = cancel
	s.clusters[cluster.Name] = one
	s.wait.Go(func() {
		defer close(one.ended)
		run()
	})
	return nil
}

// Remove stops watching the named cluster and waits until it has stopped.
func (s *Source) Remove(name string) {
	s.mu.Lock()
	one := s.clusters[name]
	delete(s.clusters, name)
	s.mu.Unlock()
	if one == nil {
		return
	}
	one.cancel()
	<-one.ended
}

// Ready tells whether every cluster's discovery has been followed once.
func (s *Source) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.clusters {
		// A remote cluster may be away for long: that is no reason to restart.
		if one.follower.cluster.Name == "" && !one.follower.followed.Load() {
			return false
		}
	}
	return len(s.clusters) > 0
}

// watch prepares everything for one cluster; the returned function does it.
func (s *Source) watch(ctx context.Context, cluster Cluster) (*watched, func(), error) {
	config := Unlimited(cluster.Config)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a discovery client: %w", err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a metadata client: %w", err)
	}
	log := s.log.With("cluster", cluster.Name, "server", config.Host)
	receive := func(ctx context.Context, cluster Cluster, env Environment, watching func()) error {
		return Receive(ctx, cluster, env, zapTo(log), watching)
	}
	follow := newFollower(s.config, cluster, client, receive, log)

	informer := metadatainformer.NewSharedInformerFactory(objects, 0).ForResource(definitions).Informer()
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		log.Warn("cannot watch CustomResourceDefinitions", "error", err)
	}); err != nil {
		return nil, nil, fmt.Errorf("cannot watch CustomResourceDefinitions: %w", err)
	}
	if _, err := informer.AddEventHandler(follow.onDefinition()); err != nil {
		return nil, nil, fmt.Errorf("cannot watch CustomResourceDefinitions: %w", err)
	}
	run := func() {
		var wait sync.WaitGroup
		defer wait.Wait()
		wait.Go(func() { informer.RunWithContext(ctx) })
		if cluster.Name != "" {
			wait.Go(func() { s.announce(ctx, cluster, client.RESTClient(), log) })
		}
		follow.run(ctx)
	}
	return &watched{follower: follow, ended: make(chan struct{})}, run, nil
}

// onDefinition asks for a look at the group whose definition changed.
func (f *follower) onDefinition() cache.ResourceEventHandler {
	changed := func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		definition, ok := obj.(*metav1.PartialObjectMetadata)
		if !ok {
			return
		}
		if group, ours := f.config.groupOf(definition.Name); ours {
			f.notify(group)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, obj any) { changed(obj) },
		DeleteFunc: changed,
	}
}

// Handler answers /healthz and /readyz.
func (s *Source) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.Ready() {
			http.Error(w, "not every cluster's discovery has been read yet", http.StatusServiceUnavailable)
		}
	})
	return mux
}
