// Package kubelet runs the pods that Knative's sources would have, without pods.
//
// An ApiServerSource asks for a Deployment with one container, the receive
// adapter. Here that adapter runs inside this process, configured by the very
// environment that the container would get, and acting as the Deployment's
// service account, so that its permissions are those of a cluster. A new
// generation overlaps the old one until it watches, as in a rolling update.
// The Deployment's status says what it would say with a pod at work; it is
// available when the adapter watches, since what changes before gives no event.
//
// The PingSource's adapter is one for all sources and is part of this process
// anyway; its Deployment gets the status only. A Deployment for whose container
// there is a [Program] is run by that, in the same way. Others are left alone.
package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	deploymentinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/deployment"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/slipway-dev/slipway/sources/adapter"

	"github.com/slipway-dev/slipway/deploy/local/eventing/environment"
)

const (
	// PingAdapter is the Deployment of the PingSource's adapter.
	PingAdapter = "pingsource-mt-adapter"

	receiveAdapter = "receive-adapter"
	// patience is how long an adapter may take to watch before it counts as
	// available all the same, and how long its predecessor waits for it: a
	// resource that does not exist is never watched.
	patience = 5 * time.Second
	// What ends is started again, ever later.
	firstPause, lastPause = time.Second, 10 * time.Second
)

// Program is what a container would run: it acts by config, calls available when
// it does its work, and returns when ctx is done.
type Program func(ctx context.Context, config *rest.Config, available func()) error

// Kubelet runs receive adapters and programs.
type Kubelet struct {
	ctx         context.Context
	config      *rest.Config
	programs    map[string]Program
	client      kubernetes.Interface
	deployments appslisters.DeploymentLister
	log         *zap.Logger
	enqueue     func(types.NamespacedName)

	mu   sync.Mutex
	pods map[string]*pod
	wait sync.WaitGroup
}

// pod is a program at work.
type pod struct {
	template string
	cancel   context.CancelFunc
	// available is closed when it watches, or should.
	available chan struct{}
	once      sync.Once
}

// New makes a Kubelet whose adapters, and programs by the name of their container,
// run until ctx is done.
func New(ctx context.Context, config *rest.Config, programs map[string]Program) *Kubelet {
	return &Kubelet{ctx: ctx, config: config, programs: programs, pods: map[string]*pod{}}
}

// NewController is the constructor of the Kubelet's controller.
func (k *Kubelet) NewController(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	logger := logging.FromContext(ctx)
	k.log = logger.Desugar()
	k.client = kubeclient.Get(ctx)
	informer := deploymentinformer.Get(ctx)
	k.deployments = informer.Lister()
	impl := controller.NewContext(ctx, k, controller.ControllerOptions{WorkQueueName: "kubelet", Logger: logger})
	k.enqueue = impl.EnqueueKey
	// This fails only for an informer that has stopped.
	_, _ = informer.Informer().AddEventHandler(controller.HandleAll(impl.Enqueue))
	return impl
}

// Wait returns when all adapters have ended.
func (k *Kubelet) Wait() { k.wait.Wait() }

// Reconcile implements controller.Reconciler.
func (k *Kubelet) Reconcile(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return controller.NewPermanentError(err)
	}
	deployment, err := k.deployments.Deployments(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		k.stop(key)
		return nil
	}
	if err != nil {
		return err
	}
	owner := metav1.GetControllerOf(deployment)
	program := k.programOf(deployment)
	switch {
	case owner != nil && owner.Kind == "ApiServerSource":
		env, err := environmentOf(deployment)
		if err != nil {
			return err
		}
		text, err := json.Marshal(env)
		if err != nil {
			return controller.NewPermanentError(err)
		}
		return k.writeStatus(ctx, deployment, k.run(key, deployment, string(text), k.receiver(env)))
	case program != nil:
		return k.writeStatus(ctx, deployment, k.run(key, deployment, "", program))
	case namespace == environment.SystemNamespace && name == PingAdapter:
		return k.writeStatus(ctx, deployment, true)
	default:
		return nil
	}
}

// programOf is the program in place of a Deployment's container, if there is one.
func (k *Kubelet) programOf(deployment *appsv1.Deployment) Program {
	containers := deployment.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		return nil
	}
	return k.programs[containers[0].Name]
}

// receiver is the program of a receive adapter.
func (k *Kubelet) receiver(env adapter.Environment) Program {
	return func(ctx context.Context, config *rest.Config, available func()) error {
		return adapter.Receive(ctx, adapter.Cluster{Config: config}, env, k.log, available)
	}
}

