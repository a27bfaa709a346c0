package perturb

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/reconcile"
	kubetest "github.com/slipway-dev/slipway/test/kube"
	"github.com/slipway-dev/slipway/test/suite"
)

// feed makes events of what was written in a world, whoever did it, as the sources of
// a function's declaration would.
type feed struct {
	ns, remoteNS, cluster string
	alone                 bool

	mu      sync.Mutex
	watches []reconcile.Watch
	// versions are the last of each object: a write that changes nothing gives no event.
	versions map[string]string
	pending  []cloudevents.Event
	// seen is one event of each object, keys the order of their first.
	seen map[string]cloudevents.Event
	keys []string
}

func newFeed(ns string, s *scenario) *feed {
	return &feed{ns: ns, alone: s.alone, versions: map[string]string{}, seen: map[string]cloudevents.Event{}}
}

// declare has the feed watch what a function is woken by.
func (f *feed) declare(spec reconcile.Spec) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watches = spec.Watches
}

// client is the administrator's, whose writes are seen.
func (f *feed) client(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	watched := rest.CopyConfig(config)
	watched.QPS = -1
	watched.Wrap(func(next http.RoundTripper) http.RoundTripper { return observer{next: next, feed: f} })
	client, err := dynamic.NewForConfig(watched)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

type observer struct {
	next http.RoundTripper
	feed *feed
}

func (o observer) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	return resp, o.feed.answered(kubetest.ParseRequest(req), resp)
}

// WrappedRoundTripper lets client-go find the transport below, to cancel requests.
func (o observer) WrappedRoundTripper() http.RoundTripper { return o.next }

// answered reads what the server says of a write.
func (f *feed) answered(asked kubetest.Request, resp *http.Response) error {
	if !asked.Write() || resp.StatusCode >= http.StatusBadRequest {
		return nil
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &obj.Object); err != nil {
		return nil //nolint:nilerr // no object, so no event
	}
	f.wrote(asked, obj)
	return nil
}

// wrote makes the event of a write. obj is what the server answered, or nil.
func (f *feed) wrote(asked kubetest.Request, obj *unstructured.Unstructured) {
	if obj != nil && obj.GetKind() == "Status" {
		obj = nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	what, name, news := f.happened(asked, obj)
	if !news {
		return
	}
	for _, watch := range f.watches {
		if !f.watched(watch, asked, obj) {
			continue
		}
		ce := suite.Changed(what, watch.Resource.APIVersion(), watch.Resource.Kind, asked.Namespace, name)
		if f.there(asked.Namespace) {
			ce.SetExtension(event.ExtCluster, f.cluster)
		}
		f.pending = append(f.pending, ce)
		key := watch.Resource.String() + asked.Namespace + "/" + name
		if _, known := f.seen[key]; !known {
			f.keys = append(f.keys, key)
		}
		f.seen[key] = ce
		return
	}
}

// happened is what became of which object, and whether anything did.
func (f *feed) happened(asked kubetest.Request, obj *unstructured.Unstructured) (what, name string, news bool) {
	what, name = map[string]string{"create": "add", "delete": "delete"}[asked.Verb], asked.Name
	if what == "" {
		what = "update"
	}
	if obj == nil {
		return what, name, true
	}
	name = obj.GetName()
	key := asked.Group + asked.Resource + asked.Namespace + "/" + name
	if f.versions[key] == obj.GetResourceVersion() {
		return what, name, false
	}
	f.versions[key] = obj.GetResourceVersion()
	if what == "delete" && len(obj.GetFinalizers()) > 0 {
		what = "update"
	}
	return what, name, true
}

// watched tells whether a watch sees an object.
func (f *feed) watched(watch reconcile.Watch, asked kubetest.Request, obj *unstructured.Unstructured) bool {
	if watch.Resource.Group != asked.Group || watch.Resource.Plural != asked.Resource || !f.concerns(watch, asked.Namespace) {
		return false
	}
	selector, err := labels.Parse(watch.Selector)
	return obj == nil || err != nil || selector.Matches(labels.Set(obj.GetLabels()))
}

// there tells whether a namespace stands for the workload cluster.
func (f *feed) there(namespace string) bool { return f.remoteNS != "" && namespace == f.remoteNS }

// concerns tells whether a watch is one of where the object lies.
func (f *feed) concerns(watch reconcile.Watch, namespace string) bool {
	if f.there(namespace) {
		return watch.Remote || watch.Provider != ""
	}
	if watch.Provider != "" {
		return false
	}
	return f.alone || namespace == "" || namespace == f.ns
}

// take returns the events since the last time.
func (f *feed) take() []cloudevents.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.pending
	f.pending = nil
	return events
}

// all is one event of each object that ever had one.
func (f *feed) all() []cloudevents.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	var events []cloudevents.Event
	for _, key := range f.keys {
		events = append(events, f.seen[key])
	}
	return events
}
