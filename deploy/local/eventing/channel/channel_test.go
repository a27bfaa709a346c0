package channel_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	eventingduckv1 "knative.dev/eventing/pkg/apis/duck/v1"
	"knative.dev/eventing/pkg/apis/eventing"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/eventing/pkg/broker"
	"knative.dev/eventing/pkg/broker/filter"
	"knative.dev/eventing/pkg/broker/ingress"
	"knative.dev/eventing/pkg/client/clientset/versioned/fake"
	"knative.dev/eventing/pkg/client/informers/externalversions"
	"knative.dev/eventing/pkg/eventingtls"
	"knative.dev/eventing/pkg/kncloudevents"
	"knative.dev/eventing/pkg/reconciler/sugar/trigger/path"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/slipway-dev/slipway/deploy/local/eventing/channel"
	"github.com/slipway-dev/slipway/deploy/local/eventing/names"
	"github.com/slipway-dev/slipway/deploy/local/eventing/report"
)

// hosts answers for every service of the cluster. Knative's clients are copies of
// the default transport, so the names are redirected once, for all tests.
var hosts = struct {
	sync.RWMutex
	handlers map[string]http.Handler
}{handlers: map[string]http.Handler{}}

func TestMain(m *testing.M) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hosts.RLock()
		handler := hosts.handlers[r.Host]
		hosts.RUnlock()
		if handler == nil {
			http.Error(w, "no such host "+r.Host, http.StatusTeapot)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	if err := names.Override(server.Listener.Addr().String(), ""); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func serve(host string, handler http.Handler) {
	hosts.Lock()
	defer hosts.Unlock()
	hosts.handlers[host] = handler
}

// delivered is what a function saw of an event.
type delivered struct {
	ID, Type, Code, Dest, Data string
}

// function notes what it gets, and answers as the test says.
type function struct {
	mu            sync.Mutex
	got           []delivered
	inFlight, max int
	answer        func(w http.ResponseWriter, event delivered, times int)
}

func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event := delivered{
		ID: r.Header.Get("Ce-Id"), Type: r.Header.Get("Ce-Type"), Code: r.Header.Get("Ce-Knativeerrorcode"),
		Dest: r.Header.Get("Ce-Knativeerrordest"), Data: r.Header.Get("Ce-Knativeerrordata"),
	}
	f.mu.Lock()
	times := 1
	for _, before := range f.got {
		if before.ID == event.ID {
			times++
		}
	}
	f.got = append(f.got, event)
	f.inFlight++
	f.max = max(f.max, f.inFlight)
	f.mu.Unlock()
	if f.answer != nil {
		f.answer(w, event, times)
	}
	f.mu.Lock()
	f.inFlight--
	f.mu.Unlock()
}

func (f *function) seen() []delivered {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.got)
}

// await waits until the function has seen so many deliveries.
func (f *function) await(t *testing.T, count int) []delivered {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for len(f.seen()) < count {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d deliveries came", len(f.seen()), count)
		}
		time.Sleep(time.Millisecond)
	}
	return f.seen()
}

// dataPlane is the way of an event: Knative's ingress, the channel, Knative's
// filter, and functions at its end.
type dataPlane struct {
	table    *channel.Table
	report   *report.Reporter
	lines    *strings.Builder
	function *function
	archive  *function
	base     string
	name     types.NamespacedName
}

type settings struct {
	capacity, concurrency int
	delivery              eventingduckv1.DeliverySpec
	filters               []eventingv1.SubscriptionsAPIFilter
}

// counter gives every test hosts of its own.
var counter int

