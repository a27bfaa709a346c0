package stack

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"knative.dev/eventing/pkg/adapter/mtping"
	eventingadapter "knative.dev/eventing/pkg/adapter/v2"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/eventing/pkg/apis/feature"
	"knative.dev/eventing/pkg/auth"
	"knative.dev/eventing/pkg/broker"
	"knative.dev/eventing/pkg/broker/filter"
	"knative.dev/eventing/pkg/broker/ingress"
	brokerinformer "knative.dev/eventing/pkg/client/injection/informers/eventing/v1/broker"
	triggerinformer "knative.dev/eventing/pkg/client/injection/informers/eventing/v1/trigger"
	eventpolicyinformer "knative.dev/eventing/pkg/client/injection/informers/eventing/v1alpha1/eventpolicy"
	subscriptioninformer "knative.dev/eventing/pkg/client/injection/informers/messaging/v1/subscription"
	"knative.dev/eventing/pkg/eventingtls"
	"knative.dev/eventing/pkg/kncloudevents"
	"knative.dev/eventing/pkg/reconciler/apiserversource"
	mtbroker "knative.dev/eventing/pkg/reconciler/broker"
	mttrigger "knative.dev/eventing/pkg/reconciler/broker/trigger"
	"knative.dev/eventing/pkg/reconciler/eventpolicy"
	"knative.dev/eventing/pkg/reconciler/pingsource"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	configmapinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/configmap/filtered"
	filteredfactory "knative.dev/pkg/client/injection/kube/informers/factory/filtered"
	"knative.dev/pkg/configmap"
	cminformer "knative.dev/pkg/configmap/informer"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"

	"github.com/slipway-dev/slipway/deploy/local/eventing/channel"
	"github.com/slipway-dev/slipway/deploy/local/eventing/environment"
	"github.com/slipway-dev/slipway/deploy/local/eventing/function"
	"github.com/slipway-dev/slipway/deploy/local/eventing/kubelet"
	"github.com/slipway-dev/slipway/deploy/local/eventing/report"
)

// ttl is how many brokers an event may pass through, as in a cluster.
const ttl = 255

// threads is how many objects of a kind are reconciled at once.
const threads = 4

// knative is everything of Knative that runs in this process.
type knative struct {
	table       *channel.Table
	kubelet     *kubelet.Kubelet
	ingress     http.Handler
	filter      http.Handler
	channel     http.Handler
	controllers []*controller.Impl
	informers   []controller.Informer
	watcher     *cminformer.InformedWatcher
	ping        eventingadapter.Adapter
}

// injected is ctx with the clients and informers that Knative's constructors
// look for there.
func injected(ctx context.Context, config *rest.Config, log *zap.Logger) (context.Context, []controller.Informer) {
	ctx = logging.WithLogger(ctx, log.Sugar())
	ctx = filteredfactory.WithSelectors(ctx, auth.OIDCLabelSelector, eventingtls.TrustBundleLabelSelector)
	ctx = injection.WithConfig(ctx, config)
	return injection.Default.SetupInformers(ctx, config)
}

// assemble constructs everything of Knative; nothing runs yet. The context must
// come from injected.
func assemble(ctx context.Context, config *rest.Config, informers []controller.Informer, programs map[string]kubelet.Program, functions *function.Activator, reporter *report.Reporter, capacity int) (*knative, error) {
	log := logging.FromContext(ctx).Desugar()
	controller.DefaultThreadsPerController = threads
	watcher := cminformer.NewInformedWatcher(kubeclient.Get(ctx), environment.SystemNamespace)

	k := &knative{informers: informers, watcher: watcher, kubelet: kubelet.New(ctx, config, programs)}
	triggers := triggerinformer.Get(ctx).Lister()
	k.table = channel.NewTable(channel.Options{
		Dispatcher: kncloudevents.NewDispatcher(eventingtls.NewDefaultClientConfig(), nil),
		Trigger: func(name types.NamespacedName) (*eventingv1.Trigger, error) {
			return triggers.Triggers(name.Namespace).Get(name.Name)
		},
		Concurrency: functions.Concurrency,
		Capacity:    capacity,
		Report:      reporter,
		Log:         log,
	})
	if err := k.dataPlane(ctx, watcher, log); err != nil {
		return nil, err
	}
	k.ping = mtping.NewAdapter(ctx, mtping.NewEnvConfig(), nil)
	for _, construct := range []injection.ControllerConstructor{
		eventpolicy.NewController,
		mtbroker.NewController,
		mttrigger.NewController,
		apiserversource.NewController,
		pingsource.NewController,
		k.table.Channels,
		k.table.Subscriptions,
		k.kubelet.NewController,
		func(ctx context.Context, _ configmap.Watcher) *controller.Impl {
			return mtping.NewController(ctx, k.ping)
		},
	} {
		k.controllers = append(k.controllers, construct(ctx, watcher))
	}
	return k, nil
}

// dataPlane makes the handlers that events pass through.
func (k *knative) dataPlane(ctx context.Context, watcher configmap.Watcher, log *zap.Logger) error {
	features := feature.NewStore(log.Sugar().Named("feature-config-store"))
	features.WatchConfigs(watcher)
	bundles := configmapinformer.Get(ctx, eventingtls.TrustBundleLabelSelector).Lister().ConfigMaps(environment.SystemNamespace)
	tokens := auth.NewOIDCTokenProvider(ctx)
	verifier := auth.NewVerifier(ctx, eventpolicyinformer.Get(ctx).Lister(), bundles, watcher)

	in, err := ingress.NewHandler(log, broker.TTLDefaulter(log, ttl), brokerinformer.Get(ctx), verifier, tokens, bundles,
		features.ToContext, otel.GetMeterProvider(), otel.GetTracerProvider())
	if err != nil {
		return fmt.Errorf("cannot make the broker's ingress: %w", err)
	}
	out, err := filter.NewHandler(log, verifier, tokens, triggerinformer.Get(ctx), brokerinformer.Get(ctx), subscriptioninformer.Get(ctx),
		bundles, features.ToContext, otel.GetMeterProvider(), otel.GetTracerProvider())
	if err != nil {
		return fmt.Errorf("cannot make the broker's filter: %w", err)
	}
	gate := channel.NewGate(k.table)
	k.ingress, k.filter, k.channel = gate.Ingress(in), out, gate.Channel()
	return nil
}

// run runs the reconcilers and adapters until ctx is done. It calls serve when
// requests can be answered, and running when events are taken.
func (k *knative) run(ctx context.Context, serve, running func()) error {
	if err := k.watcher.Start(ctx.Done()); err != nil {
		return fmt.Errorf("cannot watch config maps in %q: %w", environment.SystemNamespace, err)
	}
	if err := startInformers(ctx, k.informers); err != nil {
		return err
	}
	existing, err := channel.Existing(ctx)
	if err != nil {
		return err
	}
	k.table.Await(existing)
	serve()
	go func() { _ = k.ping.Start(ctx) }()
	go func() {
		select {
		case <-ctx.Done():
		case <-k.table.Settled():
			running()
		}
	}()
	if err := controller.StartAll(ctx, k.controllers...); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot run the reconcilers: %w", err)
	}
	k.kubelet.Wait()
	return nil
}

// startInformers starts the informers and waits until they have read everything.
func startInformers(ctx context.Context, informers []controller.Informer) error {
	for _, informer := range informers {
		go informer.Run(ctx.Done())
	}
	// Short steps: the caches are full in milliseconds.
	for ctx.Err() == nil {
		missing := 0
		for _, informer := range informers {
			if !informer.HasSynced() {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
	return ctx.Err()
}
