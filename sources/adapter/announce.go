package adapter

import (
	"context"
	"fmt"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/uuid"
	"golang.org/x/time/rate"
	eventingadapter "knative.dev/eventing/pkg/adapter/v2"
)

// Types of the events that tell of a remote cluster.
const (
	TypeConnected    = "dev.slipway.cluster.connected"
	TypeDisconnected = "dev.slipway.cluster.disconnected"
)

// ExtensionCluster names the remote cluster that an event came from.
const ExtensionCluster = "cluster"

// sender sends one event to the sink.
type sender func(ctx context.Context, event cloudevents.Event) error

func newSender(config Config) (sender, error) {
	env := &eventingadapter.EnvConfig{
		Component: Component, Namespace: config.Namespace, Sink: config.Sink, EnvSinkTimeout: sinkTimeout,
	}
	client, err := eventingadapter.NewClient(eventingadapter.ClientConfig{Env: env})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for sink %q: %w", config.Sink, err)
	}
	return func(ctx context.Context, event cloudevents.Event) error {
		ctx = cloudevents.ContextWithRetriesExponentialBackoff(ctx, 50*time.Millisecond, 5)
		if result := client.Send(ctx, event); !cloudevents.IsACK(result) {
			return fmt.Errorf("cannot send event %q of type %s: %w", event.ID(), event.Type(), result)
		}
		return nil
	}, nil
}

// keeper makes what looks after a remote cluster until ctx is done.
func (s *Source) keeper(ctx context.Context, cluster Cluster, settings Remote) (*keeper, error) {
	log := s.log.With("cluster", cluster.Name, "provider", cluster.Provider, "server", cluster.Config.Host)
	timeout := settings.Timeout.Duration
	foreign := providers[settings.Provider].foreign
	client, err := connect(ctx, cluster.Config, timeout, foreign)
	if err != nil {
		return nil, err
	}
	probe, err := session{cluster: cluster, client: client, log: log}.discovery()
	if err != nil {
		return nil, err
	}
	return &keeper{
		settings: settings, log: log, begun: make(chan struct{}),
		probe: func(ctx context.Context) error { return probe.RESTClient().Get().AbsPath("/version").Do(ctx).Error() },
		send: func(ctx context.Context, eventType string) error {
			return s.send(ctx, s.config.clusterEvent(eventType, cluster))
		},
		watch: func(ctx context.Context, begun chan<- struct{}, lost func()) {
			// Connections of its own: those of before an outage are of no use.
			one := session{cluster: cluster, log: log}
			if foreign {
				one.pace = rate.NewLimiter(perSecond, atOnce)
			}
			var err error
			if one.client, err = connect(ctx, cluster.Config, timeout, foreign); err == nil {
				err = s.watch(ctx, one, settings.Resources, begun, lost)
			}
			if err != nil {
				log.Error("cannot watch a remote cluster", "error", err)
			}
		},
	}, nil
}

// watch watches a remote cluster until ctx is done.
func (s *Source) watch(ctx context.Context, one session, resources resources, begun chan<- struct{}, lost func()) error {
	follow, err := s.follow(one, resources, lost)
	if err != nil {
		return err
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	if resources.defined() {
		definitions, err := one.definitions(follow)
		if err != nil {
			return err
		}
		wait.Go(func() { definitions.RunWithContext(ctx) })
	}
	wait.Go(func() {
		select {
		case <-ctx.Done():
		case <-follow.begun:
			close(begun)
		}
	})
	follow.run(ctx)
	return nil
}

func (c Config) clusterEvent(eventType string, cluster Cluster) cloudevents.Event {
	event := cloudevents.NewEvent()
	event.SetID(uuid.NewString())
	event.SetType(eventType)
	event.SetSource(cluster.Config.Host)
	event.SetSubject(cluster.Name)
	for name, value := range c.extensions(cluster.Name) {
		event.SetExtension(name, value)
	}
	return event
}
