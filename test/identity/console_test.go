package identity

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/shared/record"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

// beside is event-archive and the console as deploy/overlays/console installs them.
type beside struct {
	*fixture
	root, bin        string
	archive, console *unstructured.Unstructured
	// writers, readers and pages are the addresses of both ports of the archive, and of
	// the console.
	writers, readers, pages string
}

func besides(t *testing.T) *beside {
	t.Helper()
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := build.Binaries(t.Context(), build.Options{Root: root, Out: os.Stderr}, "kube", "event-archive", "kubectl-slipway"); err != nil {
		t.Fatal(err)
	}
	b := &beside{root: root, bin: filepath.Join(root, filepath.FromSlash(build.DefaultBin)), writers: free(t), readers: free(t), pages: free(t)}
	var installed []*unstructured.Unstructured
	for _, obj := range rendered(t, root, "console") {
		switch kind := obj.GetKind(); {
		case kind == "Namespace", kind == "ServiceAccount", strings.Contains(kind, "Role"):
			installed = append(installed, obj)
		case obj.GetName() == "event-archive" && obj.GetAPIVersion() == "serving.knative.dev/v1":
			b.archive = obj
		case obj.GetName() == "console" && kind == "Deployment":
			b.console = obj
		}
	}
	env := kubetest.Start(t, kubetest.Options{Objects: installed})
	client, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	b.fixture = &fixture{t: t, env: env, client: client, log: &syncBuffer{}}
	return b
}

func container(obj *unstructured.Unstructured) map[string]any {
	containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
	return containers[0].(map[string]any)
}

// start runs a program until the test ends.
func (b *beside) start(program string, args, env []string) {
	b.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(b.t.Context()))
	cmd := exec.CommandContext(ctx, filepath.Join(b.bin, program), args...) //nolint:gosec // a program of this repository
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = env, b.log, b.log, 10*time.Second
	if err := cmd.Start(); err != nil {
		stop()
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { stop(); _ = cmd.Wait() })
}

// runArchive starts the archive under its own account.
func (b *beside) runArchive() {
	b.t.Helper()
	config, err := b.env.Cluster.TokenKubeconfig(b.t.Context(), home, "event-archive")
	if err != nil {
		b.t.Fatal(err)
	}
	kubeconfig := filepath.Join(b.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, config, 0o600); err != nil {
		b.t.Fatal(err)
	}
	ours := map[string]string{"LISTEN_ADDRESS": b.writers, "ARCHIVE_DIR": filepath.Join(b.t.TempDir(), "archive"), "ARCHIVE_READERS": b.readers}
	env := []string{"KUBECONFIG=" + kubeconfig}
	for _, v := range container(b.archive)["env"].([]any) {
		name := v.(map[string]any)["name"].(string)
		if ours[name] == "" {
			b.t.Fatalf("the archive has a setting %s, which this test does not know", name)
		}
		env = append(env, name+"="+ours[name])
	}
	b.start("event-archive", nil, env)
	b.await("http://"+b.writers+"/health/readiness", http.StatusOK)
}

// runConsole starts the console as its Deployment says, with a token as the kubelet
// mounts it.
func (b *beside) runConsole() {
	b.t.Helper()
	token := filepath.Join(b.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(b.token("console", "event-archive")), 0o600); err != nil {
		b.t.Fatal(err)
	}
	var args []string
	for _, arg := range container(b.console)["args"].([]any) {
		name, _, given := strings.Cut(arg.(string), "=")
		switch {
		case name == "--listen":
			name += "=" + b.pages
		case name == "--from":
			name += "=http://" + b.readers
		case name == "--token-file":
			name += "=" + token
		case given:
			b.t.Fatalf("the console has a flag %s, which this test does not know", name)
		}
		args = append(args, name)
	}
	b.start("kubectl-slipway", args, []string{"HOME=" + b.t.TempDir()})
	b.await("http://"+b.pages+"/style.css", http.StatusOK)
}

func (b *beside) await(url string, want int) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if code, _ := b.send(http.MethodGet, url, "", ""); code == want {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s does not answer: %s", url, b.log)
		}
	}
}

func (b *beside) send(method, url, token, body string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(b.t.Context()), method, url, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if strings.Contains(body, "how=") {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		req.Header.Set("X-Slipway-Token", token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestTheConsoleReadsTheArchiveAndNobodyWithoutTheRightDoes(t *testing.T) {
	b := besides(t)
	b.runArchive()
	recordings, err := filepath.Glob(filepath.Join(b.root, "functions/organization-onboarder/testdata/recordings/*"+record.Suffix))
	if err != nil || len(recordings) == 0 {
		t.Fatalf("no recording is found: %v", err)
	}
	text, err := os.ReadFile(recordings[0])
	if err != nil {
		t.Fatal(err)
	}
	h, err := record.ParseHeader(text)
	if err != nil {
		t.Fatal(err)
	}
	if code, says := b.send(http.MethodPut, "http://"+b.writers+"/recordings/"+h.ID, "", string(text)); code != http.StatusNoContent {
		t.Fatalf("the recording is answered %d %s", code, says)
	}
	readable := "http://" + b.readers + "/api/recordings/" + h.ID
	for _, tc := range []struct {
		reason, token string
		want          int
	}{
		{"the console may read", b.token("console", "event-archive"), 200},
		{"so may who asks for a token of the reader's account", b.token("recordings-reader", "event-archive"), 200},
		{"nobody else", "", 401},
		{"a token for the API server is none for the archive", b.token("console", ""), 401},
		{"a function has no right to read", b.token("machine-vm", "event-archive"), 403},
		{"nor has the archive itself", b.token("event-archive", "event-archive"), 403},
	} {
		if code, says := b.send(http.MethodGet, readable, tc.token, ""); code != tc.want {
			t.Errorf("%s: answered %d %.200s, want %d", tc.reason, code, says, tc.want)
		}
	}
	if code, _ := b.send(http.MethodPut, "http://"+b.readers+"/recordings/"+h.ID, "", string(text)); code != http.StatusNotFound {
		t.Errorf("the port of readers takes a recording: %d", code)
	}

	b.runConsole()
	page := "http://" + b.pages + "/recording/" + h.ID
	code, says := b.send(http.MethodGet, page, "", "")
	form := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(says)
	if code != http.StatusOK || form == nil {
		t.Fatalf("the console answers %d:\n%s", code, says)
	}
	if code, says = b.send(http.MethodPost, page+"/replay", "", "how=offline&token="+form[1]); code != http.StatusOK || !strings.Contains(says, "byte for byte") {
		t.Errorf("a replay is answered %d:\n%s", code, says)
	}
	if code, _ = b.send(http.MethodPost, page+"/replay", "", "how=plan&token="+form[1]); code != http.StatusForbidden {
		t.Errorf("a plan on the live cluster is answered %d", code)
	}
	for _, token := range []string{b.token("console", "event-archive"), form[1]} {
		if strings.Contains(b.log.String(), token) {
			t.Error("a token is in the log")
		}
	}
}
