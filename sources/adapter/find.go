package adapter

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"knative.dev/eventing/pkg/adapter/apiserver"
)

const (
	// managementTimeout bounds one read of the management cluster.
	managementTimeout = 10 * time.Second
	// retry is when a read that failed is tried again.
	retry = 5 * time.Second
)

// finder finds the remote clusters of one provider on the management cluster, and
// keeps the source's in line with them as they come, change and go.
//
// Each look goes over all objects of the provider, and reads the Secrets of those
// that are new, changed, or whose Secret changed; once in a while it reads all of
// them. A kubeconfig that cannot be used takes its own cluster away, nothing else.
type finder struct {
	settings Remote
	provider provider
	log      *slog.Logger
	objects  dynamic.Interface
	// secret reads one Secret, labelled watches those with a label in a namespace.
	secret   func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	labelled func(ctx context.Context, namespace string)
	// add and remove are the source's.
	add    func(Cluster) error
	remove func(provider, name string)

	changed chan struct{}

	mu sync.Mutex
	// list holds the provider's objects; nil while it is not known, or when the
	// management cluster has no such kind any more.
	list cache.Store
	gone bool
	// touched are the Secrets that have changed.
	touched map[secretName]bool

	// The rest belongs to run alone.
	known   map[string]*found
	watches map[string]context.CancelFunc
}

type secretName struct{ namespace, name string }

// found is a cluster as it was last seen.
type found struct {
	// at is where its kubeconfig was; empty when the last look failed.
	at location
	// digest is of the kubeconfig in use; nil while the cluster is not watched.
	digest *[sha256.Size]byte
	// problem is why it is not, as it was logged.
	problem string
}

// find makes a finder of the provider's clusters, and the follower that tells it of
// their objects: the kind may come and go like any other.
func (s *Source) find(one session, settings Remote) (*finder, *follower, error) {
	discovery, err := one.discovery()
	if err != nil {
		return nil, nil, err
	}
	objects, err := dynamic.NewForConfigAndClient(one.cluster.Config, one.client)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a dynamic client: %w", err)
	}
	core, err := kubernetes.NewForConfigAndClient(one.cluster.Config, one.client)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a client: %w", err)
	}
	names, err := one.metadata()
	if err != nil {
		return nil, nil, err
	}
	f := newFinder(settings, one.log.With("provider", settings.Provider))
	f.objects, f.add = objects, s.Add
	f.labelled = func(ctx context.Context, namespace string) { f.watchSecretsOf(ctx, names, namespace) }
	// A cluster takes its time to end; the others must not wait for that.
	f.remove = func(provider, name string) { s.drop(provider, name) }
	f.secret = func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		return core.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	return f, newFollower(resources{f.provider.resource}, discovery, f.watch, f.log), nil
}

func newFinder(settings Remote, log *slog.Logger) *finder {
	return &finder{
		settings: settings, provider: providers[settings.Provider], log: log,
		changed: make(chan struct{}, 1), touched: map[secretName]bool{},
		known: map[string]*found{}, watches: map[string]context.CancelFunc{},
	}
}

