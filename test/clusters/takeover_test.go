package clusters

import (
	"maps"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// fleet are the Machines of an installation that has one cluster so far.
var fleet = []string{"runs", "stopped", "networked", "without-vm"}

// settle builds up the installation: one Machine runs, one is off, one has a network
// and cloud-init, and one has lost its virtual machine a moment ago.
func (w *world) settle() {
	w.t.Helper()
	w.Create(`
apiVersion: vitistack.io/v1alpha1
kind: NetworkConfiguration
metadata: {name: lan}
spec: {bridge: br7, vlan: 7}
---
apiVersion: v1
kind: Secret
metadata: {name: init}
stringData: {userdata: "#cloud-config"}
`)
	w.machine("runs", `disks: [{name: data, size: 1Gi}]`)
	w.machine("stopped", `running: false`)
	w.machine("networked", `networks: [{name: eth0, networkName: lan}], cloudInit: {secretRef: {name: init}}`)
	w.machine("without-vm", "")
	for _, name := range fleet {
		w.settled(name)
		w.ready(name, "False Creating", "")
	}
	w.runs(w.World, "vm-runs")
	w.Patch(kinds.VirtualMachines, "vm-stopped", `{status: {printableStatus: Stopped}}`, "status")
	for _, name := range fleet {
		w.settled(name)
	}
	w.ready("runs", "True Running", "")
	w.ready("stopped", "False Stopped", "")
	w.Remove(kinds.VirtualMachines, "vm-without-vm")
}

// kept are the children on the management cluster, with everything of theirs that
// may not change.
func (w *world) kept() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for key, obj := range w.Objects() {
		if obj.GetKind() != kinds.Machines.Kind && obj.GetKind() != "Secret" {
			all[key] = string(obj.GetUID()) + " " + suite.Bytes(w.t, obj, "spec")
		}
	}
	return all
}

// TestASingleClusterThatGainsConfigsKeepsEverything: the installation has run with
// no KubevirtConfig known, then gains two, one of which leads to the very cluster it
// runs on.
func TestASingleClusterThatGainsConfigsKeepsEverything(t *testing.T) {
	w := newWorld(t)
	w.withoutConfigs()
	w.settle()
	for _, name := range fleet {
		if annotation := w.Must(kinds.Machines, name).GetAnnotations()[annotation]; annotation != "" {
			t.Errorf("PL-8: Machine %q is placed on %q, and there are no configs", name, annotation)
		}
	}
	before, machines := w.kept(), w.Lives()

	w.Apply(suite.File(t, "api/vitistack/crds/vitistack.io_kubevirtconfigs.yaml"))
	home, err := w.Env.Cluster.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	w.secret("home", home)
	w.secret("far", w.direct(machinevm.Name))
	w.config("far")
	w.config("home")

	// The copy that has seen no configs goes on, and a new one begins.
	for _, f := range []*suite.Copy{w.f, w.copyOf()} {
		w.f = f
		var events []cloudevents.Event
		for _, name := range fleet {
			events = append(events, w.Event(kinds.Machines, name))
		}
		for range 3 {
			for _, ce := range events {
				f.Insist(ce)
			}
			if got := w.cluster(event.TypeConnected, "home"); got != 204 {
				t.Errorf("the event that the cluster came was answered %d", got)
			}
		}
		f.Resync()
		w.keeps(before, machines)
		f.Rests(events...)
	}

	// What is new goes where it is told to.
	w.machine("new", "kubevirtConfigRef: far")
	w.settled("new")
	w.remote.Must(kinds.VirtualMachines, "vm-new")
	w.keeps(before, machines)
	// The cluster that has two names is counted once, and the other one too.
	w.f.Resync()
	for _, want := range []string{`{status="Running"} 1`, `{status="Stopped"} 1`, `{status="Unknown"} 3`} {
		if line := "kubevirt_operator_virtual_machines_total" + want + "\n"; !strings.Contains(w.f.Metrics(), line) {
			t.Errorf("the metrics have no line %s", line)
		}
	}
	for _, name := range fleet {
		w.Remove(kinds.Machines, name)
		w.settledOrGone(name)
	}
	for key := range w.Objects() {
		if strings.HasPrefix(key, "VirtualMachine/") {
			t.Errorf("%s is still there after its Machine was deleted", key)
		}
	}
}

// keeps compares the children and Machines with what they were. The virtual machine
// that was deleted by hand has come back.
func (w *world) keeps(before, machines map[string]string) {
	w.t.Helper()
	now := w.kept()
	for key, is := range now {
		if was, there := before[key]; there && was != is {
			w.t.Errorf("%s was\n%s\nand is\n%s", key, was, is)
		}
	}
	for key := range before {
		if _, there := now[key]; !there {
			w.t.Errorf("%s is gone", key)
		}
	}
	lives := w.Lives()
	for key, uid := range machines {
		if lives[key] != uid {
			w.t.Errorf("%s was made anew", key)
		}
	}
	if added := slices.DeleteFunc(slices.Sorted(maps.Keys(now)), func(key string) bool { _, was := before[key]; return was || key == "NetworkConfiguration/new" }); len(added) > 0 {
		if diff := cmp.Diff([]string{"VirtualMachine/vm-without-vm"}, added); diff != "" {
			w.t.Errorf("(-the machine that was gone +what was made):\n%s", diff)
		}
	}
	for _, name := range fleet {
		machine := w.Must(kinds.Machines, name)
		if got := machine.GetAnnotations()[annotation]; got != "home" {
			is, reason, message := suite.Condition(machine, "Ready")
			w.t.Errorf("PL-2: Machine %q is placed on %q; Ready is %s %s (%s)", name, got, is, reason, message)
		}
		if vm := w.Get(kinds.VirtualMachines, "vm-"+name); vm != nil && len(vm.GetOwnerReferences()) != 1 {
			w.t.Errorf("ID-8: the supervisor under a name is still the same cluster, the owners are %v", vm.GetOwnerReferences())
		}
		if vm := w.remote.Get(kinds.VirtualMachines, "vm-"+name); vm != nil {
			w.t.Errorf("Machine %q has a second virtual machine on the other cluster", name)
		}
	}
}

// withoutConfigs takes the definition of KubevirtConfigs away until the test puts it
// back, or ends.
func (w *world) withoutConfigs() {
	w.t.Helper()
	const name = "kubevirtconfigs.vitistack.io"
	w.Remove(kind.CRDs, name)
	w.Await(kind.CRDs, name, "is gone", suite.Gone)
	definition := suite.File(w.t, "api/vitistack/crds/vitistack.io_kubevirtconfigs.yaml")
	w.t.Cleanup(func() { w.Apply(definition) })
}