// run starts the Deployment's program, in place of one of other settings, and tells
// whether it is available.
func (k *Kubelet) run(key string, deployment *appsv1.Deployment, settings string, program Program) bool {
	account := deployment.Spec.Template.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	template := account + settings

	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.pods[key]
	if before != nil && before.template == template {
		return before.isAvailable()
	}
	ctx, cancel := context.WithCancel(k.ctx)
	after := &pod{template: template, cancel: cancel, available: make(chan struct{})}
	k.pods[key] = after
	name := types.NamespacedName{Namespace: deployment.Namespace, Name: deployment.Name}
	available := func() {
		after.once.Do(func() {
			close(after.available)
			k.enqueue(name)
			if before != nil {
				before.cancel()
			}
		})
	}
	time.AfterFunc(patience, available)
	k.wait.Go(func() { k.keepRunning(ctx, key, k.as(deployment.Namespace, account), program, available) })
	return false
}

func (p *pod) isAvailable() bool {
	select {
	case <-p.available:
		return true
	default:
		return false
	}
}

// as is the API server's configuration for acting as a service account.
func (k *Kubelet) as(namespace, account string) *rest.Config {
	config := rest.CopyConfig(k.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	return config
}

// keepRunning runs a program, and again when it ends.
func (k *Kubelet) keepRunning(ctx context.Context, key string, config *rest.Config, program Program, available func()) {
	pause := firstPause
	for {
		started := time.Now()
		err := program(ctx, config, available)
		if ctx.Err() != nil {
			return
		}
		k.log.Warn("a program ended", zap.String("deployment", key), zap.Error(err))
		if time.Since(started) > lastPause {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

func (k *Kubelet) stop(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.pods[key]; p != nil {
		p.cancel()
		delete(k.pods, key)
	}
}

// environmentOf is what the container of the Deployment would find in its
// environment.
func environmentOf(deployment *appsv1.Deployment) (adapter.Environment, error) {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name != receiveAdapter {
			continue
		}
		env := adapter.Environment{}
		for _, variable := range container.Env {
			if value, set := value(deployment, variable); set {
				env[variable.Name] = value
			}
		}
		return env, nil
	}
	return nil, controller.NewPermanentError(fmt.Errorf("deployment %s/%s has no container %q", deployment.Namespace, deployment.Name, receiveAdapter))
}

func value(deployment *appsv1.Deployment, variable corev1.EnvVar) (string, bool) {
	switch {
	case variable.Name == "SYSTEM_NAMESPACE" || variable.Name == "METRICS_DOMAIN":
		// This process has them, and the same ones.
		return "", false
	case variable.ValueFrom == nil:
		return variable.Value, true
	case variable.ValueFrom.FieldRef != nil && variable.ValueFrom.FieldRef.FieldPath == "metadata.namespace":
		return deployment.Namespace, true
	default:
		return "", false
	}
}

// writeStatus says whether the Deployment's one pod is available.
func (k *Kubelet) writeStatus(ctx context.Context, deployment *appsv1.Deployment, available bool) error {
	replicas := int32(1)
	if deployment.Spec.Replicas != nil {
		replicas = *deployment.Spec.Replicas
	}
	condition := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue,
		Reason: "MinimumReplicasAvailable", Message: "Runs inside the local eventing process.",
	}
	update := deployment.DeepCopy()
	update.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: replicas, UpdatedReplicas: replicas,
		ReadyReplicas: replicas, AvailableReplicas: replicas,
	}
	if !available {
		condition.Status, condition.Reason = corev1.ConditionFalse, "MinimumReplicasUnavailable"
		condition.Message = "The receive adapter does not watch yet."
		update.Status.ReadyReplicas, update.Status.AvailableReplicas, update.Status.UnavailableReplicas = 0, 0, replicas
	}
	condition.LastTransitionTime = metav1.Now()
	condition.LastUpdateTime = condition.LastTransitionTime
	for _, old := range deployment.Status.Conditions {
		if old.Type == condition.Type && old.Status == condition.Status {
			condition.LastTransitionTime, condition.LastUpdateTime = old.LastTransitionTime, old.LastUpdateTime
		}
	}
	update.Status.Conditions = []appsv1.DeploymentCondition{condition}
	if equality.Semantic.DeepEqual(deployment.Status, update.Status) {
		return nil
	}
	_, err := k.client.AppsV1().Deployments(deployment.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot write the status of deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return nil
}
