package function

import (
	"context"
	"fmt"
	"maps"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/controller"

	"github.com/slipway-dev/slipway/deploy/local/eventing/names"
)

// Services is the resource that functions are declared by.
var Services = schema.GroupVersionResource{Group: "serving.knative.dev", Version: "v1", Resource: "services"}

// again is when a Service is looked at again whose binary is missing.
const again = 3 * time.Second

// Controller keeps an Activator, and the status of Services, in line with the
// Services.
type Controller struct {
	client    dynamic.Interface
	informer  cache.SharedIndexInformer
	activator *Activator
	dir       string
	impl      *controller.Impl
}

// NewController makes a Controller of functions whose binaries are in dir.
func NewController(ctx context.Context, client dynamic.Interface, activator *Activator, dir string, log *zap.SugaredLogger) (*Controller, error) {
	c := &Controller{client: client, activator: activator, dir: dir}
	c.informer = dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(Services).Informer()
	c.impl = controller.NewContext(ctx, c, controller.ControllerOptions{WorkQueueName: "functions", Logger: log})
	if _, err := c.informer.AddEventHandler(controller.HandleAll(c.impl.Enqueue)); err != nil {
		return nil, fmt.Errorf("cannot watch %s: %w", Services.GroupResource(), err)
	}
	return c, nil
}

// Informer is what must be started before the controller.
func (c *Controller) Informer() controller.Informer { return c.informer }

// Impl is the controller to run.
func (c *Controller) Impl() *controller.Impl { return c.impl }

// Reconcile implements controller.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return controller.NewPermanentError(err)
	}
	object, exists, err := c.informer.GetStore().GetByKey(key)
	if err != nil {
		return err
	}
	function := types.NamespacedName{Namespace: namespace, Name: name}
	service, ok := object.(*unstructured.Unstructured)
	if !exists || !ok || service.GetDeletionTimestamp() != nil {
		c.activator.Remove(function)
		return nil
	}
	spec, err := Read(service, c.dir)
	if err != nil {
		c.activator.Remove(function)
		return c.writeStatus(ctx, service, "InvalidService", err)
	}
	c.activator.Set(spec)
	if err := spec.Present(); err != nil {
		c.impl.EnqueueKeyAfter(function, again)
		return c.writeStatus(ctx, service, "BinaryMissing", err)
	}
	return c.writeStatus(ctx, service, "", nil)
}

// writeStatus writes what Serving would: the address, and conditions that say
// whether there is something to run. Nothing is written if it says so already.
func (c *Controller) writeStatus(ctx context.Context, service *unstructured.Unstructured, reason string, problem error) error {
	before, _, err := unstructured.NestedMap(service.Object, "status")
	if err != nil {
		return controller.NewPermanentError(err)
	}
	url := "http://" + names.OfService(service.GetNamespace(), service.GetName())
	status := map[string]any{
		"observedGeneration": service.GetGeneration(),
		"url":                url,
		"address":            map[string]any{"url": url},
		"conditions":         conditions(before, reason, problem, time.Now()),
	}
	// The real one also names revisions; keep what others wrote.
	merged := maps.Clone(before)
	if merged == nil {
		merged = map[string]any{}
	}
	maps.Copy(merged, status)
	if equality.Semantic.DeepEqual(before, merged) {
		return nil
	}
	update := service.DeepCopy()
	if err := unstructured.SetNestedMap(update.Object, merged, "status"); err != nil {
		return controller.NewPermanentError(err)
	}
	_, err = c.client.Resource(Services).Namespace(service.GetNamespace()).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot write the status of %s %q: %w", Services.GroupResource(), service.GetName(), err)
	}
	return nil
}

// conditions are those that Serving gives a Service. A condition that has not
// changed keeps its time.
func conditions(before map[string]any, reason string, problem error, now time.Time) []any {
	old, _, _ := unstructured.NestedSlice(before, "conditions")
	var all []any
	for _, kind := range []string{"ConfigurationsReady", "Ready", "RoutesReady"} {
		condition := map[string]any{"type": kind, "status": "True"}
		if problem != nil && kind != "RoutesReady" {
			condition["status"] = "False"
			condition["reason"] = reason
			condition["message"] = problem.Error()
		}
		condition["lastTransitionTime"] = transition(old, condition, now)
		all = append(all, condition)
	}
	return all
}

func transition(old []any, condition map[string]any, now time.Time) string {
	for _, entry := range old {
		existing, ok := entry.(map[string]any)
		if !ok || existing["type"] != condition["type"] || existing["status"] != condition["status"] {
			continue
		}
		if at, ok := existing["lastTransitionTime"].(string); ok {
			return at
		}
	}
	return now.UTC().Format(time.RFC3339)
}
