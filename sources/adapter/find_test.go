package adapter

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// sought is a management cluster on which a finder looks for clusters.
type sought struct {
	*finder
	store cache.Store

	guard   sync.Mutex
	secrets map[string]string
	broken  bool
	reads   int
	added   map[string]string // by name: the server
	said    []string
	labels  map[string]bool
	version int
}

func seek(t *testing.T, test func(t *testing.T, s *sought)) {
	t.Helper()
	seekAs(t, ProviderKubevirtConfig, test)
}

// seekAs looks for the clusters of a provider.
func seekAs(t *testing.T, provider string, test func(t *testing.T, s *sought)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		settings := Remote{Provider: provider, Resources: testConfig.Resources}
		if err := settings.complete(); err != nil {
			t.Fatal(err)
		}
		s := &sought{
			finder: newFinder(settings, silentLog), store: cache.NewStore(cache.MetaNamespaceKeyFunc),
			secrets: map[string]string{}, added: map[string]string{}, labels: map[string]bool{},
		}
		s.secret, s.add, s.remove, s.labelled = s.read, s.plus, s.minus, s.label
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.run(ctx) }()
		test(t, s)
		cancel()
		<-done
		synctest.Wait()
	})
}

func (s *sought) read(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	s.guard.Lock()
	defer s.guard.Unlock()
	s.reads++
	if s.broken {
		return nil, errors.New("the API server is away")
	}
	content, ok := s.secrets[namespace+"/"+name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
	}
	return &corev1.Secret{Data: map[string][]byte{s.settings.Key: []byte(content)}}, nil
}

func (s *sought) plus(cluster Cluster) error {
	s.guard.Lock()
	defer s.guard.Unlock()
	s.added[cluster.Name] = cluster.Config.Host
	s.said = append(s.said, "add "+cluster.Name)
	return nil
}

func (s *sought) minus(_, name string) {
	s.guard.Lock()
	defer s.guard.Unlock()
	delete(s.added, name)
	s.said = append(s.said, "remove "+name)
}

func (s *sought) label(ctx context.Context, namespace string) {
	s.guard.Lock()
	defer s.guard.Unlock()
	s.labels[namespace] = true
	context.AfterFunc(ctx, func() {
		s.guard.Lock()
		defer s.guard.Unlock()
		delete(s.labels, namespace)
	})
}

// put writes a Secret; the empty content removes it.
func (s *sought) put(name, content string) {
	s.guard.Lock()
	defer s.guard.Unlock()
	if content == "" {
		delete(s.secrets, name)
		return
	}
	s.secrets[name] = content
}

// config writes a KubevirtConfig whose Secret has its name.
func (s *sought) config(name string, more ...string) {
	s.version++
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"kubeconfigSecretRef": name}}}
	object.SetName(name)
	object.SetResourceVersion(time.Duration(s.version).String())
	for i := 0; i+1 < len(more); i += 2 {
		_ = unstructured.SetNestedField(object.Object, more[i+1], "spec", more[i])
	}
	_ = s.store.Add(object)
}

// listed lets the finder know the KubevirtConfigs, as their watch would.
func (s *sought) listed() {
	s.mu.Lock()
	s.list = s.store
	s.mu.Unlock()
	s.poke()
}

// expect compares what the source was told since the last time.
func (s *sought) expect(t *testing.T, reason string, want ...string) {
	t.Helper()
	synctest.Wait()
	s.guard.Lock()
	defer s.guard.Unlock()
	if diff := cmp.Diff(want, s.said); diff != "" {
		t.Errorf("%s (-want +got):\n%s", reason, diff)
	}
	s.said = nil
}

func kubeconfigOf(server string) string {
	return `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "` + server + `"}}], users: [{name: u, user: {token: secret}}]}`
}

func TestClustersComeAndGoWithTheirKubevirtConfigs(t *testing.T) {
	seek(t, func(t *testing.T, s *sought) {
		s.put("default/east", kubeconfigOf("https://east"))
		s.put("elsewhere/west", kubeconfigOf("https://west"))
		s.expect(t, "nothing is known yet, so nothing is gone")
		s.config("east")
		s.config("west", "secretNamespace", "elsewhere")
		s.listed()
		s.expect(t, "both are there", "add east", "add west")
		if diff := cmp.Diff([]string{"default", "elsewhere"}, slices.Sorted(maps.Keys(s.labels))); diff != "" {
			t.Errorf("the Secrets of their namespaces are watched (-want +got):\n%s", diff)
		}
		_ = s.store.Delete(s.item(t, "west"))
		s.poke()
		s.expect(t, "one was deleted", "remove west")
		if s.labels["elsewhere"] {
			t.Error("the Secrets of a namespace that nobody names are still watched")
		}
		s.mu.Lock()
		s.list, s.gone = nil, true
		s.mu.Unlock()
		s.poke()
		s.expect(t, "the kind itself was deleted", "remove east")
	})
}

