package anchor

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// awaitCondition waits until a Cluster's condition is "status reason".
func (w *world) awaitCondition(name, conditionType, want string) {
	w.TB.Helper()
	w.Await(dockyards.Clusters, name, "has "+conditionType+" "+want, func(obj *unstructured.Unstructured) bool {
		if obj == nil {
			return false
		}
		is, reason, _ := suite.Condition(obj, conditionType)
		return is+" "+reason == want
	})
}

func (w *world) awaitHost(name, want string) {
	w.TB.Helper()
	w.Await(dockyards.Clusters, name, "has host "+want, func(obj *unstructured.Unstructured) bool {
		return suite.Text(obj, "status", "apiEndpoint", "host") == want
	})
}

// TestEveryDependencyWakesTheClustersThatDependOnIt goes by events alone, one
// dependency after the other.
func TestEveryDependencyWakesTheClustersThatDependOnIt(t *testing.T) {
	w := bare(t)
	f := w.anchor()
	source := w.Source(f)
	const endpoint, workload = v1alpha3.ConditionAPIEndpointReconciled, v1alpha3.ConditionIngressWorkloadReconciled
	names := []string{subject, "stage"}
	each := func(do func(name string)) {
		for _, name := range names {
			do(name)
		}
	}
	each(func(name string) { w.cluster(name, "") })
	each(func(name string) { w.awaitCondition(name, endpoint, "False WaitingForGateway") })
	w.gateway()
	each(func(name string) { w.awaitCondition(name, endpoint, "False WaitingForListenerHostname") })
	each(func(name string) { w.awaitCondition(name, workload, "False WaitingForGatewayAddress") })
	w.addresses("{value: " + address + "}")
	each(func(name string) { w.awaitCondition(name, workload, "True Ready") })
	w.configMap("externalURL: https://example.com")
	each(func(name string) { w.awaitHost(name, w.host(name, "example.com")) })
	w.externalURL("https://example.net")
	each(func(name string) { w.awaitHost(name, w.host(name, "example.net")) })

	each(func(name string) { w.capiCluster(name, w.Must(dockyards.Clusters, name), "") })
	there := func(obj *unstructured.Unstructured) bool { return obj != nil }
	each(func(name string) {
		w.Await(capis, name, "has an infrastructure", func(obj *unstructured.Unstructured) bool {
			return suite.Text(obj, "spec", "infrastructureRef", "kind") == "KubevirtCluster"
		})
	})
	for _, child := range []struct {
		res  kind.Resource
		name string
	}{{routes, subject}, {dockyards.Workloads, ingress}, {dockyards.KubevirtClusters, subject}} {
		old := w.Must(child.res, child.name).GetUID()
		w.Remove(child.res, child.name)
		w.Await(child.res, child.name, "is made anew", func(obj *unstructured.Unstructured) bool { return there(obj) && obj.GetUID() != old })
	}
	source.Stop()

	state := w.State()
	f.Asked()
	f.Resync()
	if _, writes := f.Asked(); len(writes) > 0 {
		t.Errorf("a resync after all events has written %v", writes)
	}
	if diff := cmp.Diff(state, w.State()); diff != "" {
		t.Errorf("a resync (-before +after):\n%s", diff)
	}
}

// TestAResyncAloneComesToTheSame: all events are lost.
func TestAResyncAloneComesToTheSame(t *testing.T) {
	calm := newWorld(t)
	calm.environment(subject)
	calm.converged(calm.anchor(), subject)

	w := newWorld(t)
	w.environment(subject)
	f := w.anchor()
	f.Resync()
	if diff := cmp.Diff(calm.State(), w.State()); diff != "" {
		t.Errorf("events alone and a resync alone should come to the same (-events +resync):\n%s", diff)
	}
}

func TestConfigMapsAndGatewaysOfOthersWakeNobody(t *testing.T) {
	w := newWorld(t)
	w.environment(subject)
	f := w.anchor()
	w.converged(f, subject)
	f.Asked()
	f.Insist(w.Event(kind.ConfigMaps, "other"))
	f.Insist(w.Event(dockyards.Gateways, "other"))
	f.Insist(w.Event(dockyards.Workloads, "some-app"))
	if reads, _ := f.Asked(); len(reads) > 0 {
		t.Errorf("events of others make the function read %v", reads)
	}
}

// TestConditionsOfOthersSurviveConcurrentWriters: sibling controllers write the same
// list while the function does.
func TestConditionsOfOthersSurviveConcurrentWriters(t *testing.T) {
	w := newWorld(t)
	w.environment(subject)
	const rounds = 15
	var writers sync.WaitGroup
	for _, who := range []string{"ClusterReady", "ClusterAvailable"} {
		writers.Go(func() {
			for i := range rounds {
				w.writeCondition(who, fmt.Sprintf("Round%d", i))
			}
		})
	}
	copies := []*suite.Copy{w.anchor(), w.anchor()}
	for i, f := range copies {
		writers.Go(func() {
			for n := range rounds {
				w.externalURL(fmt.Sprintf("https://example-%d-%d.com", i, n))
				f.Send(w.Event(dockyards.Clusters, subject))
			}
		})
	}
	writers.Wait()
	w.externalURL("https://example.com")
	w.converged(copies[0], subject)
	w.endpointIs(subject, "True Reconciled")
	w.ingressIs(subject, "True Ready")
	w.hostIs(subject, w.host(subject, "example.com"))
	for _, who := range []string{"ClusterReady", "ClusterAvailable"} {
		w.is(subject, who, fmt.Sprintf("True Round%d", rounds-1))
	}
	copies[0].Rests(w.events(subject)...)
}

// writeCondition does what another controller does: it reads, changes its own
// condition and stores the list, again if somebody was faster.
func (w *world) writeCondition(conditionType, reason string) {
	for {
		obj := w.Must(dockyards.Clusters, subject)
		conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		mine := map[string]any{"type": conditionType, "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2025-01-01T00:00:00Z"}
		placed := false
		for i, item := range conditions {
			if item.(map[string]any)["type"] == conditionType {
				conditions[i], placed = mine, true
			}
		}
		if !placed {
			conditions = append(conditions, mine)
		}
		if err := unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions"); err != nil {
			w.TB.Error(err)
			return
		}
		if w.stored(obj) {
			return
		}
	}
}
