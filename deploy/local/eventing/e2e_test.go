package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/slipway-dev/slipway/deploy/local/eventing/manifest"
)

const demoDefinitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.demo.slipway.dev}
spec:
  group: demo.slipway.dev
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// oddDefinition has a plural that an ApiServerSource would guess wrong, and
// serves its second version only.
const oddDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: odd-gateways.late.slipway.dev}
spec:
  group: late.slipway.dev
  scope: Namespaced
  names: {kind: OddGateway, plural: odd-gateways, singular: odd-gateway, listKind: OddGatewayList}
  versions:
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const adapterConfig = `
sink: http://broker-ingress.knative-eventing.svc.cluster.local/demo/default
resources:
- {group: late.slipway.dev, versions: [v1, v2], resource: odd-gateways, kind: OddGateway}
`

const manifests = `
apiVersion: v1
kind: Namespace
metadata: {name: demo}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: source, namespace: demo}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: echo, namespace: demo}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: demo}
data: {greeting: hello}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: source}
rules:
- {apiGroups: [demo.slipway.dev], resources: [widgets], verbs: [get, list, watch]}
- {apiGroups: [late.slipway.dev], resources: [odd-gateways], verbs: [list, watch]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: source}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: source}
subjects: [{kind: ServiceAccount, name: source, namespace: demo}]
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: echo, namespace: demo}
spec:
  template:
    spec:
      containerConcurrency: 4
      serviceAccountName: echo
      containers:
      - image: ko://example.com/functions/echo/cmd
        env:
        - {name: EVENTING_TEST_ROLE, value: echo}
        - {name: OBEDIENT, value: "true"}
        - name: GREETING
          valueFrom: {configMapKeyRef: {name: settings, key: greeting}}
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: archive, namespace: demo}
spec:
  template:
    spec:
      serviceAccountName: echo
      containers:
      - image: registry.example.com:5000/echo:v1
        env: [{name: EVENTING_TEST_ROLE, value: echo}]
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: missing, namespace: demo}
spec:
  template: {spec: {containers: [{image: ko://example.com/functions/missing/cmd}]}}
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: disabled, namespace: demo, annotations: {slipway.dev/disabled: "true"}}
spec:
  template: {spec: {containers: [{image: ko://example.com/functions/echo/cmd}]}}
---
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {name: default, namespace: demo}
spec:
  delivery:
    retry: 2
    backoffPolicy: exponential
    backoffDelay: PT0.1S
    timeout: PT5S
    deadLetterSink: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: archive}}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: widgets, namespace: demo}
spec:
  broker: default
  filters:
  - prefix: {type: dev.knative.apiserver.ref.}
  subscriber: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: echo}}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: rest, namespace: demo}
spec:
  broker: default
  filters:
  - any:
    - exact: {type: dev.knative.sources.ping}
    - prefix: {type: test.}
  subscriber: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: echo}}
---
apiVersion: sources.knative.dev/v1
kind: ApiServerSource
metadata: {name: widgets, namespace: demo}
spec:
  serviceAccountName: source
  namespaceSelector: {}
  resources: [{apiVersion: demo.slipway.dev/v1, kind: Widget}]
  sink: {ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: default}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: adapter, namespace: demo}
spec:
  selector: {matchLabels: {app: adapter}}
  template:
    metadata: {labels: {app: adapter}}
    spec:
      serviceAccountName: source
      containers: [{name: source-adapter, image: ko://example.com/sources/adapter/cmd}]
---
apiVersion: sources.knative.dev/v1
kind: PingSource
metadata: {name: resync, namespace: demo}
spec:
  schedule: "*/1 * * * * *"
  ceOverrides: {extensions: {function: echo}}
  sink: {ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: default}}
`

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

