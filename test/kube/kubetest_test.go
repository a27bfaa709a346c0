package kubetest_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/deploy/local/kube"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

// after is called when the servers have stopped.
type after struct {
	kubetest.Runner
	check func() int
}

func (a after) Run() int {
	code := a.Runner.Run()
	return max(code, a.check())
}

// started are the processes of the package's server.
var started struct {
	sync.Mutex
	dir  string
	pids []int
}

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(after{kubetest.Wrap(m), nothingIsLeft})
}

func nothingIsLeft() int {
	started.Lock()
	defer started.Unlock()
	for _, pid := range started.pids {
		if syscall.Kill(pid, 0) == nil {
			fmt.Fprint(os.Stderr, "a server's process is left after the package's tests\n")
			return 1
		}
	}
	if _, err := os.Stat(started.dir); started.dir != "" && err == nil {
		fmt.Fprint(os.Stderr, "the server's folder is left after the package's tests\n")
		return 1
	}
	return 0
}

func start(t *testing.T) *kubetest.Env {
	t.Helper()
	env := kubetest.Start(t, kubetest.Options{Servers: 2})
	started.Lock()
	defer started.Unlock()
	started.dir = env.Cluster.Dir
	if len(started.pids) == 0 {
		started.pids = env.Cluster.Pids()
	}
	return env
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func configMap(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"data":       map[string]any{"colour": "red"},
	}}
}

func client(t *testing.T, cfg *rest.Config) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRequestsAreRecordedAsRBACNamesThem(t *testing.T) {
	env := start(t)
	ns := env.Namespace(t)
	var requests kubetest.Requests
	maps := client(t, requests.Config(env.Config)).Resource(configMaps).Namespace(ns)
	steps := []func() error{
		func() error {
			_, err := maps.Create(t.Context(), configMap(ns, "one"), metav1.CreateOptions{})
			return err
		},
		func() error { _, err := maps.Get(t.Context(), "one", metav1.GetOptions{}); return err },
		func() error { _, err := maps.List(t.Context(), metav1.ListOptions{}); return err },
		func() error {
			_, err := maps.Apply(t.Context(), "one", configMap(ns, "one"), metav1.ApplyOptions{FieldManager: "test", Force: true, DryRun: []string{metav1.DryRunAll}})
			return err
		},
		func() error {
			_, err := maps.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"data":{"colour":"blue"}}`), metav1.PatchOptions{})
			return err
		},
		func() error { return maps.Delete(t.Context(), "one", metav1.DeleteOptions{}) },
		func() error {
			if _, err := maps.Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		},
	}
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	var all, writes []string
	for _, r := range requests.All() {
		all = append(all, strings.ReplaceAll(r.String(), ns, "NS"))
	}
	for _, r := range requests.Writes() {
		writes = append(writes, r.Verb)
	}
	want := []string{
		"create configmaps NS 201",
		"get configmaps NS/one 200",
		"list configmaps NS 200",
		"apply(dry run) configmaps NS/one 200",
		"patch configmaps NS/one 200",
		"delete configmaps NS/one 200",
		"get configmaps NS/one 404",
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("recorded requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"create", "patch", "delete"}, writes); diff != "" {
		t.Errorf("recorded writes, of which a dry run is none (-want +got):\n%s", diff)
	}
	requests.Reset()
	if left := requests.All(); len(left) != 0 {
		t.Errorf("after Reset %d requests are left", len(left))
	}
}

func TestParseRequest(t *testing.T) {
	cases := map[string]struct {
		reason, method, url, contentType string
		want                             kubetest.Request
	}{
		"a namespace": {
			reason: "a namespace is a resource itself",
			method: http.MethodGet, url: "/api/v1/namespaces/a",
			want: kubetest.Request{Verb: "get", Version: "v1", Resource: "namespaces", Name: "a"},
		},
		"a namespace's status": {
			reason: "a subresource of a namespace is no resource in it",
			method: http.MethodPut, url: "/api/v1/namespaces/a/status",
			want: kubetest.Request{Verb: "update", Version: "v1", Resource: "namespaces", Name: "a", Subresource: "status"},
		},
		"a watch across namespaces": {
			reason: "the watch parameter makes a list a watch",
			method: http.MethodGet, url: "/apis/g.io/v1/things?watch=true",
			want: kubetest.Request{Verb: "watch", Group: "g.io", Version: "v1", Resource: "things"},
		},
		"a status apply": {
			reason: "the content type tells an apply from other patches",
			method: http.MethodPatch, url: "/apis/g.io/v1/namespaces/a/things/b/status", contentType: "application/apply-patch+yaml",
			want: kubetest.Request{Verb: "patch", Group: "g.io", Version: "v1", Resource: "things", Namespace: "a", Name: "b", Subresource: "status", Apply: true},
		},
		"a delete of all": {
			reason: "RBAC has a verb of its own for it",
			method: http.MethodDelete, url: "/apis/g.io/v1/namespaces/a/things",
			want: kubetest.Request{Verb: "deletecollection", Group: "g.io", Version: "v1", Resource: "things", Namespace: "a"},
		},
		"discovery": {
			reason: "what is no resource has a path",
			method: http.MethodGet, url: "/apis/g.io/v1",
			want: kubetest.Request{Verb: "get", Path: "/apis/g.io/v1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tc.method, "https://127.0.0.1"+tc.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", tc.contentType)
			if diff := cmp.Diff(tc.want, kubetest.ParseRequest(req)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFaultsRefuseRequestsAndLoseAnswers(t *testing.T) {
	env := start(t)
	ns := env.Namespace(t)
	var faults kubetest.Faults
	maps := client(t, faults.Config(env.Config)).Resource(configMaps).Namespace(ns)
	present := func() bool {
		_, err := env.Client.Resource(configMaps).Namespace(ns).Get(t.Context(), "one", metav1.GetOptions{})
		return err == nil
	}
	create := func() error {
		_, err := maps.Create(t.Context(), configMap(ns, "one"), metav1.CreateOptions{})
		return err
	}

	faults.Before(func(req *http.Request) (*http.Response, error) {
		return kubetest.Answer(req, http.StatusConflict, metav1.StatusReasonConflict, "somebody was faster"), nil
	})
	if err := create(); !apierrors.IsConflict(err) {
		t.Errorf("a refused create gives %v, want Conflict", err)
	}
	if present() {
		t.Error("the server has heard of a request that was refused before it")
	}

	faults.Before(nil)
	faults.After(func(*http.Request, *http.Response, error) (*http.Response, error) { return nil, kubetest.ErrNoAnswer })
	if err := create(); err == nil || !strings.Contains(err.Error(), kubetest.ErrNoAnswer.Error()) {
		t.Errorf("a create whose answer is lost gives %v, want %v", err, kubetest.ErrNoAnswer)
	}
	if !present() {
		t.Error("the server has not done what only the answer to was lost")
	}

	faults.After(nil)
	if err := create(); !apierrors.IsAlreadyExists(err) {
		t.Errorf("without faults the second create gives %v, want AlreadyExists", err)
	}
}

func TestServiceAccountHasItsOwnRightsOnly(t *testing.T) {
	env := start(t)
	ns := env.Namespace(t)
	objs, err := kube.Decode(strings.NewReader(strings.ReplaceAll(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: NS}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: NS}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: ServiceAccount, name: reader, namespace: NS}
`, "NS", ns)))
	if err != nil {
		t.Fatal(err)
	}
	env = kubetest.Start(t, kubetest.Options{Objects: objs})
	for how, config := range map[string]*rest.Config{
		"token":         env.As(t, ns, "reader"),
		"impersonation": env.Impersonate(ns, "reader"),
	} {
		maps := client(t, config).Resource(configMaps)
		end := time.Now().Add(10 * time.Second)
		// The authorizer learns of a binding a moment after it was stored.
		for _, err = maps.Namespace(ns).List(t.Context(), metav1.ListOptions{}); err != nil && time.Now().Before(end); {
			_, err = maps.Namespace(ns).List(t.Context(), metav1.ListOptions{})
		}
		if err != nil {
			t.Errorf("by %s: the granted list gives %v", how, err)
		}
		if _, err := maps.Namespace("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("by %s: a list in another namespace gives %v, want Forbidden", how, err)
		}
	}
}