func newDataPlane(t *testing.T, s settings) *dataPlane {
	t.Helper()
	counter++
	namespace := fmt.Sprintf("test-%d", counter)
	address := func(name string) *apis.URL { return apis.HTTP(names.OfService(namespace, name)) }
	trigger := &eventingv1.Trigger{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "t", UID: "uid", Generation: 1},
		Spec:       eventingv1.TriggerSpec{Broker: "default", Filters: s.filters},
	}
	trigger.Status.SubscriberURI = address("fn")
	object := &eventingv1.Broker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
	object.Status.Annotations = map[string]string{
		eventing.BrokerChannelAddressStatusAnnotationKey: "http://" + names.OfChannel(namespace, "default-kne-trigger"),
	}

	p := &dataPlane{lines: &strings.Builder{}, function: &function{}, archive: &function{}}
	p.report = report.New(p.lines)
	p.table = channel.NewTable(channel.Options{
		Dispatcher: kncloudevents.NewDispatcher(eventingtls.NewDefaultClientConfig(), nil),
		Trigger: func(name types.NamespacedName) (*eventingv1.Trigger, error) {
			if name.Name != trigger.Name {
				return nil, errors.New("no such trigger")
			}
			return trigger, nil
		},
		Concurrency: func(types.NamespacedName) int { return s.concurrency },
		Capacity:    s.capacity,
		Report:      p.report, Log: zap.NewNop(),
	})
	retry, err := kncloudevents.RetryConfigFromDeliverySpec(s.delivery)
	if err != nil {
		t.Fatal(err)
	}
	filterURL := apis.HTTP("broker-filter.knative-eventing.svc.cluster.local")
	filterURL.Path = path.Generate(trigger)
	brokerURL := apis.HTTP("broker-ingress.knative-eventing.svc.cluster.local")
	brokerURL.Path = "/" + namespace + "/default"
	p.table.Subscribe(
		types.NamespacedName{Namespace: namespace, Name: "default-kne-trigger"},
		types.NamespacedName{Namespace: namespace, Name: "sub"},
		types.NamespacedName{Namespace: namespace, Name: "t"}, "uid",
		channel.Delivery{
			Target: duckv1.Addressable{URL: filterURL}, Reply: &duckv1.Addressable{URL: brokerURL},
			DeadLetter: &duckv1.Addressable{URL: address("archive")}, Retry: retry,
		})
	p.name = types.NamespacedName{Namespace: namespace, Name: "default-kne-trigger"}
	p.table.Open(p.name)
	p.base = brokerURL.String()
	p.connect(t, namespace, trigger, object)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		p.table.Stop(ctx)
	})
	return p
}

// connect serves everything under its name in the cluster.
func (p *dataPlane) connect(t *testing.T, namespace string, trigger *eventingv1.Trigger, object *eventingv1.Broker) {
	t.Helper()
	factory := externalversions.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)
	triggers, brokers := factory.Eventing().V1().Triggers(), factory.Eventing().V1().Brokers()
	if err := errors.Join(triggers.Informer().GetIndexer().Add(trigger), brokers.Informer().GetIndexer().Add(object)); err != nil {
		t.Fatal(err)
	}
	same := func(ctx context.Context) context.Context { return ctx }
	in, err := ingress.NewHandler(zap.NewNop(), broker.TTLDefaulter(zap.NewNop(), 255), brokers, nil, nil, nil, same, otel.GetMeterProvider(), otel.GetTracerProvider())
	if err != nil {
		t.Fatal(err)
	}
	out, err := filter.NewHandler(zap.NewNop(), nil, nil, triggers, brokers, factory.Messaging().V1().Subscriptions(), nil, same, otel.GetMeterProvider(), otel.GetTracerProvider())
	if err != nil {
		t.Fatal(err)
	}
	gate := channel.NewGate(p.table)
	serve("broker-ingress.knative-eventing.svc.cluster.local", gate.Ingress(in))
	serve("broker-filter.knative-eventing.svc.cluster.local", out)
	serve(names.OfChannel(namespace, "default-kne-trigger"), gate.Channel())
	serve(names.OfService(namespace, "fn"), p.function)
	serve(names.OfService(namespace, "archive"), p.archive)
}

// send sends an event about the named object to the broker.
func (p *dataPlane) send(t *testing.T, id, object string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.base, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Ce-Specversion": "1.0", "Ce-Id": id, "Ce-Type": "test.event", "Ce-Source": "/test",
		"Ce-Kind": "Thing", "Ce-Name": object, "Content-Type": "application/json",
	} {
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	return answer.StatusCode
}

func ptr[T any](value T) *T { return &value }

// quick retries twice, after 0.1 and 0.2 seconds.
func quick() eventingduckv1.DeliverySpec {
	return eventingduckv1.DeliverySpec{
		Retry: ptr(int32(2)), BackoffPolicy: ptr(eventingduckv1.BackoffPolicyExponential), BackoffDelay: ptr("PT0.1S"), Timeout: ptr("PT5S"),
	}
}

func TestEventsOfOneObjectKeepTheirOrderAndOthersRunBesideThem(t *testing.T) {
	p := newDataPlane(t, settings{concurrency: 3, delivery: quick()})
	p.function.answer = func(http.ResponseWriter, delivered, int) { time.Sleep(5 * time.Millisecond) }
	const objects, rounds = 6, 10
	for round := range rounds {
		for object := range objects {
			if code := p.send(t, fmt.Sprintf("%d-%d", object, round), strconv.Itoa(object)); code != http.StatusAccepted {
				t.Fatalf("the ingress answered %d", code)
			}
		}
	}
	next := map[string]int{}
	for _, event := range p.function.await(t, objects*rounds) {
		object, round, _ := strings.Cut(event.ID, "-")
		if round != strconv.Itoa(next[object]) {
			t.Errorf("object %s: round %s came when %d was due", object, round, next[object])
		}
		next[object]++
	}
	if p.function.max != 3 {
		t.Errorf("%d events were in flight at once, want the function's 3", p.function.max)
	}
}