func TestEventsTravelFromTheAPIServerToFunctions(t *testing.T) {
	c := startCluster(t)
	s := startStack(t, c)
	t.Logf("ready %.0f ms after the start of the process", s.ready.DurationMs)

	var defaulted bytes.Buffer
	if err := manifest.Defaults(strings.NewReader(manifests), &defaulted, moduleDir(t)); err != nil {
		t.Fatal(err)
	}
	applied := time.Now()
	s.apply(t, defaulted.String())
	for _, object := range []struct {
		gvr  schema.GroupVersionResource
		name string
	}{{brokers, "default"}, {triggers, "widgets"}, {triggers, "rest"}, {apiSources, "widgets"}, {pings, "resync"}, {services, "echo"}, {services, "archive"}} {
		eventually(t, 20*time.Second, object.gvr.Resource+" "+object.name+" is Ready", func(ctx context.Context) error {
			got, err := s.get(ctx, object.gvr, object.name)
			if err == nil && !strings.HasPrefix(readiness(got), "True") {
				err = errors.New(readiness(got))
			}
			return err
		})
		t.Logf("%s %s is Ready after %s", object.gvr.Resource, object.name, time.Since(applied).Round(time.Millisecond))
	}
	t.Logf("everything is Ready %s after the manifests were applied", time.Since(applied).Round(time.Millisecond))

	t.Run("StatusesHoldTheURLsOfARealCluster", func(t *testing.T) { s.testStatuses(t) })
	t.Run("AFunctionStartsOnItsFirstEventAsItsServiceAccount", func(t *testing.T) { s.testFirstEvent(t) })
	t.Run("ThePingSourceTicks", func(t *testing.T) {
		s.await(t, 2, "two ticks", func(l line) bool { return l.seen.Type == "dev.knative.sources.ping" })
	})
	t.Run("FailuresAreRetriedThenBuried", func(t *testing.T) { s.testFailures(t) })
	t.Run("RepliesGoToTheBrokerUntilTheirTTLEnds", func(t *testing.T) { s.testReplies(t) })
	t.Run("ACrashIs502AndTheNextTryStartsAgain", func(t *testing.T) { s.testCrash(t) })
	t.Run("AServiceThatCannotRunAnswers503", func(t *testing.T) { s.testBroken(t) })
	t.Run("TheSourceAdapterFollowsDefinitions", func(t *testing.T) { s.testAdapter(t) })
	t.Run("FromChangeToFunctionTakesMilliseconds", func(t *testing.T) { s.measure(t) })
	t.Run("ATriggerThatIsGoneGetsNothing", func(t *testing.T) { s.testGone(t) })
	t.Run("AnIdleFunctionIsStopped", func(t *testing.T) {
		if err := s.client.Resource(pings).Namespace("demo").Delete(t.Context(), "resync", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		before := len(s.all(stopped("echo")))
		s.await(t, before+1, "echo is stopped", stopped("echo"))
	})
	t.Logf("stopped in %s", s.stop().Round(time.Millisecond))
	s.startProcess(t)
	t.Logf("ready again %.0f ms after the start of the process", s.ready.DurationMs)
	t.Run("AfterARestartEventsTravelAgain", func(t *testing.T) {
		reached := func(l line) bool { return l.seen.Type == "test.after" }
		eventually(t, 10*time.Second, "the broker takes an event", func(context.Context) error { return s.post("test.after") })
		s.await(t, 1, "the event arrives", reached)
	})
	for _, l := range s.all(func(l line) bool { return strings.HasPrefix(l.Kind, "garbage") }) {
		t.Error(l.Kind)
	}
}

// post sends an event to the broker's loopback address.
func (s *stackUnderTest) post(eventType string) error {
	request, err := http.NewRequest(http.MethodPost, s.ready.Ingress+"/demo/default", strings.NewReader("{}"))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Ce-Specversion": "1.0", "Ce-Id": "posted", "Ce-Type": eventType, "Ce-Source": "/test", "Content-Type": "application/json",
	} {
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusAccepted {
		return errors.New(answer.Status)
	}
	return nil
}

func stopped(name string) func(line) bool {
	return func(l line) bool { return l.Kind == "function" && l.Name == name && l.State == "stopped" }
}

func (s *stackUnderTest) testStatuses(t *testing.T) {
	read := func(gvr schema.GroupVersionResource, name string) *unstructured.Unstructured {
		object, err := s.get(t.Context(), gvr, name)
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	got := map[string]string{
		"broker":      status(read(brokers, "default"), "address", "url"),
		"subscriber":  status(read(triggers, "widgets"), "subscriberUri"),
		"dead letter": status(read(triggers, "widgets"), "deadLetterSinkUri"),
		"service":     status(read(services, "echo"), "address", "url"),
		"source":      status(read(apiSources, "widgets"), "sinkUri"),
		"missing":     strings.SplitAfter(readiness(read(services, "missing")), "there is no file ")[0],
	}
	want := map[string]string{
		"broker":      "http://broker-ingress.knative-eventing.svc.cluster.local/demo/default",
		"subscriber":  "http://echo.demo.svc.cluster.local",
		"dead letter": "http://archive.demo.svc.cluster.local",
		"service":     "http://echo.demo.svc.cluster.local",
		"source":      "http://broker-ingress.knative-eventing.svc.cluster.local/demo/default",
		"missing":     "False BinaryMissing there is no file ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wrong statuses (-want +got):\n%s", diff)
	}
}

func (s *stackUnderTest) testFirstEvent(t *testing.T) {
	s.create(t, widgets, "Widget", "first")
	event := s.await(t, 1, "the event arrives", func(l line) bool { return l.seen.Msg == "event" && l.seen.Name == "first" })[0].seen
	if event.Type != "dev.knative.apiserver.ref.add" || event.ObjectKind != "Widget" || event.TTL != "" {
		t.Errorf("wrong event: %+v", event)
	}
	started := s.await(t, 1, "the function tells of its start", func(l line) bool { return l.Function == "echo" && l.seen.Msg == "started" })[0].seen
	if want := "system:serviceaccount:demo:echo"; started.User != want {
		t.Errorf("the function is %q for the API server, want %q", started.User, want)
	}
	if want := s.ready.Ingress + "/demo/default hello"; started.Env != want {
		t.Errorf("the function's environment says %q, want %q", started.Env, want)
	}
	ready := s.await(t, 1, "the function is ready", func(l line) bool { return l.Kind == "function" && l.Name == "echo" && l.State == "ready" })[0]
	t.Logf("the first process was ready after %.1f ms", ready.DurationMs)
	s.await(t, 1, "the delivery is reported", func(l line) bool {
		return l.Kind == "event" && l.Name == "first" && l.Trigger == "widgets" && l.Status == http.StatusNoContent && l.Attempt == 1
	})
	s.await(t, 1, "text is reported as it is", func(l line) bool { return string(l.Line) == `"this line is no JSON object"` })
}

func (s *stackUnderTest) testFailures(t *testing.T) {
	cases := map[string]struct {
		reason, name string
		tries        int
		// want is what the dead letter carries; the reported status is apart,
		// since the filter's own 502 leaves no extensions.
		status int
		want   seen
	}{
		"Retried": {
			reason: "503 is tried three times in all, and the dead letter says who failed and why",
			name:   "fail-503-a", tries: 3, status: 503,
			want: seen{ErrorCode: "503", ErrorDest: "http://echo.demo.svc.cluster.local", ErrorData: "bm8gc3VjaCBjbHVzdGVyCg=="},
		},
		"AtOnce": {
			reason: "400 is never tried again",
			name:   "fail-400-a", tries: 1, status: 400,
			want: seen{ErrorCode: "400", ErrorDest: "http://echo.demo.svc.cluster.local", ErrorData: "bm8gc3VjaCBjbHVzdGVyCg=="},
		},
		"Text": {
			reason: "a text with 200 is a failure that the filter makes a 502 of",
			name:   "text-a", tries: 3, status: 502,
			want: seen{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s.create(t, widgets, "Widget", tc.name)
			dead := s.await(t, 1, "a dead letter is reported", func(l line) bool { return l.Kind == "deadletter" && l.Name == tc.name })[0]
			if dead.Status != tc.status || dead.Attempts != tc.tries || !dead.Delivered {
				t.Errorf("%s: reported %+v", tc.reason, dead)
			}
			if tries := s.all(func(l line) bool { return l.Kind == "event" && l.Name == tc.name }); len(tries) != tc.tries {
				t.Errorf("%s: %d tries were reported, want %d", tc.reason, len(tries), tc.tries)
			}
			letter := s.await(t, 1, "the dead letter arrives", func(l line) bool { return l.Function == "archive" && l.seen.Name == tc.name })[0].seen
			got := seen{ErrorCode: letter.ErrorCode, ErrorDest: letter.ErrorDest, ErrorData: letter.ErrorData}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func (s *stackUnderTest) testReplies(t *testing.T) {
	s.create(t, widgets, "Widget", "reply-once")
	s.await(t, 1, "the reply arrives", func(l line) bool { return l.seen.Type == "test.reply" })

	s.create(t, widgets, "Widget", "reply-loop")
	loop := func(l line) bool { return l.Function == "echo" && l.seen.Type == "test.loop" }
	// The first event has 255; each pass takes one; what has none left is refused.
	const passes = 254
	s.await(t, passes, "the loop runs as often as its TTL allows", loop)
	// The last reply was refused: nothing more comes of it.
	s.await(t, 1, "the reply without TTL is buried", func(l line) bool { return l.Kind == "deadletter" && l.Type == "test.loop" })
	if got := len(s.all(loop)); got != passes {
		t.Errorf("the loop ran %d times, want %d", got, passes)
	}
}

func (s *stackUnderTest) testCrash(t *testing.T) {
	s.create(t, widgets, "Widget", "crash-a")
	s.await(t, 3, "three processes crash", func(l line) bool { return l.Kind == "function" && l.Name == "echo" && l.State == "crashed" })
	dead := s.await(t, 1, "a dead letter is reported", func(l line) bool { return l.Kind == "deadletter" && l.Name == "crash-a" })[0]
	if dead.Status != http.StatusBadGateway {
		t.Errorf("a crash was reported as %d, want 502", dead.Status)
	}
	s.create(t, widgets, "Widget", "after-the-crash")
	s.await(t, 1, "the function works again", func(l line) bool { return l.seen.Name == "after-the-crash" })
}

func (s *stackUnderTest) testBroken(t *testing.T) {
	for _, name := range []string{"missing", "disabled"} {
		answer, err := http.Post(s.ready.Functions+"/demo/"+name, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("function %q answered %s: %s, want 503", name, answer.Status, text)
		}
	}
}

func (s *stackUnderTest) testAdapter(t *testing.T) {
	s.apply(t, oddDefinition)
	s.apply(t, "{apiVersion: late.slipway.dev/v2, kind: OddGateway, metadata: {name: served, namespace: demo}}")
	// What exists when a watch begins gives no event, so create until one comes.
	count := 0
	eventually(t, 20*time.Second, "an event of a late definition arrives", func(context.Context) error {
		if len(s.all(func(l line) bool { return l.seen.ObjectKind == "OddGateway" })) > 0 {
			return nil
		}
		s.create(t, odds, "OddGateway", fmt.Sprintf("g%d", count))
		count++
		return errors.New("none yet")
	})
	name := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if err := s.client.Resource(name).Delete(t.Context(), "odd-gateways.late.slipway.dev", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (s *stackUnderTest) testGone(t *testing.T) {
	if err := s.client.Resource(triggers).Namespace("demo").Delete(t.Context(), "widgets", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the Trigger's filter is gone", func(ctx context.Context) error {
		name := fmt.Sprintf("gone-%d", time.Now().UnixNano())
		s.create(t, widgets, "Widget", name)
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
		// While the subscription outlives the Trigger, the filter refuses what comes, and it
		// becomes a dead letter: nothing is lost on the way.
		if len(s.all(func(l line) bool { return l.seen.Name == name || l.Kind == "deadletter" && l.Name == name })) > 0 {
			return errors.New("an event arrived, or became a dead letter")
		}
		return nil
	})
}

// measure writes objects one after the other and compares the times at which
// they were written with those at which the function heard of it.
func (s *stackUnderTest) measure(t *testing.T) {
	const rounds = 200
	s.create(t, widgets, "Widget", "measured")
	written := map[int]time.Time{}
	before := func(l line) bool { return l.seen.Msg == "event" && l.seen.Name == "measured" }
	s.await(t, 1, "the first event", before)
	for i := range rounds {
		patch := fmt.Sprintf(`{"spec":{"round":%d}}`, i)
		written[i] = time.Now()
		if _, err := s.client.Resource(widgets).Namespace("demo").Patch(t.Context(), "measured", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	events := s.await(t, rounds+1, "all events", before)[1:]
	var took []time.Duration
	for i, event := range events {
		took = append(took, event.seen.At.Sub(written[i]))
	}
	slices.Sort(took)
	t.Logf("from the start of a write to the function: p50 %s, p90 %s, p99 %s", took[rounds/2], took[rounds*9/10], took[rounds*99/100])
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(l, "VmRSS") || strings.HasPrefix(l, "VmHWM") {
			t.Logf("eventing process: %s", l)
		}
	}
}