func TestRemoteClusterHasObjectsOfItsOwn(t *testing.T) {
	env := start(t)
	remote := env.Remote(t, kubetest.Options{})
	ns := remote.Namespace(t)
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if _, err := env.Client.Resource(namespaces).Get(t.Context(), ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the remote cluster's namespace is in the package's own: %v", err)
	}
}

func TestLaterOptionsAreProvidedToo(t *testing.T) {
	env := start(t)
	ns := env.Namespace(t)
	file := filepath.Join("test", "kube", "testdata", "boats.yaml")
	kubetest.Start(t, kubetest.Options{Files: []string{file}, Objects: []*unstructured.Unstructured{configMap(ns, "late")}, ControllerManager: true})
	boats := schema.GroupVersionResource{Group: "test.slipway.dev", Version: "v1", Resource: "boats"}
	if _, err := env.Client.Resource(boats).Namespace(ns).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a definition that a later Start asks for is not served: %v", err)
	}
	if _, err := env.Client.Resource(configMaps).Namespace(ns).Get(t.Context(), "late", metav1.GetOptions{}); err != nil {
		t.Errorf("an object that a later Start asks for is not there: %v", err)
	}
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	watch, err := env.Client.Resource(accounts).Namespace(ns).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=default"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	select {
	case <-watch.ResultChan():
	case <-time.After(30 * time.Second):
		t.Error("the controllers that a later Start asks for give the namespace no default ServiceAccount")
	}
}

func TestTurnsAreLimited(t *testing.T) {
	root := t.TempDir()
	release, err := kubetest.Turn(t.Context(), root, kubetest.MaxServers)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan func())
	go func() {
		release, err := kubetest.Turn(t.Context(), root, 1)
		if err != nil {
			t.Error(err)
		}
		got <- release
	}()
	select {
	case <-got:
		t.Fatal("one more than the limit got its turn")
	case <-time.After(200 * time.Millisecond):
	}
	release()
	(<-got)()
}
