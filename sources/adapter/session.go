package adapter

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
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

// session is a cluster and the one HTTP client that everything on it shares.
type session struct {
	cluster Cluster
	client  *http.Client
	log     *slog.Logger
	// pace holds back the cluster's events; nil for one that is trusted.
	pace *rate.Limiter
}

func (s session) discovery() (*discovery.DiscoveryClient, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(s.cluster.Config, s.client)
	if err != nil {
		return nil, fmt.Errorf("cannot make a discovery client: %w", err)
	}
	return client, nil
}

func (s session) metadata() (metadata.Interface, error) {
	client, err := metadata.NewForConfigAndClient(metadata.ConfigFor(s.cluster.Config), s.client)
	if err != nil {
		return nil, fmt.Errorf("cannot make a metadata client: %w", err)
	}
	return client, nil
}

// definitions watches the CustomResourceDefinitions for the followers.
func (s session) definitions(followers ...*follower) (cache.SharedIndexInformer, error) {
	client, err := s.metadata()
	if err != nil {
		return nil, err
	}
	informer := metadatainformer.NewSharedInformerFactory(client, 0).ForResource(definitions).Informer()
	if err := quiet(informer, s.log, "cannot watch CustomResourceDefinitions"); err != nil {
		return nil, err
	}
	// Their names are all that is needed, and there may be hundreds.
	if err := informer.SetTransform(nameOnly); err != nil {
		return nil, fmt.Errorf("cannot watch CustomResourceDefinitions: %w", err)
	}
	for _, follow := range followers {
		if _, err := informer.AddEventHandler(follow.onDefinition()); err != nil {
			return nil, fmt.Errorf("cannot watch CustomResourceDefinitions: %w", err)
		}
	}
	return informer, nil
}

// quiet logs the first failure of an informer and keeps the many repetitions for
// whoever wants all lines.
func quiet(informer cache.SharedIndexInformer, log *slog.Logger, message string) error {
	var once sync.Once
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		level := slog.LevelDebug
		once.Do(func() { level = slog.LevelWarn })
		log.Log(ctx, level, message, "error", err)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", message, err)
	}
	return nil
}

func nameOnly(obj any) (any, error) {
	whole, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: whole.Namespace, Name: whole.Name, ResourceVersion: whole.ResourceVersion,
	}}, nil
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
		if group, ours := f.resources.groupOf(definition.Name); ours {
			f.notify(group)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, obj any) { changed(obj) },
		DeleteFunc: changed,
	}
}
