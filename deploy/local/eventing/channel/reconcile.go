package channel

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	eventingduckv1 "knative.dev/eventing/pkg/apis/duck/v1"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/eventing/pkg/apis/feature"
	messagingv1 "knative.dev/eventing/pkg/apis/messaging/v1"
	"knative.dev/eventing/pkg/auth"
	eventpolicyinformer "knative.dev/eventing/pkg/client/injection/informers/eventing/v1alpha1/eventpolicy"
	channelinformer "knative.dev/eventing/pkg/client/injection/informers/messaging/v1/inmemorychannel"
	subscriptioninformer "knative.dev/eventing/pkg/client/injection/informers/messaging/v1/subscription"
	channelreconciler "knative.dev/eventing/pkg/client/injection/reconciler/messaging/v1/inmemorychannel"
	subscriptionreconciler "knative.dev/eventing/pkg/client/injection/reconciler/messaging/v1/subscription"
	eventingv1alpha1listers "knative.dev/eventing/pkg/client/listers/eventing/v1alpha1"
	"knative.dev/eventing/pkg/kncloudevents"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/kmeta"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"
	"knative.dev/pkg/resolver"

	"github.com/slipway-dev/slipway/deploy/local/eventing/names"
)

// Channels is the constructor of the controller that opens channels.
func (t *Table) Channels(ctx context.Context, watcher configmap.Watcher) *controller.Impl {
	features := feature.NewStore(logging.FromContext(ctx).Named("feature-config-store"))
	features.WatchConfigs(watcher)
	informer := channelinformer.Get(ctx)
	policies := eventpolicyinformer.Get(ctx)

	r := &channels{table: t, policies: policies.Lister()}
	impl := channelreconciler.NewImpl(ctx, r, func(*controller.Impl) controller.Options {
		return controller.Options{ConfigStore: features}
	})
	r.resolver = resolver.NewURIResolverFromTracker(ctx, impl.Tracker)
	handle(informer.Informer(), controller.HandleAll(impl.Enqueue))
	handle(informer.Informer(), cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if object, err := kmeta.DeletionHandlingAccessor(obj); err == nil {
			t.Close(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()})
		}
	}})
	kind := messagingv1.SchemeGroupVersion.WithKind("InMemoryChannel").GroupKind()
	handle(policies.Informer(), auth.EventPolicyEventHandler(informer.Informer().GetIndexer(), kind, impl.EnqueueKey))
	return impl
}

// handle registers a handler; that fails only for an informer that has stopped.
func handle(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
	_, _ = informer.AddEventHandler(handler)
}

type channels struct {
	table    *Table
	resolver *resolver.URIResolver
	policies eventingv1alpha1listers.EventPolicyLister
}

var _ channelreconciler.Interface = (*channels)(nil)

// ReconcileKind implements channelreconciler.Interface.
func (r *channels) ReconcileKind(ctx context.Context, channel *messagingv1.InMemoryChannel) reconciler.Event {
	r.table.Open(types.NamespacedName{Namespace: channel.Namespace, Name: channel.Name})

	channel.Status.MarkServiceTrue()
	channel.Status.MarkEndpointsTrue()
	channel.Status.MarkChannelServiceTrue()
	channel.Status.SetAddress(&duckv1.Addressable{URL: apis.HTTP(names.OfChannel(channel.Namespace, channel.Name))})

	if channel.Spec.Delivery == nil || channel.Spec.Delivery.DeadLetterSink == nil {
		channel.Status.MarkDeadLetterSinkNotConfigured()
	} else {
		sink, err := r.resolver.AddressableFromDestinationV1(ctx, *channel.Spec.Delivery.DeadLetterSink, channel)
		if err != nil {
			channel.Status.MarkDeadLetterSinkResolvedFailed("DeadLetterSinkNotResolved", "%v", err)
			return fmt.Errorf("cannot resolve the dead letter sink: %w", err)
		}
		channel.Status.MarkDeadLetterSinkResolvedSucceeded(eventingduckv1.NewDeliveryStatusFromAddressable(sink))
	}
	kind := messagingv1.SchemeGroupVersion.WithKind("InMemoryChannel")
	return auth.UpdateStatusWithEventPolicies(feature.FromContext(ctx), &channel.Status.AppliedEventPoliciesStatus,
		&channel.Status, r.policies, kind, channel.ObjectMeta)
}

