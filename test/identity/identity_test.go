package identity

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

const (
	home     = "slipway-system"
	function = "node-capacity"
	// sender is the account that Knative makes for the function's Trigger.
	sender   = function + "-oidc-eventing.knative.dev-trigger"
	stranger = "cluster-anchor-oidc-eventing.knative.dev-trigger"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// rendered is an overlay as it is installed.
func rendered(t *testing.T, root, overlay string) []*unstructured.Unstructured {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, filepath.FromSlash(build.DefaultBin), "kube"), "kubectl", "kustomize", filepath.Join(root, "deploy/overlays", overlay))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	objs, err := kube.Decode(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	return objs
}

// fixture is a function under its own account.
type fixture struct {
	t      *testing.T
	env    *kubetest.Env
	client kubernetes.Interface
	url    string
	log    *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func begin(t *testing.T) *fixture {
	t.Helper()
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := build.Binaries(t.Context(), build.Options{Root: root, Out: os.Stderr}, "kube", function); err != nil {
		t.Fatal(err)
	}
	var installed []*unstructured.Unstructured
	var service *unstructured.Unstructured
	for _, obj := range rendered(t, root, "authenticated") {
		switch obj.GetKind() {
		case "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition":
			installed = append(installed, obj)
		case "Service":
			if obj.GetName() == function {
				service = obj
			}
		}
	}
	for _, name := range []string{sender, stranger} {
		installed = append(installed, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name, "namespace": home},
		}})
	}
	env := kubetest.Start(t, kubetest.Options{Objects: installed})
	client, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, env: env, client: client, log: &syncBuffer{}}
	f.run(filepath.Join(root, filepath.FromSlash(build.DefaultBin), function), service)
	return f
}

// run starts the program with the settings of the Service.
func (f *fixture) run(program string, service *unstructured.Unstructured) {
	f.t.Helper()
	config, err := f.env.Cluster.TokenKubeconfig(f.t.Context(), home, function)
	if err != nil {
		f.t.Fatal(err)
	}
	kubeconfig := filepath.Join(f.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, config, 0o600); err != nil {
		f.t.Fatal(err)
	}
	address := free(f.t)
	f.url = "http://" + address
	ctx, stop := context.WithCancel(context.WithoutCancel(f.t.Context()))
	cmd := exec.CommandContext(ctx, program) //nolint:gosec // a program of this repository
	containers, _, _ := unstructured.NestedSlice(service.Object, "spec", "template", "spec", "containers")
	for _, v := range containers[0].(map[string]any)["env"].([]any) {
		variable := v.(map[string]any)
		if value, ok := variable["value"].(string); ok {
			cmd.Env = append(cmd.Env, variable["name"].(string)+"="+value)
		}
	}
	cmd.Env = append(cmd.Env, "LISTEN_ADDRESS="+address, "HEALTH_LISTEN_ADDRESS=127.0.0.1:0", "KUBECONFIG="+kubeconfig)
	cmd.Stdout, cmd.Stderr = f.log, f.log
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		stop()
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { stop(); _ = cmd.Wait() })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if f.ask(http.MethodGet, "/health/readiness", "") == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the function is not ready: %s", f.log)
		}
	}
}

// ask sends a resync event, or asks whether the function is ready.
func (f *fixture) ask(method, path, token string) int {
	f.t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(f.t.Context()), method, f.url+path, strings.NewReader("{}"))
	if err != nil {
		f.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "test", "Ce-Type": "dev.knative.sources.ping", "Ce-Function": function,
		"Content-Type": "application/json",
	} {
		req.Header.Set(name, value)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// token is what Knative asks the API server for on behalf of a Trigger.
func (f *fixture) token(account, audience string) string {
	f.t.Helper()
	request := &authenticationv1.TokenRequest{}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	answer, err := f.client.CoreV1().ServiceAccounts(home).CreateToken(f.t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return answer.Status.Token
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestAFunctionTakesEventsOfItsOwnTriggerOnly(t *testing.T) {
	f := begin(t)
	audience := function + "." + home
	good := f.token(sender, audience)
	head, tail, _ := strings.Cut(good, ".")
	cases := []struct {
		reason, token string
		want          int
	}{
		{"an event with the token of the function's own Trigger is taken", good, 204},
		{"and so is the next one", good, 204},
		{"an event without a token may come from anywhere", "", 401},
		{"a token for another function's Trigger is a stranger's here", f.token(sender, "cluster-anchor."+home), 401},
		{"a token for the API server is none for the function", f.token(sender, ""), 401},
		{"a token that somebody changed is worth nothing", head + "." + tail[:len(tail)-8] + "AAAAAAAA", 401},
		{"another Trigger's account may not send, whatever its token is for", f.token(stranger, audience), 403},
		{"nor may the function's own account", f.token(function, audience), 403},
	}
	for _, tc := range cases {
		if got := f.ask(http.MethodPost, "/", tc.token); got != tc.want {
			t.Errorf("%s: answered %d, want %d\n%s", tc.reason, got, tc.want, f.log)
		}
	}
	if got := f.ask(http.MethodGet, "/health/liveness", ""); got != 200 {
		t.Errorf("the kubelet has no token, and needs none: %d", got)
	}
}

func TestAWithdrawnSenderIsLetInNoMore(t *testing.T) {
	f := begin(t)
	gone := sender + "-gone"
	// Its account goes away before its token is ever shown.
	_, err := f.client.CoreV1().ServiceAccounts(home).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: gone}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token := f.token(gone, function+"."+home)
	if err := f.client.CoreV1().ServiceAccounts(home).Delete(t.Context(), gone, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := f.ask(http.MethodPost, "/", token); got != 401 {
		t.Errorf("a token of an account that is gone is answered %d", got)
	}
	if strings.Contains(fmt.Sprint(f.log), token) {
		t.Error("a token is in the log")
	}
}
