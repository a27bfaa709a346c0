package reconcile

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/record"
)

// recorded is a recording of the demo function.
func recorded(t *testing.T) *record.Recording {
	t.Helper()
	kept := nowhere{texts: make(chan []byte, 1)}
	recorder := record.New(record.Policy{Sample: 1, MaxBytes: record.MaxSize}, slog.New(slog.DiscardHandler), kept)
	h := demoHost(t, "true", recorder)
	h.spec.Watches = []Watch{{Resource: kind.ConfigMaps}}
	if _, err := h.Handle(t.Context(), changed1()); statusOf(err) != http.StatusNoContent {
		t.Fatal(err)
	}
	recorder.Close(t.Context())
	r, err := record.Parse(<-kept.texts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func changed1() cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetID("1")
	ce.SetType("dev.knative.apiserver.ref.update")
	ce.SetSource("https://test")
	ce.SetSubject("/api/v1/namespaces/a/configmaps/root")
	ce.SetTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for name, value := range map[string]string{"apiversion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "root", "authtoken": "canary-canary-canary"} {
		ce.SetExtension(name, value)
	}
	_ = ce.SetData("application/json", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "root"})
	return ce
}

func TestARecordingHoldsWhatTheReconcileWas(t *testing.T) {
	r := recorded(t)
	if got := len(r.Reads); got != 12 {
		t.Errorf("%d reads are kept, want the object twice and ten others", got)
	}
	if len(r.Calls) != 1 || r.Calls[0].Verb != "patch" || r.Calls[0].Answer == nil {
		t.Errorf("the calls are %+v", r.Calls)
	}
	if diff := cmp.Diff([]string{"the size is wrong"}, r.Decisions[0].Reasons); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Header.TraceID == "" || r.Header.Trigger != "ConfigMap a/root" || r.Header.Result.Status != http.StatusNoContent {
		t.Errorf("the header is %+v", r.Header)
	}
	want := changed1()
	want.SetExtension("authtoken", r.Event.Attributes["authtoken"])
	if diff := cmp.Diff(want.String(), Event(r).String()); diff != "" {
		t.Errorf("the event (-sent +kept):\n%s", diff)
	}
	if strings.Contains(r.Event.Attributes["authtoken"], "canary") {
		t.Error("what looks like a credential is kept in the event's attributes")
	}
}

func TestTheSameVersionComesToTheSameByteForByte(t *testing.T) {
	r := recorded(t)
	replayed, err := demoHost(t, "", nil).Replay(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := r.Verdict()
	got, _ := replayed.Recording.Verdict()
	if diff := cmp.Diff(string(want), string(got)); diff != "" || len(replayed.Unknown) > 0 {
		t.Errorf("unknown %q, (-recorded +replayed):\n%s", replayed.Unknown, diff)
	}
}

// TestAnotherVersionsDifferenceIsSeen: it decides otherwise, and asks for more.
func TestAnotherVersionsDifferenceIsSeen(t *testing.T) {
	r := recorded(t)
	fn := demoFunction()
	fn.Decide = func(_ time.Time, _ []*unstructured.Unstructured, known plan.Answers) plan.Decision {
		more := plan.Need{Resource: kind.ConfigMaps, Namespace: "a", Name: "never-asked-for"}
		if _, ok := known.To(more); !ok {
			return plan.Decision{Needs: []plan.Need{more}}
		}
		return plan.Decision{}
	}
	h := New(fn, Options{Log: slog.New(slog.DiscardHandler)})
	replayed, err := h.Replay(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"get configmaps a/never-asked-for"}, replayed.Unknown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	fn = demoFunction()
	decide := fn.Decide
	fn.Decide = func(now time.Time, in []*unstructured.Unstructured, known plan.Answers) plan.Decision {
		d := decide(now, in, known)
		d.Plan.Add("more", plan.Entry{Verb: plan.Create, Resource: kind.ConfigMaps, Reason: "new", Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "new", "namespace": "a"},
		}}})
		return d
	}
	if replayed, err = New(fn, Options{Log: slog.New(slog.DiscardHandler)}).Replay(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	last := replayed.Recording.Decisions[0].Stages
	if len(last) != 2 || last[1].Entries[0].Result != "created" || len(replayed.Unknown) != 1 {
		t.Errorf("what is new is played as if the server took it, got %+v, %q", last, replayed.Unknown)
	}
}

func TestARecordingOfSomethingElseIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*record.Recording)
		says   string
	}{
		"another function": {func(r *record.Recording) { r.Header.Function = "other" }, "the recording is of other"},
		"another kind":     {func(r *record.Recording) { r.Header.Kind = "Widget" }, "the recording is of a Widget"},
		"cut":              {func(r *record.Recording) { r.Header.Cut = "it was too large" }, "it was too large"},
		"no mode":          {func(r *record.Recording) { r.Header.Mode = "sideways" }, "sideways"},
	} {
		r := recorded(t)
		c.change(r)
		if _, err := demoHost(t, "", nil).Replay(t.Context(), r); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: want an error with %q, got %v", name, c.says, err)
		}
	}
}

func TestATryInPlanModeWritesNothing(t *testing.T) {
	h := demoHost(t, "", nil)
	r, err := h.Try(t.Context(), Key{Namespace: "a", Name: "root"}, ModePlan, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Calls) > 0 || r.Decisions[0].Stages[0].Entries[0].Result != string(plan.Skipped) {
		t.Errorf("calls %+v, result %q", r.Calls, r.Decisions[0].Stages[0].Entries[0].Result)
	}
}
