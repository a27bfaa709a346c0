package anchor

import (
	"net/http"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

func (w *world) configChanged(f *suite.Copy) {
	w.TB.Helper()
	f.Insist(w.Event(kind.ConfigMaps, w.settings.ConfigMapName))
}

func TestTheHostFollowsExternalURLWithAnEvent(t *testing.T) {
	w := newWorld(t)
	w.cluster(subject, "")
	f := w.anchor()
	w.converged(f, subject)
	w.externalURL("https://Example.NET:8443/path/?x=1")
	f.Asked()
	w.configChanged(f)
	w.endpointIs(subject, "True Reconciled")
	w.hostIs(subject, w.host(subject, "example.net"))
	w.tells(subject, v1alpha3.ReasonRolloutStarted, 1)
	w.says(subject, v1alpha3.ConditionAPIEndpointReconciled, "externalURL has changed")
	if _, writes := f.Asked(); len(writes) != 3 {
		t.Errorf("the route, the status and an Event are written, not %v", writes)
	}
	if got := w.record(subject); got != "example.net" {
		t.Errorf("the record is %q", got)
	}
	f.Rests(w.events(subject)...)
	w.tells(subject, v1alpha3.ReasonRolloutStarted, 1)
}

func TestAHostThatMovesCanBeHeldBack(t *testing.T) {
	w := newWorld(t)
	w.cluster(subject, "")
	f := w.anchor()
	w.converged(f, subject)
	w.Patch(dockyards.Clusters, subject, "metadata: {annotations: {slipway.dev/hold-rollouts: ''}}")
	w.externalURL("https://example.net")
	w.configChanged(f)
	w.endpointIs(subject, "False RolloutHeld")
	w.hostIs(subject, w.host(subject, "example.com"))
	w.ingressIs(subject, "True Ready")
	f.Rests(w.events(subject)...)
	w.tells(subject, v1alpha3.ReasonRolloutStarted, 0)
	w.tells(subject, v1alpha3.ReasonRolloutHeld, 1)

	w.Patch(dockyards.Clusters, subject, "metadata: {annotations: {slipway.dev/hold-rollouts: null}}")
	w.converged(f, subject)
	w.hostIs(subject, w.host(subject, "example.net"))
	w.endpointIs(subject, "True Reconciled")
	w.tells(subject, v1alpha3.ReasonRolloutStarted, 1)
	f.Rests(w.events(subject)...)
}

// TestAHostThatIsNotRecordedStays is a takeover: upstream recorded nothing.
func TestAHostThatIsNotRecordedStays(t *testing.T) {
	w := newWorld(t)
	w.cluster(subject, "")
	old := w.host(subject, "old.example.org")
	w.Patch(dockyards.Clusters, subject, "status: {apiEndpoint: {host: "+old+", port: 6443}}", "status")
	f := w.anchor()
	w.converged(f, subject)
	w.hostIs(subject, old)
	w.endpointIs(subject, "True Reconciled")
	w.says(subject, v1alpha3.ConditionAPIEndpointReconciled, "kept")
	if got := w.record(subject); got != "example.com" {
		t.Errorf("the record is %q", got)
	}
	w.tells(subject, v1alpha3.ReasonRolloutStarted, 0)
	f.Rests(w.events(subject)...)

	w.externalURL("https://example.net")
	w.configChanged(f)
	w.hostIs(subject, w.host(subject, "example.net"))
	w.tells(subject, v1alpha3.ReasonRolloutStarted, 1)
	f.Rests(w.events(subject)...)
}

func TestAHostThatIsNoNameIsCorrectedAtOnce(t *testing.T) {
	for name, broken := range map[string]string{"Port": "example.com:8443", "Path": "example.com/path", "Case": "Example.com", "Dot": "example.com."} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cluster(subject, "")
			w.Patch(dockyards.Clusters, subject, "metadata: {annotations: {slipway.dev/hold-rollouts: ''}}")
			w.Patch(dockyards.Clusters, subject, "status: {apiEndpoint: {host: '"+w.host(subject, broken)+"', port: 6443}}", "status")
			f := w.anchor()
			w.converged(f, subject)
			w.hostIs(subject, w.host(subject, "example.com"))
			w.endpointIs(subject, "True Reconciled")
			w.tells(subject, v1alpha3.ReasonRolloutStarted, 1)
			f.Rests(w.events(subject)...)
		})
	}
}

