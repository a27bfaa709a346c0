package adapter

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

const (
	// patience bounds every wait; nothing here is expected to take a tenth of it.
	patience = 60 * time.Second
	// system is where Slipway is installed.
	system = "slipway-system"
)

var virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(kubetest.Main(m))
}

// world is a management cluster, a target cluster, the adapter and its sink.
type world struct {
	t          *testing.T
	root       string
	management *kubetest.Env
	sink       *sink
	log        *buffer

	remote  *kube.Cluster
	options kube.Options
	count   int
}

// newManagement is a world with the management cluster alone, which knows some kinds.
func newManagement(t *testing.T, known string) (*world, []*unstructured.Unstructured) {
	t.Helper()
	w := &world{t: t, sink: newSink(t), log: &buffer{}}
	var err error
	if w.root, err = build.Root("."); err != nil {
		t.Fatal(err)
	}
	if err := build.Binaries(t.Context(), build.Options{Root: w.root, Out: os.Stderr}, "source-adapter"); err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Load(t.Context(), known)
	if err != nil {
		t.Fatal(err)
	}
	w.management = kubetest.Start(t, kubetest.Options{
		Servers: 2, Objects: append(definitions, object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+system+`}}`)),
		Files: []string{"sources/account.yaml"},
	})
	return w, definitions
}

func newWorld(t *testing.T) *world {
	t.Helper()
	// Of Viti Stack there is nothing yet.
	w, definitions := newManagement(t, crds.KubeVirt)
	target, err := kube.ReadFiles(filepath.Join(w.root, "deploy/target"))
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	w.options = kube.Options{
		Name: "remote", Binary: filepath.Join(w.root, build.DefaultBin, "kube"), Dir: t.TempDir(), Port: port,
		EtcdURL: w.management.Cluster.EtcdURL, EtcdPrefix: fmt.Sprintf("/remote-%d", port),
		Install: func(ctx context.Context, c *kube.Cluster) error {
			return kube.Apply(ctx, c.Config, append(definitions, target...)...)
		},
	}
	w.startRemote()
	t.Cleanup(func() { w.remote.Stop() })
	w.startAdapter()
	return w
}

// startRemote starts the target cluster, where it was before and with what it had.
func (w *world) startRemote() {
	w.t.Helper()
	var err error
	if w.remote, err = kube.Start(w.t.Context(), w.options); err != nil {
		w.t.Fatal(err)
	}
}

// startAdapter runs the adapter with the generated configuration and account; only
// its waits are shorter.
func (w *world) startAdapter() {
	w.t.Helper()
	objects, err := kube.ReadFiles(filepath.Join(w.root, "sources/adapter.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	text, _, _ := unstructured.NestedString(objects[0].Object, "data", "config.yaml")
	var config map[string]any
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		w.t.Fatal(err)
	}
	remote := config["remotes"].([]any)[0].(map[string]any)
	remote["heartbeat"], remote["timeout"], remote["refresh"] = "500ms", "2s", "3s"
	raw, err := yaml.Marshal(config)
	if err != nil {
		w.t.Fatal(err)
	}
	dir := w.t.TempDir()
	kubeconfig, err := w.management.Cluster.TokenKubeconfig(w.t.Context(), system, "source-adapter")
	if err != nil {
		w.t.Fatal(err)
	}
	for name, content := range map[string][]byte{"config.yaml": raw, "kubeconfig": kubeconfig} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), filepath.Join(w.root, build.DefaultBin, "source-adapter"),
		"--config", filepath.Join(dir, "config.yaml"), "--kubeconfig", filepath.Join(dir, "kubeconfig"),
		"--health-listen", fmt.Sprintf("127.0.0.1:%d", freePort(w.t)))
	cmd.Env = append(os.Environ(), "K_SINK="+w.sink.url)
	cmd.Stderr = w.log
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	t := w.t
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the adapter did not end well: %v", err)
		}
		if t.Failed() {
			t.Logf("what the adapter said:\n%s", w.log)
		}
	})
	w.eventually("the management cluster to be watched", func() string {
		if strings.Contains(w.log.String(), `"virtualmachines.v1"`) {
			return ""
		}
		return "its log does not say so: " + w.log.String()
	})
}

// kubeconfig is one of an account on the target cluster.
func (w *world) kubeconfig(account string) []byte {
	w.t.Helper()
	content, err := w.remote.TokenKubeconfig(w.t.Context(), system, account)
	if err != nil {
		w.t.Fatal(err)
	}
	return content
}

