package adapter

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// watchSecrets watches the Secrets of exactly these namespaces, or of all if the
// provider's lie everywhere: those with the provider's label, and their names only.
// What is in them is read by name when it is needed. Without the right to do so,
// changes are seen when all Secrets are read.
func (f *finder) watchSecrets(ctx context.Context, namespaces map[string]bool) {
	if f.provider.everywhere && len(namespaces) > 0 {
		namespaces = map[string]bool{metav1.NamespaceAll: true}
	}
	for namespace, cancel := range f.watches {
		if !namespaces[namespace] {
			cancel()
			delete(f.watches, namespace)
		}
	}
	for namespace := range namespaces {
		if f.watches[namespace] == nil {
			ctx, cancel := context.WithCancel(ctx)
			f.watches[namespace] = cancel
			f.labelled(ctx, namespace)
		}
	}
}

func (f *finder) watchSecretsOf(ctx context.Context, client metadata.Interface, namespace string) {
	informer := metadatainformer.NewFilteredMetadataInformer(client, secrets, namespace, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.LabelSelector = f.provider.label
	}).Informer()
	log := f.log.With("namespace", namespace)
	// These fail only for an informer that runs already.
	_ = quiet(informer, log, "cannot watch Secrets: a changed kubeconfig is noticed late")
	_ = informer.SetTransform(nameOnly)
	_, _ = informer.AddEventHandler(always(f.touch))
	go informer.RunWithContext(ctx)
}

// touch notes a changed Secret.
func (f *finder) touch(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	secret, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	f.mu.Lock()
	f.touched[secretName{secret.Namespace, secret.Name}] = true
	f.mu.Unlock()
	f.poke()
}
