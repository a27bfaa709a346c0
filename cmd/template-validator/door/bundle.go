package door

import (
	"bytes"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"
	certresources "knative.dev/pkg/webhook/certificates/resources"
)

// bundle keeps the API server's idea of who the webhook is in step with the Secret:
// caBundle of every webhook in the configuration, and nothing else there.
type bundle struct {
	reconciler.LeaderAwareFuncs
	namespace, secret, configuration string
	client                           kubernetes.Interface
	secrets                          corelisters.SecretLister
	configurations                   admissionlisters.ValidatingWebhookConfigurationLister
}

var (
	_ controller.Reconciler  = (*bundle)(nil)
	_ reconciler.LeaderAware = (*bundle)(nil)
)

func (b *bundle) controller(ctx context.Context, secrets cache.SharedIndexInformer, whole informers.SharedInformerFactory) *controller.Impl {
	const queue = "WebhookBundle"
	key := types.NamespacedName{Name: b.configuration}
	b.PromoteFunc = func(bucket reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
		enqueue(bucket, key)
		return nil
	}
	c := controller.NewContext(ctx, b, controller.ControllerOptions{WorkQueueName: queue, Logger: logging.FromContext(ctx).Named(queue)})
	again := controller.HandleAll(func(any) { c.EnqueueKey(key) })
	for _, informer := range []cache.SharedIndexInformer{secrets, whole.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer()} {
		if _, err := informer.AddEventHandler(again); err != nil {
			logging.FromContext(ctx).Errorw("cannot watch", "error", err.Error())
		}
	}
	return c
}

// Reconcile implements controller.Reconciler.
func (b *bundle) Reconcile(ctx context.Context, _ string) error {
	secret, err := b.secrets.Secrets(b.namespace).Get(b.secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read Secret %q: %w", b.secret, err)
	}
	authority := secret.Data[certresources.CACert]
	have, err := b.configurations.Get(b.configuration)
	if apierrors.IsNotFound(err) || len(authority) == 0 {
		return nil // the event that brings it comes
	}
	if err != nil {
		return fmt.Errorf("cannot read ValidatingWebhookConfiguration %q: %w", b.configuration, err)
	}
	want := have.DeepCopy()
	changed := false
	for i := range want.Webhooks {
		if config := &want.Webhooks[i].ClientConfig; !bytes.Equal(config.CABundle, authority) {
			config.CABundle, changed = authority, true
		}
	}
	if !changed {
		return nil
	}
	if _, err := b.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(ctx, want, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("cannot update ValidatingWebhookConfiguration %q: %w", b.configuration, err)
	}
	return nil
}