func TestAFullQueueIsHeardAsTooManyRequestsAtTheIngress(t *testing.T) {
	p := newDataPlane(t, settings{capacity: 2, concurrency: 1, delivery: quick()})
	release := make(chan struct{})
	p.function.answer = func(http.ResponseWriter, delivered, int) { <-release }
	var codes []int
	for i := range 4 {
		codes = append(codes, p.send(t, strconv.Itoa(i), "a"))
	}
	if diff := cmp.Diff([]int{202, 202, 429, 429}, codes); diff != "" {
		t.Errorf("wrong answers (-want +got):\n%s", diff)
	}
	close(release)
	p.function.await(t, 2)
}

func TestAFailingObjectIsRetriedWithBackOffAndDoesNotHoldUpOthers(t *testing.T) {
	p := newDataPlane(t, settings{concurrency: 1, delivery: quick()})
	start := time.Now()
	p.function.answer = func(w http.ResponseWriter, event delivered, times int) {
		if event.ID == "broken" && times < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	p.send(t, "broken", "a")
	p.send(t, "behind", "a")
	p.send(t, "other", "b")
	var order []string
	for _, event := range p.function.await(t, 5) {
		order = append(order, event.ID)
	}
	if diff := cmp.Diff([]string{"broken", "other", "broken", "broken", "behind"}, order); diff != "" {
		t.Errorf("wrong order (-want +got):\n%s", diff)
	}
	if took := time.Since(start); took < 300*time.Millisecond {
		t.Errorf("the retries took %s, want 0.1 s and 0.2 s at least", took)
	}
}

func TestWhatFailsForGoodBecomesADeadLetter(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer func(w http.ResponseWriter)
		tries  int
		want   delivered
	}{
		"Unavailable": {
			reason: "503 is tried as often as the delivery says",
			answer: func(w http.ResponseWriter) { http.Error(w, "boom", http.StatusServiceUnavailable) },
			tries:  3,
			want:   delivered{Code: "503", Data: base64.StdEncoding.EncodeToString([]byte("boom\n"))},
		},
		"Invalid": {
			reason: "400 is not tried again",
			answer: func(w http.ResponseWriter) { http.Error(w, "not for me", http.StatusBadRequest) },
			tries:  1,
			want:   delivered{Code: "400", Data: base64.StdEncoding.EncodeToString([]byte("not for me\n"))},
		},
		"LongReason": {
			reason: "the reason is cut to 1024 characters of base64",
			answer: func(w http.ResponseWriter) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, strings.Repeat("x", 5000))
			},
			tries: 1,
			want:  delivered{Code: "400", Data: base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 5000)))[:1024]},
		},
		"Text": {
			reason: "a text with 200 is a failure, of which the filter alone knows, so that nobody is named",
			answer: func(w http.ResponseWriter) { _, _ = io.WriteString(w, "OK") },
			tries:  3,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newDataPlane(t, settings{concurrency: 1, delivery: quick()})
			p.function.answer = func(w http.ResponseWriter, _ delivered, _ int) { tc.answer(w) }
			p.send(t, "e", "a")
			got := p.archive.await(t, 1)[0]
			tc.want.ID, tc.want.Type = "e", "test.event"
			if tc.want.Code != "" {
				tc.want.Dest = "http://" + names.OfService(fmt.Sprintf("test-%d", counter), "fn")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if tries := len(p.function.seen()); tries != tc.tries {
				t.Errorf("%s: there were %d tries, want %d", tc.reason, tries, tc.tries)
			}
		})
	}
}