// secret writes the Secret of a cluster, with the label or without.
func (w *world) secret(name string, kubeconfig []byte, label bool) {
	w.t.Helper()
	obj := object(w.t, `{apiVersion: v1, kind: Secret, metadata: {namespace: default, name: `+name+`}}`)
	obj.Object["stringData"] = map[string]any{"kubeconfig": string(kubeconfig)}
	if label {
		obj.SetLabels(map[string]string{"slipway.dev/watch": "true"})
	}
	w.apply(obj)
}

// config makes a KubevirtConfig whose Secret has its name.
func (w *world) config(name string) {
	w.t.Helper()
	w.apply(object(w.t, `{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: `+name+`}, spec: {name: `+name+`, kubeconfigSecretRef: `+name+`}}`))
}

func (w *world) apply(objs ...*unstructured.Unstructured) {
	w.t.Helper()
	if err := kube.Apply(w.t.Context(), w.management.Config, objs...); err != nil {
		w.t.Fatal(err)
	}
}

// change creates a VirtualMachine on a cluster and returns its name, which is new
// each time.
func (w *world) change(client dynamic.Interface) string {
	w.t.Helper()
	w.count++
	name := fmt.Sprintf("vm-%d", w.count)
	vm := object(w.t, `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {namespace: default, name: `+name+`}, spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}}`)
	for {
		_, err := client.Resource(virtualMachines).Namespace("default").Create(w.t.Context(), vm, metav1.CreateOptions{})
		if err == nil {
			return name
		}
		// Right after a start.
		if !apierrors.IsServiceUnavailable(err) && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			w.t.Fatal(err)
		}
	}
}

func (w *world) client(c *kube.Cluster) dynamic.Interface {
	w.t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// arrives waits for the event of a change and wants it to name the cluster.
func (w *world) arrives(name, cluster string) {
	w.t.Helper()
	w.eventually("the event of "+name, func() string {
		for _, e := range w.sink.all() {
			if e.Extensions()["name"] != name {
				continue
			}
			if got := fmt.Sprint(e.Extensions()["cluster"]); got != cluster && (cluster != "" || got != "<nil>") {
				w.t.Fatalf("the event of %s names cluster %q, want %q", name, got, cluster)
			}
			if e.Type() != "dev.knative.apiserver.ref.add" || e.Extensions()["kind"] != "VirtualMachine" {
				w.t.Fatalf("wrong event: %s", e)
			}
			return ""
		}
		return "it has not come"
	})
}

// announced waits until the newest announcement of a cluster is of this type and
// there are so many of that type at least.
func (w *world) announced(cluster, eventType string, count int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s, %d times, of %s", eventType, count, cluster), func() string {
		var types []string
		for _, e := range w.sink.all() {
			if e.Extensions()["cluster"] == cluster && strings.HasPrefix(e.Type(), "dev.slipway.cluster.") {
				types = append(types, e.Type())
			}
		}
		if len(types) > 0 && types[len(types)-1] == eventType && strings.Count(strings.Join(types, ","), eventType) >= count {
			return ""
		}
		return fmt.Sprint(types)
	})
}

// watches is how many watches of VirtualMachines the target cluster serves.
func (w *world) watches() string {
	w.t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(w.remote.Config)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "apiserver_longrunning_requests{") && strings.Contains(line, `resource="virtualmachines"`) && strings.Contains(line, `verb="WATCH"`) {
			return strings.Fields(line)[1]
		}
	}
	return "0"
}

// eventually waits until check says nothing.
func (w *world) eventually(what string, check func() string) {
	w.t.Helper()
	tick, deadline := time.NewTicker(10*time.Millisecond), time.NewTimer(patience)
	defer tick.Stop()
	defer deadline.Stop()
	for {
		problem := check()
		if problem == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			w.t.Fatalf("waited in vain for %s: %s", what, problem)
		}
	}
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	objs, err := kube.Decode(strings.NewReader(manifest))
	if err != nil || len(objs) != 1 {
		t.Fatalf("%d objects, %v, in %s", len(objs), err, manifest)
	}
	return objs[0]
}

// sink keeps every event.
type sink struct {
	url    string
	mu     sync.Mutex
	events []cloudevents.Event
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		event, err := cloudevents.NewEventFromHTTPRequest(r)
		if err != nil {
			t.Errorf("what came is no event: %v", err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, *event)
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *sink) all() []cloudevents.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[:len(s.events):len(s.events)]
}

// buffer is a log that tests can read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
