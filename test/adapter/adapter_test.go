package adapter

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/deploy/local/kube"
)

const (
	connected    = "dev.slipway.cluster.connected"
	disconnected = "dev.slipway.cluster.disconnected"
)

var (
	kubevirtConfigs = schema.GroupVersionResource{Group: "vitistack.io", Version: "v1alpha1", Resource: "kubevirtconfigs"}
	accounts        = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

// TestAClusterComesChangesAndGoesWhileTheAdapterRuns is one story: each step goes
// on from the one before.
func TestAClusterComesChangesAndGoesWhileTheAdapterRuns(t *testing.T) {
	w := newWorld(t)
	here, there := w.management.Client, w.client(w.remote)

	t.Run("without Viti Stack the management cluster is watched, and nothing is complained of", func(t *testing.T) {
		w.t = t
		w.arrives(w.change(here), "")
		if strings.Contains(w.log.String(), `"WARN"`) {
			t.Errorf("the adapter complains:\n%s", w.log)
		}
	})
	t.Run("a KubevirtConfig brings its cluster's events, marked with its name", func(t *testing.T) {
		w.t = t
		definitions, err := kube.ReadFiles(filepath.Join(w.root, "api/vitistack/crds"))
		if err != nil {
			t.Fatal(err)
		}
		w.apply(definitions...)
		w.secret("east", w.kubeconfig("slipway"), true)
		w.config("east")
		w.announced("east", connected, 1)
		w.arrives(w.change(there), "east")
		w.arrives(w.change(here), "")
	})
	t.Run("clusters that cannot be used or do not answer harm nobody", func(t *testing.T) {
		w.t = t
		w.secret("program", []byte("{apiVersion: v1, kind: Config, users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: id}}}]}"), true)
		w.secret("garbage", []byte("hunter2: ["), true)
		w.secret("silent", kubeconfigFor(silent(t)), true)
		w.secret("dead", kubeconfigFor("https://127.0.0.1:1"), true)
		w.secret("unauthorized", []byte(strings.ReplaceAll(string(w.kubeconfig("slipway")), "token: ", "token: x")), true)
		for _, name := range []string{"program", "garbage", "silent", "dead", "unauthorized", "nosecret"} {
			w.config(name)
		}
		for _, refusal := range []string{`user \"u\" has the field exec`, "it cannot be read", "its Secret is not there"} {
			w.eventually("the refusal: "+refusal, func() string {
				if strings.Contains(w.log.String(), refusal) {
					return ""
				}
				return "it is not in the log"
			})
		}
		if strings.Contains(w.log.String(), "hunter2") {
			t.Error("the log tells what is in a Secret")
		}
		for range 20 {
			w.arrives(w.change(there), "east")
			w.arrives(w.change(here), "")
		}
	})
	t.Run("a rotated kubeconfig takes over, and the old one may be revoked", func(t *testing.T) {
		w.t = t
		if err := kube.Apply(t.Context(), w.remote.Config, object(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: `+system+`, name: second}}`),
			object(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: second},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: slipway-target}, subjects: [{kind: ServiceAccount, namespace: `+system+`, name: second}]}`)); err != nil {
			t.Fatal(err)
		}
		w.secret("east", w.kubeconfig("second"), true)
		w.announced("east", connected, 2)
		w.eventually("the old watches to end", func() string {
			if got := w.watches(); got != "1" {
				return got + " watches"
			}
			return ""
		})
		if err := there.Resource(accounts).Namespace(system).Delete(t.Context(), "slipway", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.arrives(w.change(there), "east")
	})
	t.Run("the API server of a cluster stops and starts again", func(t *testing.T) {
		w.t = t
		w.remote.Stop()
		w.announced("east", disconnected, 1)
		w.arrives(w.change(here), "")
		w.startRemote()
		w.announced("east", connected, 3)
		w.arrives(w.change(there), "east")
	})
	t.Run("a kubeconfig that is spoilt takes its cluster away, a good one without the label brings it back", func(t *testing.T) {
		w.t = t
		w.secret("east", []byte("spoilt"), true)
		w.announced("east", disconnected, 2)
		if err := here.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("default").Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.secret("east", w.kubeconfig("second"), false)
		w.announced("east", connected, 4)
		w.arrives(w.change(there), "east")
	})
	t.Run("a KubevirtConfig that is deleted ends the watches of its cluster", func(t *testing.T) {
		w.t = t
		if err := here.Resource(kubevirtConfigs).Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.announced("east", disconnected, 3)
		w.eventually("its watches to end", func() string {
			if got := w.watches(); got != "0" {
				return got + " watches"
			}
			return ""
		})
		lost := w.change(there)
		w.arrives(w.change(here), "")
		for _, e := range w.sink.all() {
			if e.Extensions()["name"] == lost {
				t.Errorf("an event of a cluster that is gone: %s", e)
			}
		}
	})
}

// silent is a server that takes connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return "https://" + listener.Addr().String()
}

func kubeconfigFor(server string) []byte {
	return []byte(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "` + server + `", insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: t}}]}`)
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("no port: %s", listener.Addr())
	}
	return address.Port
}
