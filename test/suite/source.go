package suite

import (
	"context"
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
)

// Source turns the changes of a world into events and delivers them, each on its
// own, as sources and broker do.
type Source struct {
	once sync.Once
	stop func()
}

// Stop ends the source when what was sent is done. Later changes give no event.
func (s *Source) Stop() { s.once.Do(s.stop) }

// Source delivers to a copy what its declaration says that it is woken by. On a
// remote world, events are marked with the cluster's name.
func (w *World) Source(c *Copy, cluster ...string) *Source {
	w.TB.Helper()
	var watching, delivering sync.WaitGroup
	var watches []watch.Interface
	slots := make(chan struct{}, max(c.Spec().Concurrency, 1))
	seen := map[string]bool{}
	for _, declared := range c.Spec().Watches {
		res := declared.Resource
		if key := res.String() + declared.Selector; seen[key] || (len(cluster) > 0 && !declared.Remote) {
			continue
		}
		seen[res.String()+declared.Selector] = true
		stream, err := w.In(res).Watch(context.Background(), metav1.ListOptions{LabelSelector: declared.Selector})
		if err != nil {
			w.TB.Fatal(err)
		}
		watches = append(watches, stream)
		watching.Go(func() {
			for e := range stream.ResultChan() {
				obj, ok := e.Object.(*unstructured.Unstructured)
				if !ok || e.Type == watch.Bookmark || e.Type == watch.Error || !owned(obj, declared.Owner) {
					continue
				}
				what := map[watch.EventType]string{watch.Added: "add", watch.Modified: "update", watch.Deleted: "delete"}[e.Type]
				ce := Changed(what, res.APIVersion(), res.Kind, obj.GetNamespace(), obj.GetName())
				for _, name := range cluster {
					ce.SetExtension(event.ExtCluster, name)
				}
				slots <- struct{}{}
				delivering.Go(func() {
					defer func() { <-slots }()
					for range 5 {
						if c.Send(ce) != http.StatusServiceUnavailable {
							return
						}
					}
				})
			}
		})
	}
	s := &Source{stop: func() {
		for _, stream := range watches {
			stream.Stop()
		}
		watching.Wait()
		delivering.Wait()
	}}
	w.TB.Cleanup(s.Stop)
	return s
}

// owned tells whether one of the kind owns the object; of no kind, whoever does.
func owned(obj *unstructured.Unstructured, by kind.Resource) bool {
	return by.Kind == "" || slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return by.Is(ref.APIVersion, ref.Kind)
	})
}
