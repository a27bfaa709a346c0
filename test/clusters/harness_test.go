package clusters

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stages"
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/serve"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

// Where the function runs, and where its accounts are on the clusters.
const (
	home    = "slipway-system"
	account = "machine-vm"
	// weak is an account on the remote cluster that may not make namespaces.
	weak = "weak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(kubetest.Main(m))
}

// world is a management cluster and a remote one.
type world struct {
	t          *testing.T
	management *kubetest.Env
	remote     *kubetest.Env
	// east is the way to the remote cluster.
	east *way
	host *reconcile.Host
	log  *buffer
	ns   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	rights := roles(t)
	w := &world{t: t, log: &buffer{}}
	w.management = kubetest.Start(t, kubetest.Options{
		Servers: 2, Objects: platform(t, rights), Files: []string{"api/vitistack/crds", "api/vitistack/v1alpha1/testdata/networknamespace-crd.yaml"},
	})
	// The credential on the remote cluster has the rights for targets only.
	target := slices.DeleteFunc(slices.Clone(rights), func(obj *unstructured.Unstructured) bool {
		return obj.GetKind() != "ServiceAccount" && !strings.HasSuffix(obj.GetName(), "-target")
	})
	w.remote = w.management.Remote(t, kubetest.Options{Objects: append(platform(t, target),
		parse(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: `+weak+`, namespace: `+home+`}}`))})
	server, err := url.Parse(w.remote.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	w.east = newWay(t, server.Host)
	w.ns = w.management.Namespace(t)
	w.start()
	return w
}

// start makes a copy of the function.
func (w *world) start() {
	w.t.Helper()
	env := map[string]string{"REMOTE_TIMEOUT": "1s"}
	settings, err := machinevm.ParseSettings(func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.host = reconcile.New(machinevm.Declare(settings), reconcile.Options{
		Config: w.management.As(w.t, home, account), Log: serve.Logger(w.log, "debug"),
		Parallel: settings.MaxConcurrentReconciles, RemoteTimeout: settings.RemoteTimeout,
	})
}

// roles are the function's account and rights, as generated.
func roles(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	objs, err := kube.ReadFiles(filepath.Join(root, "deploy", "base", "functions", "machine-vm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(objs, func(obj *unstructured.Unstructured) bool {
		return obj.GetKind() != "ServiceAccount" && !strings.HasPrefix(obj.GetAPIVersion(), "rbac.authorization.k8s.io")
	})
}

// platform is what stands on a cluster before the function comes.
func platform(t *testing.T, rights []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	definitions, err := crds.Load(t.Context(), crds.KubeVirt, crds.CDI, crds.Multus)
	if err != nil {
		t.Fatal(err)
	}
	classes, err := stages.Objects()
	if err != nil {
		t.Fatal(err)
	}
	namespace := parse(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+home+`}}`)
	return slices.Concat(definitions, []*unstructured.Unstructured{namespace}, classes, rights)
}

// credential is a kubeconfig of an account on the remote cluster, by the way
// that can be cut.
func (w *world) credential(name string) []byte {
	w.t.Helper()
	content, err := w.remote.Cluster.TokenKubeconfig(w.t.Context(), home, name)
	if err != nil {
		w.t.Fatal(err)
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + w.east.address
	}
	content, err = clientcmd.Write(*config)
	if err != nil {
		w.t.Fatal(err)
	}
	return content
}

// secret puts a kubeconfig into the Secret of a cluster.
func (w *world) secret(name string, kubeconfig []byte) {
	w.t.Helper()
	obj := parse(w.t, `{apiVersion: v1, kind: Secret, metadata: {name: `+name+`, namespace: default}}`)
	obj.Object["stringData"] = map[string]any{"kubeconfig": string(kubeconfig)}
	if err := kube.Apply(w.t.Context(), w.management.Config, obj); err != nil {
		w.t.Fatal(err)
	}
}

// config makes a KubevirtConfig whose Secret has its name. It goes with the test.
func (w *world) config(name string) {
	w.t.Helper()
	obj := parse(w.t, `{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: `+name+`}, spec: {name: `+name+`, kubeconfigSecretRef: `+name+`}}`)
	if _, err := w.management.Client.Resource(kinds.KubevirtConfigs.GVR()).Create(w.t.Context(), obj, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = w.management.Client.Resource(kinds.KubevirtConfigs.GVR()).Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

func (w *world) machine(name, spec string) {
	w.t.Helper()
	obj := parse(w.t, `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: `+name+`, namespace: `+w.ns+`}, spec: {template: small, `+spec+`}}`)
	if _, err := w.management.Client.Resource(kinds.Machines.GVR()).Namespace(w.ns).Create(w.t.Context(), obj, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// event hands the function the event of a Machine.
func (w *world) event(name string) int {
	ce := cloudevents.NewEvent()
	ce.SetID("test")
	ce.SetSource("https://test")
	ce.SetType("dev.knative.apiserver.ref.update")
	for key, value := range map[string]string{"apiversion": "vitistack.io/v1alpha1", "kind": "Machine", "namespace": w.ns, "name": name} {
		ce.SetExtension(key, value)
	}
	return w.send(ce)
}

// cluster hands it the adapter's event that a cluster came or went.
func (w *world) cluster(eventType, name string) int {
	ce := cloudevents.NewEvent()
	ce.SetID("test")
	ce.SetSource("https://test")
	ce.SetType(eventType)
	ce.SetExtension(event.ExtCluster, name)
	return w.send(ce)
}

func (w *world) resync() int {
	return w.send(event.Next(event.Resync{Function: machinevm.Name}, "resync", time.Now()))
}

func (w *world) send(ce cloudevents.Event) int {
	reply, err := w.host.Handle(context.WithoutCancel(w.t.Context()), ce)
	if reply != nil {
		return http.StatusOK
	}
	var result *cehttp.Result
	if !errors.As(err, &result) {
		return 0
	}
	return result.StatusCode
}

// settled wants an event to be answered with 204.
func (w *world) settled(name string) {
	w.t.Helper()
	for range 2 {
		if got := w.event(name); got != http.StatusNoContent {
			w.t.Fatalf("the event of Machine %q was answered %d; the log:\n%s", name, got, w.log)
		}
	}
}

// get reads an object of the test's namespace; nil if there is none.
func (w *world) get(env *kubetest.Env, res kind.Resource, name string) *unstructured.Unstructured {
	w.t.Helper()
	obj, err := env.Client.Resource(res.GVR()).Namespace(w.ns).Get(w.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return obj
}

func (w *world) must(env *kubetest.Env, res kind.Resource, name string) *unstructured.Unstructured {
	w.t.Helper()
	obj := w.get(env, res, name)
	if obj == nil {
		w.t.Fatalf("there is no %s %q; the log:\n%s", res.Kind, name, w.log)
	}
	return obj
}

// patch changes an object as others would.
func (w *world) patch(env *kubetest.Env, res kind.Resource, name, body string, sub ...string) {
	w.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := env.Client.Resource(res.GVR()).Namespace(w.ns).Patch(w.t.Context(), name, types.MergePatchType, raw, metav1.PatchOptions{}, sub...); err != nil {
		w.t.Fatal(err)
	}
}

// ready wants "status reason" of a Machine's condition Ready, and a text in its
// message.
func (w *world) ready(name, want, says string) {
	w.t.Helper()
	is, message := ready(w.must(w.management, kinds.Machines, name))
	if is != want || !strings.Contains(message, says) {
		w.t.Errorf("Machine %q is %q (%s), want %q (%s)", name, is, message, want, says)
	}
}

func ready(machine *unstructured.Unstructured) (is, message string) {
	conditions, _, _ := unstructured.NestedSlice(machine.Object, "status", "conditions")
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok && c["type"] == "Ready" {
			status, _ := c["status"].(string)
			reason, _ := c["reason"].(string)
			message, _ = c["message"].(string)
			return status + " " + reason, message
		}
	}
	return "", ""
}

func text(obj *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(obj.Object, path...)
	return value
}

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	objs, err := kube.Decode(strings.NewReader(manifest))
	if err != nil || len(objs) != 1 {
		t.Fatalf("%d objects, %v, in %s", len(objs), err, manifest)
	}
	return objs[0]
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

// awaitRights waits until an account of a cluster may list virtual machines:
// nothing tells when the authorizer has heard of a binding.
func (w *world) awaitRights(env *kubetest.Env, namespace, name string) {
	w.t.Helper()
	config := rest.CopyConfig(env.As(w.t, namespace, name))
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	for w.t.Context().Err() == nil {
		_, err := client.Resource(kinds.VirtualMachines.GVR()).List(w.t.Context(), metav1.ListOptions{Limit: 1})
		if err == nil {
			return
		}
		if !apierrors.IsForbidden(err) {
			w.t.Fatal(err)
		}
	}
}