func (s *sought) item(t *testing.T, name string) any {
	t.Helper()
	item, ok, err := s.store.GetByKey(name)
	if err != nil || !ok {
		t.Fatalf("there is no %s: %v", name, err)
	}
	return item
}

func TestARotatedKubeconfigIsNoticed(t *testing.T) {
	seek(t, func(t *testing.T, s *sought) {
		s.put("default/east", kubeconfigOf("https://east"))
		s.config("east")
		s.listed()
		s.expect(t, "it is there", "add east")
		s.poke()
		s.expect(t, "nothing has changed")
		if s.reads != 1 {
			t.Errorf("the Secret was read %d times, want once", s.reads)
		}
		s.put("default/east", kubeconfigOf("https://east-2"))
		time.Sleep(30 * time.Second)
		s.expect(t, "no watch has told of it")
		time.Sleep(30 * time.Second)
		s.expect(t, "all Secrets are read each minute", "add east")
		s.put("default/east", kubeconfigOf("https://east-3"))
		s.touch(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "east"}})
		s.expect(t, "the watch of those with the label tells at once", "add east")
		s.config("east", "secretNamespace", "elsewhere")
		s.poke()
		s.expect(t, "its Secret is now another, which is not there", "remove east")
	})
}

func TestAKubeconfigThatCannotBeUsedHarmsNobodyElse(t *testing.T) {
	cases := map[string]string{
		"no Secret":     "",
		"no kubeconfig": "{",
		"no server":     kubeconfigOf(""),
		"a program":     "{apiVersion: v1, kind: Config, users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: id}}}]}",
	}
	for reason, content := range cases {
		seek(t, func(t *testing.T, s *sought) {
			s.put("default/east", kubeconfigOf("https://east"))
			s.put("default/bad", content)
			s.put("default/west", kubeconfigOf("https://west"))
			s.config("bad")
			s.config("east")
			s.config("west")
			s.listed()
			s.expect(t, reason, "add east", "add west")
			s.put("default/bad", kubeconfigOf("https://bad"))
			time.Sleep(time.Minute)
			s.expect(t, "it was mended", "add bad")
			s.put("default/bad", content)
			time.Sleep(time.Minute)
			s.expect(t, reason+", once more", "remove bad")
		})
	}
}

func TestAManagementClusterThatDoesNotAnswerTakesNothingAway(t *testing.T) {
	seek(t, func(t *testing.T, s *sought) {
		s.put("default/east", kubeconfigOf("https://east"))
		s.config("east")
		s.listed()
		s.expect(t, "it is there", "add east")
		s.guard.Lock()
		s.broken = true
		s.guard.Unlock()
		s.put("default/east", kubeconfigOf("https://east-2"))
		time.Sleep(5 * time.Minute)
		s.expect(t, "the Secret could not be read")
		s.guard.Lock()
		s.broken = false
		s.guard.Unlock()
		time.Sleep(retry)
		s.expect(t, "it could a moment later", "add east")
	})
}

func TestLocateKubevirtConfig(t *testing.T) {
	settings := Remote{Provider: ProviderKubevirtConfig, Resources: testConfig.Resources}
	if err := settings.complete(); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		namespace string
		spec      map[string]any
		want      location
		ok        bool
	}{
		"ClusterScoped":   {spec: map[string]any{"kubeconfigSecretRef": "s"}, want: location{cluster: "east", namespace: "default", secret: "s", key: "kubeconfig"}, ok: true},
		"SecretNamespace": {spec: map[string]any{"kubeconfigSecretRef": "s", "secretNamespace": "n"}, want: location{cluster: "east", namespace: "n", secret: "s", key: "kubeconfig"}, ok: true},
		"OurNamespace":    {namespace: "default", spec: map[string]any{"kubeconfigSecretRef": "s"}, want: location{cluster: "east", namespace: "default", secret: "s", key: "kubeconfig"}, ok: true},
		"Foreign":         {namespace: "tenant", spec: map[string]any{"kubeconfigSecretRef": "s"}},
		"Odd":             {spec: map[string]any{"kubeconfigSecretRef": int64(1), "secretNamespace": []any{}}, want: location{cluster: "east", namespace: "default", key: "kubeconfig"}, ok: true},
	}
	for name, tc := range cases {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": tc.spec}}
		object.SetName("east")
		object.SetNamespace(tc.namespace)
		got, ok := locateKubevirtConfig(settings, object)
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(location{})); diff != "" || ok != tc.ok {
			t.Errorf("%s: %v (-want +got):\n%s", name, ok, diff)
		}
	}
}
