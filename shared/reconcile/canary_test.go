package reconcile

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/record"
	"github.com/slipway-dev/slipway/shared/serve"
	"github.com/slipway-dev/slipway/shared/setting"
)

// canary stands wherever a secret can stand.
const canary = "canary-7c1e5ab2-secret"

// machines are objects with cloud-init in them.
var machines = kind.Resource{
	Group: "demo.dev", Versions: []string{"v1"}, Kind: "Machine", Plural: "machines", Namespaced: true,
	Sealed: []string{"spec.userData", "spec.userDataBase64:base64"},
}

// leaky is an API server whose objects, answers and errors are full of secrets.
type leaky struct {
	mu     sync.Mutex
	posted []string
}

func (l *leaky) RoundTrip(req *http.Request) (*http.Response, error) {
	body := ""
	if req.Body != nil {
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		body = string(raw)
	}
	coded := base64.StdEncoding.EncodeToString([]byte(canary))
	config := base64.StdEncoding.EncodeToString([]byte(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: ` + canary + `}}]
`))
	answer := func(code int, text string) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: req, Body: io.NopCloser(bytes.NewBufferString(text))}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if req.Method != http.MethodGet {
		l.posted = append(l.posted, req.URL.Path+" "+body)
	}
	switch {
	case strings.Contains(req.URL.Path, "/events"):
		return answer(http.StatusCreated, `{"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e", "namespace": "a"}}`)
	case req.Method != http.MethodGet && !strings.HasSuffix(req.URL.Path, "/status"):
		text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 422, "reason": "Invalid", "message": "spec.userData: Invalid value: \"%s\" and %s"}`, canary, coded)
		return answer(http.StatusUnprocessableEntity, text)
	case strings.Contains(req.URL.Path, "/secrets/"):
		return answer(http.StatusOK, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "a", "uid": "s", "resourceVersion": "1",
			"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"stringData\": \"`+canary+`\"}"}}, "data": {"password": "`+coded+`", "kubeconfig": "`+config+`"}}`)
	case strings.Contains(req.URL.Path, "/configmaps/"):
		return answer(http.StatusOK, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "a", "uid": "c", "resourceVersion": "1"},
			"data": {"proxy": "http://user:`+canary+`@proxy:3128", "note": "the password is `+canary+`"}}`)
	}
	machine := `{"apiVersion": "demo.dev/v1", "kind": "Machine", "metadata": {"name": "m", "namespace": "a", "uid": "m", "resourceVersion": "1"},
		"spec": {"userData": "#cloud-config\npassword: ` + canary + `", "userDataBase64": "` + coded + `"}}`
	switch {
	case strings.HasSuffix(req.URL.Path, "/machines"):
		return answer(http.StatusOK, `{"apiVersion": "demo.dev/v1", "kind": "MachineList", "metadata": {}, "items": [`+machine+`]}`)
	case strings.HasSuffix(req.URL.Path, "/secrets"):
		return answer(http.StatusOK, `{"apiVersion": "v1", "kind": "SecretList", "metadata": {}, "items": [{"metadata": {"name": "s", "namespace": "a"}, "data": {"password": "`+coded+`"}}]}`)
	}
	return answer(http.StatusOK, machine)
}

// overhearing finds the object that an event concerns by objects full of secrets.
func overhearing(ctx context.Context, r *read.Reader, e event.Event) ([]Key, error) {
	var keys []Key
	err := r.Within(ctx, "", machines, e.Namespace, func(obj *unstructured.Unstructured) bool {
		keys = append(keys, Key{Namespace: obj.GetNamespace(), Name: obj.GetName()})
		return true
	})
	if err != nil {
		return nil, err
	}
	return keys, r.Within(ctx, "", kind.Secrets, e.Namespace, func(*unstructured.Unstructured) bool { return true })
}

