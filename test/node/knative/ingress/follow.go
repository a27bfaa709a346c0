package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"knative.dev/networking/pkg/apis/networking"
	"knative.dev/networking/pkg/apis/networking/v1alpha1"
	client "knative.dev/networking/pkg/client/clientset/versioned/typed/networking/v1alpha1"
)

// again is how long a failed request to the API server rests.
const again = 200 * time.Millisecond

// follower keeps the table in step with the Ingresses.
type follower struct {
	client client.NetworkingV1alpha1Interface
	routes *table
	log    *slog.Logger
	// class is the class of Ingresses to serve, address the name under which callers in
	// the cluster find this program.
	class, address string

	ingresses map[string]*v1alpha1.Ingress
}

// follow lists and watches until the context ends.
func (f *follower) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if err := f.once(ctx); err != nil && ctx.Err() == nil {
			f.log.Warn("start over", "reason", err.Error())
			pause(ctx)
		}
	}
}

func (f *follower) once(ctx context.Context) error {
	list, err := f.client.Ingresses("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot list Ingresses: %w", err)
	}
	f.ingresses = map[string]*v1alpha1.Ingress{}
	for i := range list.Items {
		f.keep(&list.Items[i])
	}
	f.routes.replace(f.ingresses)
	for _, ingress := range f.ingresses {
		f.mark(ctx, ingress)
	}
	watcher, err := f.client.Ingresses("").Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return fmt.Errorf("cannot watch Ingresses: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if err := f.take(ctx, event); err != nil {
			return err
		}
	}
	return errors.New("the watch ended")
}

func (f *follower) take(ctx context.Context, event watch.Event) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	ingress, ok := event.Object.(*v1alpha1.Ingress)
	if !ok {
		return nil
	}
	if event.Type == watch.Deleted {
		delete(f.ingresses, key(ingress))
		f.routes.replace(f.ingresses)
		return nil
	}
	if !f.keep(ingress) {
		return nil
	}
	// First the table: who sees the Ingress Ready calls at once.
	f.routes.replace(f.ingresses)
	f.mark(ctx, ingress)
	return nil
}

func key(ingress *v1alpha1.Ingress) string { return ingress.Namespace + "/" + ingress.Name }

// keep remembers an Ingress of our class, and tells whether it is one.
func (f *follower) keep(ingress *v1alpha1.Ingress) bool {
	if ingress.Annotations[networking.IngressClassAnnotationKey] != f.class {
		delete(f.ingresses, key(ingress))
		return false
	}
	f.ingresses[key(ingress)] = ingress
	return true
}

// mark says in the Ingress's status that it is served.
func (f *follower) mark(ctx context.Context, ingress *v1alpha1.Ingress) {
	for ctx.Err() == nil && !ingress.IsReady() {
		next := ingress.DeepCopy()
		here := []v1alpha1.LoadBalancerIngressStatus{{DomainInternal: f.address}}
		next.Status.InitializeConditions()
		next.Status.MarkNetworkConfigured()
		next.Status.MarkLoadBalancerReady(here, here)
		next.Status.ObservedGeneration = next.Generation
		_, err := f.client.Ingresses(next.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
		if err == nil || apierrors.IsNotFound(err) {
			return
		}
		f.log.Warn("cannot mark", "ingress", key(ingress), "reason", err.Error())
		pause(ctx)
		live, err := f.client.Ingresses(ingress.Namespace).Get(ctx, ingress.Name, metav1.GetOptions{})
		if err != nil || live.Generation != ingress.Generation {
			// A change of it is on its way here.
			return
		}
		ingress = live
	}
}

func pause(ctx context.Context) {
	timer := time.NewTimer(again)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