// watch lists and watches the provider's objects until ctx is done. It is a
// receiver: a follower runs it while the kind is served.
func (f *finder) watch(ctx context.Context, _ unit, watches []apiserver.ResourceWatch, watching func()) error {
	informer := dynamicinformer.NewFilteredDynamicInformer(f.objects, watches[0].GVR, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	if err := quiet(informer, f.log, "cannot watch what stands for remote clusters"); err != nil {
		return err
	}
	if err := informer.SetTransform(f.trim); err != nil {
		return fmt.Errorf("cannot watch %s: %w", f.provider.resource, err)
	}
	if _, err := informer.AddEventHandler(always(func(any) { f.poke() })); err != nil {
		return fmt.Errorf("cannot watch %s: %w", f.provider.resource, err)
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil
	}
	mine := informer.GetStore()
	f.mu.Lock()
	f.list, f.gone = mine, false
	f.mu.Unlock()
	f.poke()
	watching()
	<-ctx.Done()
	f.mu.Lock()
	defer f.mu.Unlock()
	// A successor, of another version, may have come.
	if f.list == mine {
		f.list, f.gone = nil, true
		f.poke()
	}
	return nil
}

// trim leaves of an object what is looked at: there may be many, and large ones.
func (f *finder) trim(obj any) (any, error) {
	whole, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	content := whole.Object
	if f.provider.keep != nil {
		content = f.provider.keep(whole)
	}
	kept := &unstructured.Unstructured{Object: content}
	namespace, name, version, going := whole.GetNamespace(), whole.GetName(), whole.GetResourceVersion(), whole.GetDeletionTimestamp()
	kind := whole.GroupVersionKind()
	delete(kept.Object, "metadata")
	kept.SetGroupVersionKind(kind)
	kept.SetNamespace(namespace)
	kept.SetName(name)
	kept.SetResourceVersion(version)
	kept.SetDeletionTimestamp(going)
	return kept, nil
}

func always(do func(obj any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{AddFunc: do, UpdateFunc: func(_, obj any) { do(obj) }, DeleteFunc: do}
}

func (f *finder) poke() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// run keeps the clusters in line until ctx is done.
func (f *finder) run(ctx context.Context) {
	refresh := time.NewTicker(f.settings.Refresh.Duration)
	defer refresh.Stop()
	again := time.NewTimer(retry)
	defer again.Stop()
	for {
		all := false
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
		case <-again.C:
		case <-refresh.C:
			all = true
		}
		if f.look(ctx, all) {
			again.Reset(retry)
		}
	}
}

// look goes over all objects once. It tells whether something should be tried again
// soon.
func (f *finder) look(ctx context.Context, all bool) (again bool) {
	f.mu.Lock()
	list, gone, touched := f.list, f.gone, f.touched
	f.touched = map[secretName]bool{}
	f.mu.Unlock()
	if list == nil && !gone {
		return false
	}
	here, namespaces := map[string]bool{}, map[string]bool{}
	for _, object := range sorted(list) {
		at, ok := f.provider.locate(f.settings, object)
		if !ok || here[at.cluster] {
			continue
		}
		here[at.cluster], namespaces[at.namespace] = true, true
		before := f.known[at.cluster]
		if before == nil {
			before = &found{}
			f.known[at.cluster] = before
		}
		if !all && before.at == at && !touched[secretName{at.namespace, at.secret}] {
			continue
		}
		before.at = at
		if !f.bring(ctx, at, before) {
			before.at, again = location{}, true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.known)) {
		if here[name] {
			continue
		}
		if f.known[name].digest != nil {
			f.log.Info("a remote cluster is gone", "cluster", name)
			f.remove(f.settings.Provider, name)
		}
		delete(f.known, name)
	}
	f.watchSecrets(ctx, namespaces)
	return again
}

func sorted(list cache.Store) []*unstructured.Unstructured {
	if list == nil {
		return nil
	}
	var objects []*unstructured.Unstructured
	for _, key := range slices.Sorted(slices.Values(list.ListKeys())) {
		item, _, _ := list.GetByKey(key)
		if object, ok := item.(*unstructured.Unstructured); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// bring makes the source watch a cluster by the kubeconfig that is now in its
// Secret; false: nothing could be learned, and what runs goes on.
func (f *finder) bring(ctx context.Context, at location, seen *found) bool {
	content, err := f.kubeconfig(ctx, at)
	if undecided := (*undecidedError)(nil); errors.As(err, &undecided) {
		f.log.Warn("cannot read the kubeconfig of a remote cluster", "cluster", at.cluster, "error", err)
		return false
	}
	digest := sha256.Sum256(content)
	if err == nil && seen.digest != nil && *seen.digest == digest {
		return true
	}
	cluster := Cluster{Provider: f.settings.Provider, Name: at.cluster}
	if err == nil {
		cluster.Config, err = parseKubeconfig(content)
	}
	if err == nil {
		err = f.add(cluster)
	}
	if err != nil {
		f.refuse(at, seen, err)
		return true
	}
	f.log.Info("a remote cluster was found", "cluster", at.cluster, "at", cluster.Config.Host)
	seen.digest, seen.problem = &digest, ""
	return true
}

// refuse leaves a cluster whose kubeconfig cannot be used.
func (f *finder) refuse(at location, seen *found, err error) {
	if err.Error() != seen.problem {
		f.log.Warn("a remote cluster cannot be watched", "cluster", at.cluster, "secret", at.namespace+"/"+at.secret, "error", err)
	}
	seen.problem = err.Error()
	if seen.digest != nil {
		seen.digest = nil
		f.remove(f.settings.Provider, at.cluster)
	}
}

// undecidedError is a failure that says nothing about the cluster.
type undecidedError struct{ error }

// Unwrap returns the failure.
func (e *undecidedError) Unwrap() error { return e.error }

func (f *finder) kubeconfig(ctx context.Context, at location) ([]byte, error) {
	if at.secret == "" {
		return nil, errors.New("it names no Secret with a kubeconfig")
	}
	ctx, cancel := context.WithTimeout(ctx, managementTimeout)
	defer cancel()
	secret, err := f.secret(ctx, at.namespace, at.secret)
	if apierrors.IsNotFound(err) {
		return nil, errors.New("its Secret is not there")
	}
	if err != nil {
		return nil, &undecidedError{err}
	}
	content, ok := secret.Data[at.key]
	if !ok {
		return nil, fmt.Errorf("its Secret has no key %q", at.key)
	}
	return content, nil
}