// careless puts what it was given wherever it can.
func careless(errorText string) Function[[]*unstructured.Unstructured] {
	return Function[[]*unstructured.Unstructured]{
		Spec: Spec{
			Name: "careless", Reconciles: machines, Watches: []Watch{{Resource: machines, Keys: overhearing}},
			Env: []setting.EnvVar{{Name: "CARELESS_TOKEN"}, {Name: "CARELESS_PROXY"}},
		},
		Gather: func(ctx context.Context, r *read.Reader, root *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
			secret, err := r.Get(ctx, "", kind.Secrets, "a", "s")
			if err != nil {
				return nil, err
			}
			config, err := r.Get(ctx, "", kind.ConfigMaps, "a", "c")
			if err != nil {
				return nil, err
			}
			if _, err := r.Connect(ctx, "east", "a", "s", "kubeconfig"); err != nil {
				return nil, err
			}
			if errorText != "" {
				return nil, fmt.Errorf("cannot use %s", errorText)
			}
			return []*unstructured.Unstructured{root, secret, config}, nil
		},
		Decide: func(_ time.Time, in []*unstructured.Unstructured, _ plan.Answers) plan.Decision {
			data, _, _ := unstructured.NestedMap(in[1].Object, "data")
			made := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "made", "namespace": "a"},
				"data": data, "stringData": map[string]any{"plain": "made up: " + canary},
			}}
			changed := in[0].DeepCopy()
			_ = unstructured.SetNestedField(changed.Object, data["password"], "spec", "userData")
			d := plan.Decision{Reasons: []string{"the cloud-init is wrong"}}
			d.Plan.Add("objects",
				plan.Entry{Verb: plan.Create, Resource: kind.Secrets, Object: made, Reason: "it is missing"},
				plan.Entry{Verb: plan.Patch, Resource: machines, Base: in[0], Object: changed, Reason: "it differs"})
			return d
		},
		Conclude: func(_ time.Time, _ []*unstructured.Unstructured, _ plan.Answers, outcomes plan.Outcomes) plan.Conclusion {
			message := outcomes.Faults()[0].Fault.Message
			return plan.Conclusion{
				Class: plan.Terminal, Reason: "Refused", Message: message, Log: []string{message},
				Status: map[string]any{"message": message}, Events: []plan.Event{{Reason: "Refused", Message: message}},
			}
		},
	}
}

// TestASecretIsNowhereButWhereItBelongs: in no recording, no log, no status, no Event and
// no metric; and what is recorded still comes to the same.
func TestASecretIsNowhereButWhereItBelongs(t *testing.T) {
	t.Setenv("CARELESS_TOKEN", canary)
	t.Setenv("CARELESS_PROXY", "http://user:"+canary+"@proxy")
	for name, errorText := range map[string]string{"a refusal": "", "an error": canary + " of a library"} {
		t.Run(name, func(t *testing.T) {
			server, log, kept := &leaky{}, &bytes.Buffer{}, nowhere{texts: make(chan []byte, 1)}
			recorder := record.New(record.Policy{All: true, Sample: 1, MaxBytes: record.MaxSize}, slog.New(slog.DiscardHandler), kept)
			h := New(careless(errorText), Options{
				Config: &rest.Config{Host: "http://api.invalid", Transport: server}, Log: serve.Logger(log, "debug"), Recorder: recorder,
			})
			_, answer := h.Handle(t.Context(), leakyEvent())
			recorder.Close(t.Context())
			text := <-kept.texts
			metrics := httptest.NewRecorder()
			h.Metrics().ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			for place, content := range map[string]string{
				"the recording": string(text), "the log": log.String(), "the answer": answer.Error(), "the metrics": metrics.Body.String(),
			} {
				holdsNone(t, place, content)
			}
			for _, posted := range server.posted {
				if strings.Contains(posted, "/events") || strings.Contains(posted, "/status") {
					holdsNone(t, "what is written", posted)
				}
			}
			r, err := record.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Mapping) != 2 || len(r.Mapping[0].Items)+len(r.Mapping[1].Items) != 2 {
				t.Errorf("of the mapping is kept %+v", r.Mapping)
			}
			replayed, err := New(careless(errorText), Options{Log: slog.New(slog.DiscardHandler)}).Replay(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := r.Verdict()
			got, _ := replayed.Recording.Verdict()
			// A library's error text is made anew by the replay, where it is no secret
			// that anybody read.
			if errorText == "" && !bytes.Equal(want, got) {
				t.Errorf("it comes to something else:\n%s\n%s", want, got)
			}
		})
	}
}

func holdsNone(t *testing.T, place, content string) {
	t.Helper()
	for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
		if i := strings.Index(content, form); i >= 0 {
			t.Errorf("%s holds a secret: ...%s...", place, content[max(0, i-120):min(len(content), i+len(form)+40)])
		}
	}
}

func leakyEvent() cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetID("1")
	ce.SetType("dev.knative.apiserver.resource.update")
	ce.SetSource("https://test")
	for name, value := range map[string]string{"apiversion": "demo.dev/v1", "kind": "Machine", "namespace": "a", "name": "m", "authorization": "Bearer " + canary, "origin": "https://user:" + canary + "@test"} {
		ce.SetExtension(name, value)
	}
	_ = ce.SetData("application/json", map[string]any{
		"apiVersion": "demo.dev/v1", "kind": "Machine", "metadata": map[string]any{
			"name": "m", "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": canary},
		}, "spec": map[string]any{"userData": canary},
	})
	return ce
}
