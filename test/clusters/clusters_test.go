package clusters

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

const annotation = "vitistack.io/kubevirt-config"

func TestMachinesOnAnotherCluster(t *testing.T) {
	w := newWorld(t)
	good := w.credential(machinevm.Name)

	w.secret("east", good)
	w.config("east")
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"the only cluster is assigned", w.placedBySingle},
		{"status comes back", w.statusComesBack},
		{"a rotated kubeconfig counts at once", func() { w.rotated(good) }},
		{"bad kubeconfigs are refused", func() { w.badKubeconfigs(good) }},
		{"a cluster that is down is waited for", w.downAndBack},
		{"a dead cluster costs one timeout", w.deadClusterCostsOneTimeout},
		{"orphans go on remote clusters too", w.orphans},
	} {
		started := time.Now()
		step.do()
		t.Logf("%s: %s", step.name, time.Since(started).Round(time.Millisecond))
		if t.Failed() {
			return // each step stands on the one before
		}
	}
}

// placedBySingle: PL-1 rank 5, PL-2, PL-9, ID-8.
func (w *world) placedBySingle() {
	w.machine("web", "")
	w.settled("web")
	machine := w.Must(kinds.Machines, "web")
	if machine.GetAnnotations()[annotation] != "east" || suite.Text(machine, "status", "kubevirtConfigRef") != "east" {
		w.t.Errorf("PL-2: the annotation is %q, the status %q; the log:\n%s", machine.GetAnnotations()[annotation], suite.Text(machine, "status", "kubevirtConfigRef"), w.f.Log)
	}
	if !strings.Contains(w.f.Log.String(), "Automatically assigned KubevirtConfig to machine") {
		w.t.Error("PL-2: the log does not say that a cluster was assigned")
	}
	vm := w.remote.Must(kinds.VirtualMachines, "vm-web")
	if len(vm.GetOwnerReferences()) > 0 {
		w.t.Errorf("ID-8: an owner on another cluster: %v", vm.GetOwnerReferences())
	}
	w.remote.Must(kind.PersistentVolumeClaims, "web-root")
	w.Must(kinds.NetworkConfigurations, "web")
	if labels := w.remote.Must(kind.Namespaces, w.NS).GetLabels(); labels["vitistack.io/managed-by"] != "kubevirt-operator" {
		w.t.Errorf("PL-9: the labels of the namespace are %v", labels)
	}
	if w.Get(kinds.VirtualMachines, "vm-web") != nil {
		w.t.Error("the virtual machine is on the management cluster")
	}
}

func (w *world) statusComesBack() {
	w.runs(w.remote, "vm-web")
	w.settled("web")
	machine := w.Must(kinds.Machines, "web")
	w.ready("web", "True Running", "")
	if suite.Text(machine, "status", "nodeName") != "node-1" || suite.Text(machine, "status", "phase") != "Running" {
		w.t.Errorf("the status is %v", machine.Object["status"])
	}
	before := machine.GetResourceVersion()
	w.settled("web")
	if after := w.Must(kinds.Machines, "web").GetResourceVersion(); after != before {
		w.t.Error("RC-4: the Machine is written at the fixpoint")
	}
}

// rotated: CN-2, a kubeconfig that was replaced counts at once, for good and bad.
func (w *world) rotated(good []byte) {
	wrong := strings.Replace(string(good), "token: ", "token: x", 1)
	w.secret("east", []byte(wrong))
	w.settled("web")
	w.ready("web", "Unknown ClusterUnreachable", "east")
	w.secret("east", w.credential(machinevm.Name)) // a new token
	w.settled("web")
	w.ready("web", "True Running", "")
	w.secret("east", w.credential(weak))
	w.machine("refused", "")
	w.settled("refused")
	w.ready("refused", "False KubeVirtApiError", "forbidden")
	w.secret("east", good)
	w.settled("refused")
	w.ready("refused", "False Creating", "")
}

// badKubeconfigs: CN-1, CN-3, and nobody else is harmed.
func (w *world) badKubeconfigs(good []byte) {
	for name, c := range map[string]struct{ kubeconfig, says string }{
		"a program": {kubeconfig: strings.Replace(string(good), "token: ", "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/false}\n    password: ", 1), says: "exec"},
		"a file":    {kubeconfig: strings.Replace(string(good), "token: ", "tokenFile: /etc/", 1), says: "tokenFile"},
		"nothing":   {kubeconfig: "no kubeconfig", says: "cannot be read"},
	} {
		w.secret("east", []byte(c.kubeconfig))
		w.settled("web")
		w.ready("web", "False KubevirtConfigInvalid", c.says)
		if _, _, message := suite.Condition(w.Must(kinds.Machines, "web"), "Ready"); strings.Contains(message, "/bin/false") {
			w.t.Errorf("%s: the condition quotes the kubeconfig: %s", name, message)
		}
	}
	w.At("default").Remove(kind.Secrets, "east")
	w.settled("web")
	w.ready("web", "False KubevirtConfigInvalid", `"east"`)
	w.secret("east", good)
	w.settled("web")
	w.ready("web", "True Running", "")
}