func TestAnEmptyAnswerIsTheEndOfAnEvent(t *testing.T) {
	for _, code := range []int{http.StatusOK, http.StatusAccepted, http.StatusNoContent} {
		p := newDataPlane(t, settings{concurrency: 1, delivery: quick()})
		p.function.answer = func(w http.ResponseWriter, _ delivered, _ int) { w.WriteHeader(code) }
		p.send(t, "e", "a")
		p.function.await(t, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if left := p.table.Stop(ctx); left != 0 {
			t.Errorf("%d: %d events were given up", code, left)
		}
		if got := p.archive.seen(); len(got) > 0 {
			t.Errorf("%d made a dead letter: %+v", code, got)
		}
		if !strings.Contains(p.lines.String(), fmt.Sprintf(`"objectKind":"Thing","name":"a","trigger":"t","function":"fn","status":%d`, code)) {
			t.Errorf("%d: the delivery was reported as %s", code, p.lines)
		}
	}
}

func TestAnAnswerThatIsAnEventGoesToTheBroker(t *testing.T) {
	p := newDataPlane(t, settings{concurrency: 1, delivery: quick()})
	p.function.answer = func(w http.ResponseWriter, event delivered, _ int) {
		if event.Type != "test.event" {
			return
		}
		for name, value := range map[string]string{"Specversion": "1.0", "Id": "answer", "Type": "test.answer", "Source": "/fn"} {
			w.Header().Set("Ce-"+name, value)
		}
	}
	p.send(t, "e", "a")
	got := p.function.await(t, 2)[1]
	if diff := cmp.Diff(delivered{ID: "answer", Type: "test.answer"}, got); diff != "" {
		t.Errorf("wrong reply (-want +got):\n%s", diff)
	}
}

func TestATriggerGetsOnlyWhatItsFiltersLetThrough(t *testing.T) {
	p := newDataPlane(t, settings{
		concurrency: 1, delivery: quick(),
		filters: []eventingv1.SubscriptionsAPIFilter{{Exact: map[string]string{"name": "wanted"}}},
	})
	for _, object := range []string{"unwanted", "wanted", "unwanted"} {
		if code := p.send(t, object, object); code != http.StatusAccepted {
			t.Errorf("the ingress answered %d", code)
		}
	}
	p.function.await(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	p.table.Stop(ctx)
	if got := p.function.seen(); len(got) != 1 || got[0].ID != "wanted" {
		t.Errorf("the function got %+v, want the one that it wants", got)
	}
}

func TestWhatIsNoEventIsRefusedByTheIngress(t *testing.T) {
	p := newDataPlane(t, settings{concurrency: 1, delivery: quick()})
	answer, err := http.Post(p.base, "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("the ingress answered %s, want 400", answer.Status)
	}
}

func TestAChannelThatIsOpenedAnewHasItsSubscribersStill(t *testing.T) {
	p := newDataPlane(t, settings{concurrency: 1, delivery: quick()})
	p.table.Close(p.name)
	if code := p.send(t, "refused", "a"); code != http.StatusServiceUnavailable {
		t.Errorf("the ingress answered %d for a channel that is closed, want 503", code)
	}
	p.table.Open(p.name)
	p.send(t, "e", "a")
	if got := p.function.await(t, 1); got[0].ID != "e" {
		t.Errorf("the function got %+v", got)
	}
}

func TestNoEventIsTakenUntilItIsKnownWhoSubscribed(t *testing.T) {
	p := newDataPlane(t, settings{concurrency: 1, delivery: quick()})
	late := types.NamespacedName{Namespace: p.name.Namespace, Name: "late"}
	p.table.Await([]types.NamespacedName{late})
	if code := p.send(t, "early", "a"); code != http.StatusServiceUnavailable {
		t.Errorf("the ingress answered %d before it was known who subscribed, want 503", code)
	}
	p.table.Looked(late)
	<-p.table.Settled()
	if code := p.send(t, "e", "a"); code != http.StatusAccepted {
		t.Errorf("the ingress answered %d", code)
	}
}

func TestASubscriptionThatIsGoneGetsNothing(t *testing.T) {
	p := newDataPlane(t, settings{concurrency: 1, delivery: quick()})
	p.table.Unsubscribe(types.NamespacedName{Namespace: p.name.Namespace, Name: "sub"})
	if code := p.send(t, "e", "a"); code != http.StatusAccepted {
		t.Errorf("the ingress answered %d", code)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	p.table.Stop(ctx)
	if got := p.function.seen(); len(got) > 0 {
		t.Errorf("the function got %+v", got)
	}
}

func TestKey(t *testing.T) {
	event := func(extensions map[string]string) cloudevents.Event {
		e := cloudevents.NewEvent()
		e.SetSource("/source")
		e.SetSubject("subject")
		for name, value := range extensions {
			e.SetExtension(name, value)
		}
		return e
	}
	object := func(version, cluster string) map[string]string {
		return map[string]string{"apiversion": "g/" + version, "kind": "K", "namespace": "ns", "name": "n", "cluster": cluster}
	}
	cases := map[string]struct {
		reason string
		a, b   map[string]string
		same   bool
	}{
		"Versions": {"one object is one key, whichever version it was watched in", object("v1", ""), object("v2", ""), true},
		"Clusters": {"objects of two clusters differ", object("v1", "a"), object("v1", "b"), false},
		"NoObject": {"events of no object go by source and subject", nil, map[string]string{"function": "f"}, true},
		"Mixed":    {"an object is no other event", object("v1", ""), nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := channel.Key(event(tc.a)) == channel.Key(event(tc.b)); got != tc.same {
				t.Errorf("%s: same key is %t", tc.reason, got)
			}
		})
	}
}