func TestAConfigMapThatSaysNothingTakesNothingAway(t *testing.T) {
	gone := func(w *world) { w.Remove(kind.ConfigMaps, w.settings.ConfigMapName) }
	for name, c := range map[string]struct {
		reason, want, says string
		change             func(w *world)
	}{
		"Gone":   {reason: "the condition names what is missing", want: "False WaitingForListenerHostname", says: "does not exist", change: gone},
		"Empty":  {reason: "so does an empty one", want: "False WaitingForListenerHostname", says: "externalURL", change: func(w *world) { w.externalURL("") }},
		"Absent": {reason: "and one without the key", want: "False WaitingForListenerHostname", says: "externalURL", change: func(w *world) { w.Patch(kind.ConfigMaps, w.settings.ConfigMapName, "data: null") }},
		"Broken": {reason: "what is no name is not stored", want: "False InvalidHostname", says: "no DNS name", change: func(w *world) { w.externalURL("https://under_score.example.com") }},
		"IPv6":   {reason: "an address has no names", want: "False InvalidHostname", says: "address", change: func(w *world) { w.externalURL("https://[2001:db8::1]:6443") }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.environment(subject)
			f := w.anchor()
			w.converged(f, subject)
			before := w.Snapshot()
			delete(before, "Cluster/"+subject)
			c.change(w)
			w.configChanged(f)
			w.endpointIs(subject, c.want)
			w.says(subject, v1alpha3.ConditionAPIEndpointReconciled, c.says)
			w.ingressIs(subject, "True Ready")
			w.hostIs(subject, w.host(subject, "example.com"))
			after := w.Snapshot()
			delete(after, "Cluster/"+subject)
			if len(after) != len(before) {
				t.Errorf("%s: there were %d objects, there are %d", c.reason, len(before), len(after))
			}
			for key, life := range before {
				if after[key] != life {
					t.Errorf("%s: %s has changed", c.reason, key)
				}
			}
			f.Rests(w.events(subject)...)
			// A Cluster that comes now waits, and its ingress does not.
			w.cluster("late", "")
			w.converged(f, "late")
			w.hostIs("late", "")
			w.ingressIs("late", "True Ready")
		})
	}
}

func TestANameTooLongOrWithDotsGetsNoHost(t *testing.T) {
	w := newWorld(t)
	f := w.anchor()
	for name, ingress := range map[string]string{
		"a-name-that-is-too-long-with-its-namespace-before-it-a": "True Ready",
		"a.b": "True Ready",
		"a-name-that-is-certainly-longer-than-a-label-may-be-altogether-by-itself": "False InvalidSpec",
	} {
		w.cluster(name, "")
		w.converged(f, name)
		w.endpointIs(name, "False InvalidHostname")
		w.ingressIs(name, ingress)
		w.hostIs(name, "")
		f.Rests(w.events(name)...)
	}
}

func TestTwoClustersOfOneNameDoNotShareAHost(t *testing.T) {
	w := newWorld(t)
	other := &world{World: w.At(w.NS + "-b"), settings: w.settings}
	w.Create("{apiVersion: v1, kind: Namespace, metadata: {name: " + other.NS + "}}")
	f := w.anchor()

	// Of two that are made in the same second, the first by namespace counts as older.
	w.cluster("b-c", "")
	w.converged(f, "b-c")
	younger := other.cluster("c", "")
	other.converged(f, "c")
	w.hostIs("b-c", w.host("b-c", "example.com"))
	w.endpointIs("b-c", "True Reconciled")
	other.endpointIs("c", "False HostConflict")
	other.says("c", v1alpha3.ConditionAPIEndpointReconciled, w.NS+"/b-c")
	other.ingressIs("c", "True Ready")
	other.hostIs("c", "")
	other.tells("c", v1alpha3.ReasonHostConflict, 1)
	f.Rests(append(w.events("b-c"), other.Event(dockyards.Clusters, "c"))...)

	// Upstream gave both the same.
	other.Patch(dockyards.Clusters, "c", "status: {apiEndpoint: {host: "+w.host("b-c", "example.com")+", port: 6443}}", "status")
	route := w.Must(routes, "b-c").DeepCopy()
	route.SetOwnerReferences([]metav1.OwnerReference{dockyards.Reference(dockyards.Clusters, younger)})
	route.SetName("c")
	route.SetNamespace(other.NS)
	route.SetResourceVersion("")
	route.SetUID("")
	if _, err := other.In(routes).Create(t.Context(), route, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Insist(other.Event(dockyards.Clusters, "c"))
	other.hostIs("c", "")
	other.endpointIs("c", "False HostConflict")

	// The name is free once the older one is gone, and its event says so.
	w.Remove(dockyards.Clusters, "b-c")
	f.Insist(w.Event(dockyards.Clusters, "b-c"))
	other.hostIs("c", w.host("b-c", "example.com"))
	other.endpointIs("c", "True Reconciled")
}

// TestAMoveThatWasCutOffIsCompleted stops a copy after each of its writes.
func TestAMoveThatWasCutOffIsCompleted(t *testing.T) {
	for _, lost := range []string{"tlsroutes", "clusters"} {
		t.Run(lost, func(t *testing.T) {
			w := newWorld(t)
			w.cluster(subject, "")
			f := w.anchor()
			w.converged(f, subject)
			w.externalURL("https://example.net")
			broken := w.anchor(suite.WithAfter(func(c suite.Call) error {
				if c.Write() && c.Resource == lost {
					return suite.ErrBroken
				}
				return nil
			}), suite.WithTap(afterFirst(lost)))
			broken.Send(w.Event(dockyards.Clusters, subject))
			w.converged(f, subject)
			w.hostIs(subject, w.host(subject, "example.net"))
			w.endpointIs(subject, "True Reconciled")
			f.Rests(w.events(subject)...)
		})
	}
}

// afterFirst ends all writes after the first of a resource.
func afterFirst(resource string) suite.Tap {
	var seen atomic.Bool
	return func(c suite.Call) (*http.Response, error) {
		if c.Write() && seen.Load() {
			return nil, suite.ErrBroken
		}
		if c.Write() && c.Resource == resource {
			seen.Store(true)
		}
		return nil, nil
	}
}