// downAndBack: CN-5, DL-7, EV-5.
func (w *world) downAndBack() {
	content, err := w.Env.Cluster.AdminKubeconfig()
	if err != nil {
		w.t.Fatal(err)
	}
	w.secret("home", content)
	w.config("home")
	w.machine("near", "kubevirtConfigRef: home")
	before := suite.Text(w.Must(kinds.Machines, "web"), "status", "phase")

	w.east.Cut()
	if got := w.cluster(event.TypeDisconnected, "east"); got != http.StatusNoContent {
		w.t.Errorf("the event that a cluster went was answered %d", got)
	}
	w.ready("web", "Unknown ClusterUnreachable", "east")
	if after := suite.Text(w.Must(kinds.Machines, "web"), "status", "phase"); after != before {
		w.t.Errorf("CN-5: the phase is %q and was %q", after, before)
	}
	w.f.Resync()
	w.ready("near", "False Creating", "")
	near := w.Must(kinds.VirtualMachines, "vm-near")
	if refs := near.GetOwnerReferences(); len(refs) != 1 || refs[0].Name != "near" {
		w.t.Errorf("ID-8: the management cluster under a name: the owners are %v", refs)
	}
	w.machine("lost", "")
	if got := w.event("lost"); got != http.StatusServiceUnavailable {
		w.t.Errorf("PL-4: a search with a cluster that is down was answered %d", got)
	}
	w.Remove(kinds.Machines, "web")
	w.settled("web")
	w.ready("web", "Unknown ClusterUnreachable", "the deletion waits for it")

	w.east.Open()
	if got := w.cluster(event.TypeConnected, "east"); got != http.StatusNoContent {
		w.t.Errorf("the event that a cluster came was answered %d; the log:\n%s", got, w.f.Log)
	}
	w.ready("lost", "False PlacementAmbiguous", "2 configs are available")
	if w.remote.Get(kinds.VirtualMachines, "vm-web") != nil {
		w.t.Error("DL-7: the cluster is back, and the virtual machine is still there")
	}
	w.settledOrGone("web")
	if w.Get(kinds.Machines, "web") != nil {
		w.t.Errorf("DL-7: the Machine is still there; the log:\n%s", w.f.Log)
	}
	claim := w.remote.Get(kind.PersistentVolumeClaims, "web-root")
	if claim != nil && claim.GetDeletionTimestamp() == nil {
		w.t.Error("DL-2: the claim on the remote cluster stays")
	}
}

func (w *world) settledOrGone(name string) {
	for range 3 {
		if w.Get(kinds.Machines, name) == nil {
			return
		}
		w.event(name)
	}
}

// deadClusterCostsOneTimeout: EV-5, a cluster that lets everybody wait is asked
// once per page of a resync.
func (w *world) deadClusterCostsOneTimeout() {
	const many = 20
	for i := range many {
		w.machine(fmt.Sprintf("m%d", i), "kubevirtConfigRef: east")
	}
	w.machine("neighbour", "kubevirtConfigRef: home")
	w.east.Stall()
	started := time.Now()
	w.f.TryResync() // the Machine that is searched for has to be tried again
	if took := time.Since(started); took > 12*time.Second {
		w.t.Errorf("EV-5: a resync of %d Machines on a cluster that does not answer took %s, one timeout is 1s", many, took)
	}
	for i := range many {
		w.ready(fmt.Sprintf("m%d", i), "Unknown ClusterUnreachable", "east")
	}
	w.ready("neighbour", "False Creating", "")
	w.east.Cut()
	w.east.Open()
	w.cluster(event.TypeConnected, "east")
	w.ready("m0", "False Creating", "")
}

// orphans: a virtual machine on the remote cluster whose Machine was taken away
// by force goes with the next resync.
func (w *world) orphans() {
	w.Patch(kinds.Machines, "m0", `{metadata: {finalizers: null}}`)
	w.forget(kinds.Machines, w.NS, "m0")
	w.remote.Must(kinds.VirtualMachines, "vm-m0")
	w.f.Resync()
	if w.remote.Get(kinds.VirtualMachines, "vm-m0") != nil {
		w.t.Errorf("an orphan stays on the remote cluster; the log:\n%s", w.f.Log)
	}
	w.remote.Must(kinds.VirtualMachines, "vm-m1")
}