// Subscriptions is the constructor of the controller that adds Triggers'
// subscriptions to channels.
func (t *Table) Subscriptions(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	informer := subscriptioninformer.Get(ctx)
	r := &subscriptions{table: t}
	impl := subscriptionreconciler.NewImpl(ctx, r)
	r.resolver = resolver.NewURIResolverFromTracker(ctx, impl.Tracker)
	handle(informer.Informer(), cache.FilteringResourceEventHandler{
		FilterFunc: controller.FilterController(&eventingv1.Trigger{}),
		Handler:    controller.HandleAll(impl.Enqueue),
	})
	handle(informer.Informer(), cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if object, err := kmeta.DeletionHandlingAccessor(obj); err == nil {
			name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
			t.Unsubscribe(name)
			t.Looked(name)
		}
	}})
	return impl
}

// Existing are the Triggers' subscriptions that exist. The context must hold a
// started informer.
func Existing(ctx context.Context) ([]types.NamespacedName, error) {
	all, err := subscriptioninformer.Get(ctx).Lister().List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("cannot list subscriptions: %w", err)
	}
	var names []types.NamespacedName
	for _, subscription := range all {
		if owner := metav1.GetControllerOf(subscription); owner != nil && owner.Kind == "Trigger" {
			names = append(names, types.NamespacedName{Namespace: subscription.Namespace, Name: subscription.Name})
		}
	}
	return names, nil
}

type subscriptions struct {
	table    *Table
	resolver *resolver.URIResolver
}

var _ subscriptionreconciler.Interface = (*subscriptions)(nil)

// ReconcileKind implements subscriptionreconciler.Interface.
func (r *subscriptions) ReconcileKind(ctx context.Context, subscription *messagingv1.Subscription) reconciler.Event {
	owner := metav1.GetControllerOf(subscription)
	if owner == nil || owner.Kind != "Trigger" {
		return nil
	}
	name := types.NamespacedName{Namespace: subscription.Namespace, Name: subscription.Name}
	// A subscription that cannot be resolved must not hold up the others.
	defer r.table.Looked(name)
	delivery, err := r.resolve(ctx, subscription)
	if err != nil {
		subscription.Status.MarkReferencesNotResolved("NotResolved", "%v", err)
		return err
	}
	subscription.Status.MarkReferencesResolved()

	namespace := subscription.Namespace
	r.table.Subscribe(
		types.NamespacedName{Namespace: namespace, Name: subscription.Spec.Channel.Name},
		name,
		types.NamespacedName{Namespace: namespace, Name: owner.Name},
		owner.UID, delivery)
	subscription.Status.MarkAddedToChannel()
	subscription.Status.MarkChannelReady()
	subscription.Status.MarkOIDCIdentityCreatedSucceededWithReason("NotSupported", "")
	return nil
}

// resolve turns every reference of the subscription into an address, and writes
// these to its status.
func (r *subscriptions) resolve(ctx context.Context, subscription *messagingv1.Subscription) (Delivery, error) {
	ctx = apis.WithinParent(ctx, subscription.ObjectMeta)
	physical := &subscription.Status.PhysicalSubscription

	target, err := r.address(ctx, subscription.Spec.Subscriber, subscription)
	if err != nil {
		return Delivery{}, fmt.Errorf("cannot resolve the subscriber: %w", err)
	}
	if target == nil {
		return Delivery{}, fmt.Errorf("cannot resolve the subscriber: there is none")
	}
	reply, err := r.address(ctx, subscription.Spec.Reply, subscription)
	if err != nil {
		return Delivery{}, fmt.Errorf("cannot resolve the reply: %w", err)
	}
	delivery := Delivery{Target: *target, Reply: reply, Retry: kncloudevents.NoRetries()}
	physical.SubscriberURI = target.URL
	physical.ReplyURI = nil
	if reply != nil {
		physical.ReplyURI = reply.URL
	}
	physical.DeliveryStatus = eventingduckv1.DeliveryStatus{}
	if subscription.Spec.Delivery == nil {
		return delivery, nil
	}
	delivery.Retry, err = kncloudevents.RetryConfigFromDeliverySpec(*subscription.Spec.Delivery)
	if err != nil {
		return Delivery{}, fmt.Errorf("cannot read the delivery: %w", err)
	}
	delivery.DeadLetter, err = r.address(ctx, subscription.Spec.Delivery.DeadLetterSink, subscription)
	if err != nil {
		return Delivery{}, fmt.Errorf("cannot resolve the dead letter sink: %w", err)
	}
	if delivery.DeadLetter != nil {
		physical.DeliveryStatus = eventingduckv1.NewDeliveryStatusFromAddressable(delivery.DeadLetter)
	}
	return delivery, nil
}

// address resolves one destination; nil if it is empty.
func (r *subscriptions) address(ctx context.Context, destination *duckv1.Destination, parent any) (*duckv1.Addressable, error) {
	if destination == nil || (destination.Ref == nil && destination.URI == nil) {
		return nil, nil
	}
	complete := destination.DeepCopy()
	complete.SetDefaults(ctx)
	return r.resolver.AddressableFromDestinationV1(ctx, *complete, parent)
}
