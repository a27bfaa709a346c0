package adapter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"knative.dev/eventing/pkg/adapter/apiserver"
)

// errRemoved is why a cluster is no longer watched, unless another takes its place.
var errRemoved = errors.New("the cluster was removed")

// Source watches clusters and sends what happens there to one sink.
type Source struct {
	config Config
	log    *slog.Logger
	send   sender

	mu         sync.Mutex
	ctx        context.Context // of Run; nil before and after it
	wait       sync.WaitGroup
	management *follower
	clusters   map[string]*watched
	begun      chan struct{}
}

// watched is a remote cluster at work.
type watched struct {
	cancel context.CancelCauseFunc
	// begun is closed when it is watched for the first time, ended when it is left.
	begun, ended chan struct{}
}

// New makes a Source. The configuration must come from Load.
func New(config Config, log *slog.Logger) (*Source, error) {
	send, err := newSender(config)
	if err != nil {
		return nil, err
	}
	return &Source{config: config, log: log, send: send, clusters: map[string]*watched{}, begun: make(chan struct{})}, nil
}

// Run watches the management cluster, and the remote clusters that are found there
// or added, until ctx is done. It returns when everything has stopped. It must not
// be called twice.
func (s *Source) Run(ctx context.Context, management Cluster) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config := Unlimited(management.Config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("cannot make a client for the management cluster: %w", err)
	}
	one := session{cluster: Cluster{Config: config}, client: client, log: s.log.With("server", config.Host)}
	main, err := s.follow(one, s.config.Resources, func() {})
	if err != nil {
		return err
	}
	followers := []*follower{main}
	var finders []*finder
	for _, settings := range s.config.Remotes {
		find, follow, err := s.find(one, settings)
		if err != nil {
			return err
		}
		finders, followers = append(finders, find), append(followers, follow)
	}
	definitions, err := one.definitions(followers...)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.ctx, s.management = ctx, main
	s.mu.Unlock()

	s.wait.Go(func() { definitions.RunWithContext(ctx) })
	for _, follow := range followers {
		s.wait.Go(func() { follow.run(ctx) })
	}
	for _, find := range finders {
		s.wait.Go(func() { find.run(ctx) })
	}
	select {
	case <-ctx.Done():
	case <-main.begun:
		close(s.begun)
		<-ctx.Done()
	}
	s.mu.Lock()
	s.ctx = nil
	s.mu.Unlock()
	s.wait.Wait()
	return nil
}

// follow makes the follower that runs receive adapters on a cluster. It calls lost
// when one of them may have missed something.
func (s *Source) follow(one session, resources resources, lost func()) (*follower, error) {
	discovery, err := one.discovery()
	if err != nil {
		return nil, err
	}
	log := zapTo(one.log)
	var kinds map[schema.GroupResource]string
	if one.cluster.Name != "" {
		kinds = resources.kinds()
	}
	receive := func(ctx context.Context, key unit, watches []apiserver.ResourceWatch, watching func()) error {
		env, err := s.config.environment(one.cluster.Name, key, watches)
		if err != nil {
			return err
		}
		return receiving{
			config: one.cluster.Config, client: one.client, env: env, name: key.name, owner: key.owner, kinds: kinds, pace: one.pace,
			fields: strings.FieldsFunc(key.fields, func(r rune) bool { return r == '\n' }),
			log:    log, watching: watching, again: lost,
		}.run(ctx)
	}
	return newFollower(resources, discovery, receive, one.log), nil
}

// Add watches one more cluster, in place of the one of the same provider and name
// if there is one. Nothing happens in the gap between the two: the predecessor goes
// when its successor watches. The provider must be among those of the configuration.
func (s *Source) Add(cluster Cluster) error {
	var settings *Remote
	for i := range s.config.Remotes {
		if s.config.Remotes[i].Provider == cluster.Provider {
			settings = &s.config.Remotes[i]
		}
	}
	if settings == nil {
		return fmt.Errorf("cannot watch cluster %q: its provider %q is not configured", cluster.Name, cluster.Provider)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		return fmt.Errorf("cannot watch cluster %q: the source does not run", cluster.Name)
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	cluster.Config = Unlimited(cluster.Config)
	cluster.Config.WarningHandler = rest.NoWarnings{} // its words must not stand in our log
	keep, err := s.keeper(ctx, cluster, *settings)
	if err != nil {
		cancel(err)
		return fmt.Errorf("cannot watch cluster %q: %w", cluster.Name, err)
	}
	before := s.clusters[cluster.id()]
	after := &watched{cancel: cancel, begun: keep.begun, ended: make(chan struct{})}
	s.clusters[cluster.id()] = after
	s.wait.Go(func() {
		defer close(after.ended)
		keep.run(ctx)
	})
	if before != nil {
		s.wait.Go(func() { replace(ctx, before, after) })
	}
	return nil
}

// replace ends a cluster's predecessor when the cluster is watched.
func replace(ctx context.Context, before, after *watched) {
	late, cancel := context.WithTimeout(ctx, overlap)
	defer cancel()
	select {
	case <-after.begun:
	case <-late.Done():
	}
	before.cancel(nil)
}

// Remove stops watching a cluster and waits until that is done.
func (s *Source) Remove(provider, name string) {
	if ended := s.drop(provider, name); ended != nil {
		<-ended
	}
}

// drop begins to stop watching a cluster; the channel is closed when that is done.
// It is nil if there is no such cluster.
func (s *Source) drop(provider, name string) <-chan struct{} {
	id := Cluster{Provider: provider, Name: name}.id()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.clusters[id]
	delete(s.clusters, id)
	if one == nil {
		return nil
	}
	one.cancel(errRemoved)
	return one.ended
}

// Ready tells whether the management cluster's discovery has been followed. A
// remote cluster may be away for long: that is no reason to restart.
func (s *Source) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.management != nil && s.management.followed.Load()
}

// Begun is closed when the management cluster is watched: what changes there from
// then on gives events.
func (s *Source) Begun() <-chan struct{} { return s.begun }

// Handler answers /healthz and /readyz.
func (s *Source) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.Ready() {
			http.Error(w, "the management cluster's discovery has not been read yet", http.StatusServiceUnavailable)
		}
	})
	return mux
}
