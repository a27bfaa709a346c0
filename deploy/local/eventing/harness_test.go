package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/slipway-dev/slipway/deploy/local/eventing/manifest"
)

// line is any line of the eventing process.
type line struct {
	Kind       string          `json:"kind"`
	Ingress    string          `json:"ingress"`
	Functions  string          `json:"functions"`
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	ObjectKind string          `json:"objectKind"`
	Trigger    string          `json:"trigger"`
	Function   string          `json:"function"`
	State      string          `json:"state"`
	Status     int             `json:"status"`
	Attempt    int             `json:"attempt"`
	Attempts   int             `json:"attempts"`
	Delivered  bool            `json:"delivered"`
	Reason     string          `json:"reason"`
	DurationMs float64         `json:"durationMs"`
	PID        int             `json:"pid"`
	Line       json.RawMessage `json:"line"`

	seen seen
}

// journal keeps all lines.
type journal struct {
	mu    sync.Mutex
	lines []line
}

func (j *journal) copy(r io.Reader) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			l.Kind = "garbage: " + scanner.Text()
		}
		if l.Kind == "log" {
			_ = json.Unmarshal(l.Line, &l.seen)
		}
		j.mu.Lock()
		j.lines = append(j.lines, l)
		j.mu.Unlock()
	}
}

func (j *journal) all(want func(line) bool) []line {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []line
	for _, l := range j.lines {
		if want(l) {
			found = append(found, l)
		}
	}
	return found
}

// await returns the first lines that are wanted, once there are enough.
func (j *journal) await(t *testing.T, count int, what string, want func(line) bool) []line {
	t.Helper()
	var found []line
	eventually(t, 20*time.Second, what, func(context.Context) error {
		found = j.all(want)
		if len(found) < count {
			return fmt.Errorf("%d of %d lines", len(found), count)
		}
		return nil
	})
	return found
}

// stackUnderTest is the eventing process with what tests need around it.
type stackUnderTest struct {
	*journal
	client          dynamic.Interface
	mapper          *restmapper.DeferredDiscoveryRESTMapper
	kubeconfig, dir string
	process         *exec.Cmd
	ready           line
	// stop ends the process and tells how long that took.
	stop func() time.Duration
}

func startStack(t *testing.T, c *cluster) *stackUnderTest {
	t.Helper()
	s := &stackUnderTest{journal: &journal{}, kubeconfig: c.kubeconfig, dir: t.TempDir()}
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	s.client = client
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kubernetes.NewForConfigOrDie(c.config).Discovery()))

	var definitions bytes.Buffer
	if err := manifest.Definitions(&definitions, moduleDir(t)); err != nil {
		t.Fatal(err)
	}
	s.apply(t, definitions.String()+"---\n"+demoDefinitions)

	dir := s.dir
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "bin", "echo")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "adapter.yaml"), []byte(adapterConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	s.startProcess(t)
	return s
}

// startProcess starts the eventing process and waits until it is ready.
func (s *stackUnderTest) startProcess(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.process = exec.Command(self, "--kubeconfig", s.kubeconfig, "--module-dir", moduleDir(t), "--functions-dir", filepath.Join(s.dir, "bin"),
		"--data-dir", filepath.Join(s.dir, "data"), "--idle", "1s", "--adapter-config", filepath.Join(s.dir, "adapter.yaml"))
	// Under the race detector this process, which is the test binary again, would
	// end with 66: Knative's own code has races (its any filter counts matches
	// without a lock, its configurations are read while they are written). Ours
	// is under the detector in the tests of its packages.
	s.process.Env = append(os.Environ(), envRole+"=eventing", "GORACE=exitcode=0")
	var errors bytes.Buffer
	s.process.Stderr = &errors
	out, err := s.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { s.copy(out); close(done) }()
	process := s.process
	s.stop = sync.OnceValue(func() time.Duration {
		start := time.Now()
		_ = process.Process.Signal(syscall.SIGTERM)
		<-done
		if err := process.Wait(); err != nil {
			t.Errorf("the eventing process did not end well: %v", err)
		}
		if t.Failed() {
			t.Logf("what the eventing process said:\n%s", errors.String())
		}
		return time.Since(start)
	})
	t.Cleanup(func() { s.stop() })
	isReady := func(l line) bool { return l.Kind == "ready" && l.PID == process.Process.Pid }
	s.ready = s.await(t, 1, "the eventing process is ready", isReady)[0]
}

func moduleDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "knative.dev/eventing").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// apply creates the objects of a YAML stream.
func (s *stackUnderTest) apply(t *testing.T, text string) {
	t.Helper()
	decoder := yamlstream.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) == 0 {
			continue
		}
		eventually(t, 10*time.Second, object.GetKind()+" "+object.GetName()+" is created", func(ctx context.Context) error {
			mapping, err := s.mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
			if err != nil {
				s.mapper.Reset()
				return err
			}
			_, err = s.client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{})
			return err
		})
	}
}

func (s *stackUnderTest) get(ctx context.Context, gvr schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	return s.client.Resource(gvr).Namespace("demo").Get(ctx, name, metav1.GetOptions{})
}

var (
	brokers    = schema.GroupVersionResource{Group: "eventing.knative.dev", Version: "v1", Resource: "brokers"}
	triggers   = schema.GroupVersionResource{Group: "eventing.knative.dev", Version: "v1", Resource: "triggers"}
	apiSources = schema.GroupVersionResource{Group: "sources.knative.dev", Version: "v1", Resource: "apiserversources"}
	pings      = schema.GroupVersionResource{Group: "sources.knative.dev", Version: "v1", Resource: "pingsources"}
	services   = schema.GroupVersionResource{Group: "serving.knative.dev", Version: "v1", Resource: "services"}
	widgets    = schema.GroupVersionResource{Group: "demo.slipway.dev", Version: "v1", Resource: "widgets"}
	odds       = schema.GroupVersionResource{Group: "late.slipway.dev", Version: "v2", Resource: "odd-gateways"}
)

// readiness is the condition Ready, with its reason.
func readiness(object *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		if condition := entry.(map[string]any); condition["type"] == "Ready" {
			return fmt.Sprint(condition["status"], " ", condition["reason"], " ", condition["message"])
		}
	}
	return "absent"
}

func (s *stackUnderTest) create(t *testing.T, gvr schema.GroupVersionResource, kind, name string) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gvr.GroupVersion().String(), "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": "demo"},
	}}
	if _, err := s.client.Resource(gvr).Namespace("demo").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func status(object *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(object.Object, append([]string{"status"}, path...)...)
	return text
}
