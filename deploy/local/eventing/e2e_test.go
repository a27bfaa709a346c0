package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/deploy/local/eventing/manifest"
)

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
