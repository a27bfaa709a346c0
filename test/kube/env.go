package kubetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/deploy/local/kube"
)

// Env is an API server for tests.
type Env struct {
	// Config is the administrator's; copy it before changing it.
	Config *rest.Config
	// Cluster is what runs.
	Cluster *kube.Cluster
	// Client is the administrator's.
	Client dynamic.Interface

	root string

	mu      sync.Mutex
	applied map[string]bool
	manager bool
}

// provide puts in place what the options ask for and what is not there yet. The
// controller manager comes last: it learns of later definitions only after a while.
func (e *Env) provide(ctx context.Context, opts Options) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	objs := opts.Objects
	for _, file := range opts.Files {
		read, err := kube.ReadFiles(filepath.Join(e.root, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		objs = append(objs[:len(objs):len(objs)], read...)
	}
	var missing []*unstructured.Unstructured
	for _, obj := range objs {
		content, err := obj.MarshalJSON()
		if err != nil {
			return fmt.Errorf("cannot encode %s %q for the test server: %w", obj.GetKind(), obj.GetName(), err)
		}
		if !e.applied[string(content)] {
			e.applied[string(content)] = true
			missing = append(missing, obj)
		}
	}
	if err := kube.Apply(ctx, e.Config, missing...); err != nil {
		return err
	}
	if !opts.ControllerManager || e.manager {
		return nil
	}
	e.manager = true
	return e.Cluster.StartControllerManager(ctx)
}

// Remote starts a second API server, on the same etcd, that plays a remote cluster
// until the test ends. The package's first call of [Start] must have asked for as
// many servers as run at once.
func (e *Env) Remote(tb testing.TB, opts Options) *Env {
	tb.Helper()
	if pkg.servers < 2 {
		tb.Fatalf("cannot start a remote cluster: the package's first kubetest.Start asked for %d servers; set Options.Servers to 2", pkg.servers)
	}
	remote, err := newEnv(tb.Context(), e.root, tb.TempDir(), e.Cluster.EtcdURL, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(remote.Cluster.Stop)
	return remote
}

// Namespace makes a namespace for one test. It is not removed: the server goes with
// the package.
func (e *Env) Namespace(tb testing.TB) string {
	tb.Helper()
	name := "t-" + random()
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Namespace",
		"metadata":   map[string]any{"name": name},
	}}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if _, err := e.Client.Resource(namespaces).Create(tb.Context(), obj, metav1.CreateOptions{}); err != nil {
		tb.Fatalf("cannot make a namespace for the test: %v", err)
	}
	return name
}

// As returns the configuration of a ServiceAccount, by a token of its own: it has
// the account's rights and no others. The account has to exist.
func (e *Env) As(tb testing.TB, namespace, serviceAccount string) *rest.Config {
	tb.Helper()
	token, err := kube.Token(tb.Context(), e.Config, namespace, serviceAccount)
	if err != nil {
		tb.Fatal(err)
	}
	config := rest.AnonymousClientConfig(e.Config)
	config.BearerToken, config.QPS = token, -1
	return config
}

// Impersonate returns the administrator's configuration that acts with the rights
// of a ServiceAccount, whether the account exists or not.
func (e *Env) Impersonate(namespace, serviceAccount string) *rest.Config {
	config := rest.CopyConfig(e.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + serviceAccount,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	return config
}

func random() string {
	raw := make([]byte, 5)
	// It never fails: the package documents that it ends the program instead.
	_, _ = rand.Read(raw)
	return hex.EncodeToString(raw)
}
