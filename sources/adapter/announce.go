package adapter

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/uuid"
	"k8s.io/client-go/rest"
	eventingadapter "knative.dev/eventing/pkg/adapter/v2"
)

// Types of the events that tell of a remote cluster.
const (
	TypeConnected    = "dev.slipway.cluster.connected"
	TypeDisconnected = "dev.slipway.cluster.disconnected"
)

// ExtensionCluster names the remote cluster that an event came from.
const ExtensionCluster = "cluster"

const (
	// pulse is how often a remote cluster is asked whether it is there, and how
	// long it may take to answer.
	pulse = 10 * time.Second
	// patience is how many answers in a row must fail before it counts as gone.
	patience = 3
)

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

// announce tells the sink when the remote cluster can be reached and when it
// cannot, until ctx is done.
func (s *Source) announce(ctx context.Context, cluster Cluster, client rest.Interface, log *slog.Logger) {
	state := presence{}
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	for {
		if eventType := state.observe(reachable(ctx, client)); eventType != "" && ctx.Err() == nil {
			log.Info("a remote cluster came or went", "type", eventType)
			if err := s.send(ctx, s.config.clusterEvent(eventType, cluster)); err != nil {
				log.Warn("cannot announce a remote cluster", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func reachable(ctx context.Context, client rest.Interface) bool {
	ctx, cancel := context.WithTimeout(ctx, pulse)
	defer cancel()
	return client.Get().AbsPath("/version").Do(ctx).Error() == nil
}

// presence is what is known of a remote cluster's being there.
type presence struct {
	connected bool
	failures  int
}

// observe takes one observation and returns the type of the event that it is
// worth, if any.
func (p *presence) observe(reached bool) string {
	if reached {
		p.failures = 0
		if p.connected {
			return ""
		}
		p.connected = true
		return TypeConnected
	}
	p.failures++
	if !p.connected || p.failures < patience {
		return ""
	}
	p.connected = false
	return TypeDisconnected
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
