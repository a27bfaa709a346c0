package small

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/test/suite"
)

const machineSpec = `virtualMachineTemplate: {spec: {
	dataVolumeTemplates: [
		{metadata: {name: boot}, spec: {pvc: {accessModes: [ReadWriteMany], resources: {requests: {storage: 20Gi}}}, sourceRef: {kind: DataSource, name: talos}}},
		{metadata: {name: data}, spec: {storage: {resources: {requests: {storage: 50G}}}, source: {blank: {}}}}],
	template: {spec: {domain: {cpu: {cores: 3}, memory: {guest: 4Gi}, devices: {}}}}}}`

func (w *world) machine(name, spec string) {
	w.TB.Helper()
	w.Create(`{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: KubevirtMachine, metadata: {name: ` + name + `}, spec: {` + spec + `}}`)
}

func (w *world) node(name, providerID string) {
	w.TB.Helper()
	w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Node, metadata: {name: ` + name + `}, spec: {providerID: "` + providerID + `"}}`)
}

func (w *world) resources(name string) string {
	w.TB.Helper()
	return suite.Bytes(w.TB, w.Must(dockyards.Nodes, name), "status", "resources")
}

const given = `{"cpu":"3","memory":"4Gi","storage":"69799645Ki"}`

func TestANodeSaysWhatItsMachineHasBeenGiven(t *testing.T) {
	w := newWorld(t)
	w.node("a-1", "kubevirt://a-1")
	w.setStatus(dockyards.Nodes, "a-1", "cluster-api", func(status map[string]any) {
		dockyards.SetCondition(status, metav1.Condition{Type: v1alpha3.ConditionMachineReady, Status: "True", Reason: "Ready"}, metav1.Now())
	})
	f := w.capacity()
	f.Rests(w.Event(dockyards.Nodes, "a-1")) // its machine is awaited
	w.machine("a-1", machineSpec)
	conditions := suite.Bytes(t, w.Must(dockyards.Nodes, "a-1"), "status", "conditions")
	f.Insist(w.Event(dockyards.KubevirtMachines, "a-1"))
	if got := w.resources("a-1"); got != given {
		t.Errorf("the resources are %s, want %s", got, given)
	}
	if after := suite.Bytes(t, w.Must(dockyards.Nodes, "a-1"), "status", "conditions"); after != conditions {
		t.Errorf("the conditions were %s and are %s", conditions, after)
	}
	f.Rests(w.Event(dockyards.Nodes, "a-1"), w.Event(dockyards.KubevirtMachines, "a-1"))
}

func TestEachEventReachesTheNode(t *testing.T) {
	for name, wake := range map[string]func(w *world, f *suite.Copy){
		"Node":              func(w *world, f *suite.Copy) { f.Insist(w.Event(dockyards.Nodes, "node")) },
		"MachineByProvider": func(w *world, f *suite.Copy) { f.Insist(w.Event(dockyards.KubevirtMachines, "machine")) },
		"Resync":            func(_ *world, f *suite.Copy) { f.Resync() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.node("node", "kubevirt://machine")
			w.machine("machine", machineSpec)
			wake(w, w.capacity())
			if got := w.resources("node"); got != given {
				t.Errorf("the resources are %s", got)
			}
		})
	}
	t.Run("Instance", func(t *testing.T) {
		w := newWorld(t)
		w.node("machine", "kubevirt://machine")
		w.machine("machine", machineSpec)
		w.capacity().Insist(suite.Changed("update", "kubevirt.io/v1", "VirtualMachineInstance", w.NS, "machine"))
		if got := w.resources("machine"); got != given {
			t.Errorf("the resources are %s", got)
		}
	})
	t.Run("NodeOfClusterAPIOrCore", func(t *testing.T) {
		w := newWorld(t)
		for _, apiVersion := range []string{"v1", "cluster.x-k8s.io/v1beta1"} {
			if got := w.capacity().Send(suite.Changed("update", apiVersion, "Node", "", "node")); got != http.StatusBadRequest {
				t.Errorf("a Node of %s was answered %d: it is another kind", apiVersion, got)
			}
		}
	})
}

func TestMachinesThatSayLittle(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"Nothing":  {"a key is left out, nothing fails", `virtualMachineTemplate: {}`, `null`},
		"NoCPU":    {"memory alone", `virtualMachineTemplate: {spec: {template: {spec: {domain: {memory: {guest: 4096Mi}, devices: {}}}}}}`, `{"memory":"4Gi"}`},
		"Topology": {"sockets and threads multiply", `virtualMachineTemplate: {spec: {template: {spec: {domain: {cpu: {cores: 2, sockets: 2, threads: 2}, devices: {}}}}}}`, `{"cpu":"8"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.node("a", "kubevirt://a")
			w.machine("a", tc.spec)
			f := w.capacity()
			f.Insist(w.Event(dockyards.Nodes, "a"))
			if got := w.resources("a"); got != tc.want {
				t.Errorf("%s: the resources are %s, want %s", tc.reason, got, tc.want)
			}
			f.Rests(w.Event(dockyards.Nodes, "a"))
		})
	}
}

func TestNodesThatAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.machine("a", machineSpec)
	w.node("other", "aws:///a")
	w.node("path", "kubevirt://a/../../nodes/other")
	w.node("none", "kubevirt://nobody")
	w.node("a", "kubevirt://a")
	w.Patch(dockyards.Nodes, "a", `metadata: {finalizers: [cluster-api.dockyards.io/finalizer]}`)
	w.Remove(dockyards.Nodes, "a")
	before := w.Snapshot()
	f := w.capacity()
	f.Rests(w.Event(dockyards.Nodes, "other"), w.Event(dockyards.Nodes, "path"), w.Event(dockyards.Nodes, "none"), w.Event(dockyards.Nodes, "a"))
	if diff := cmp.Diff(before, w.Snapshot()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	for _, call := range f.Calls() {
		if strings.Contains(call.String(), "..") || call.Subresource != "" {
			t.Errorf("the provider ID has led to %s", call)
		}
	}
}

func TestUpstreamsNodeIsTakenOverAsItIs(t *testing.T) {
	w := newWorld(t)
	w.machine("a", machineSpec)
	w.CreateAs(upstream, `
apiVersion: dockyards.io/v1alpha3
kind: Node
metadata: {name: a, labels: {dockyards.io/cluster-name: a}}
spec: {providerID: "kubevirt://a"}
status:
  resources: {cpu: "3", memory: 4Gi, storage: 69799645Ki}
  conditions: [{type: MachineReady, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-03-01T10:00:00Z"}]
`)
	before := w.Snapshot()
	w.capacity().Rests(w.Event(dockyards.Nodes, "a"))
	if diff := cmp.Diff(before, w.Snapshot()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestAProviderThatIsNotInstalledIsAwaited: Cluster API's provider may come later.
func TestAProviderThatIsNotInstalledIsAwaited(t *testing.T) {
	w := newWorld(t)
	w.node("a", "kubevirt://a")
	w.machine("a", machineSpec)
	installed := false
	f := w.capacity(suite.WithTap(func(c suite.Call) (*http.Response, error) {
		if !installed && strings.HasPrefix(c.HTTP.URL.Path, "/apis/infrastructure.cluster.x-k8s.io") {
			return suite.Answer(c.HTTP, http.StatusNotFound), nil
		}
		return nil, nil
	}))
	f.Rests(w.Event(dockyards.Nodes, "a"), w.Event(dockyards.KubevirtMachines, "a"))
	installed = true
	f.Insist(w.Event(dockyards.KubevirtMachines, "a"))
	if got := w.resources("a"); got != given {
		t.Errorf("the resources are %s", got)
	}
}

func TestStatusesOfOthersSurviveOnNodes(t *testing.T) {
	w := newWorld(t)
	w.node("a", "kubevirt://a")
	w.machine("a", machineSpec)
	const rounds = 20
	var all sync.WaitGroup
	all.Go(func() {
		for i := range rounds {
			w.setStatus(dockyards.Nodes, "a", "cluster-api", func(status map[string]any) {
				dockyards.SetCondition(status, metav1.Condition{
					Type: v1alpha3.ConditionNodeHealthy, Status: "True", Reason: "Ready", Message: fmt.Sprintf("round %d", i),
				}, metav1.Now())
				delete(status, "resources") // as a writer of an old copy does
			})
		}
	})
	for range 3 {
		f := w.capacity()
		all.Go(func() {
			for range rounds {
				f.Send(w.Event(dockyards.Nodes, "a"))
			}
		})
	}
	all.Wait()
	f := w.capacity()
	f.Insist(w.Event(dockyards.Nodes, "a"))
	if got := w.resources("a"); got != given {
		t.Errorf("the resources are %s", got)
	}
	if _, _, message := suite.Condition(w.Must(dockyards.Nodes, "a"), v1alpha3.ConditionNodeHealthy); message != fmt.Sprintf("round %d", rounds-1) {
		t.Errorf("the last word of the neighbour is %q", message)
	}
	f.Rests(w.Event(dockyards.Nodes, "a"))
}
