package machinevm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// mangle is what delivery does to events.
type mangle func([]cloudevents.Event) []cloudevents.Event

func intact(events []cloudevents.Event) []cloudevents.Event { return events }

func none([]cloudevents.Event) []cloudevents.Event { return nil }

// mangled loses events, doubles them and delivers them in any order.
func mangled(seed uint64) mangle {
	return func(events []cloudevents.Event) []cloudevents.Event {
		chance := rand.New(rand.NewPCG(seed, uint64(len(events))))
		var out []cloudevents.Event
		for _, e := range events {
			for range chance.IntN(3) {
				out = append(out, e)
			}
		}
		chance.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out
	}
}

// history is a day in the life of six Machines. Deliver is called with the events
// since the last time. No disk is resized or dropped: a claim keeps what a Machine
// once asked for, whatever events there were.
func history(w *world, deliver func(...cloudevents.Event)) {
	w.Create(surroundings)
	specs := []string{
		subjectSpec,
		`template: medium`,
		`{template: small, networks: [{name: eth0, networkName: lan}, {name: eth1}]}`,
		`{disks: [{name: root, size: 5Gi}, {name: a, size: 1Gi}]}`,
		`{template: small, cloudInit: {userData: "#cloud-config\nx: 1\n"}}`,
		`{template: unheard-of}`,
	}
	name := func(i int) string { return fmt.Sprintf("m%d", i) }
	for i, spec := range specs {
		w.machine(name(i), spec)
		deliver(w.machineEvent(name(i)))
	}
	// Changes of Machines, of what they name, and by hand.
	w.Patch(kinds.Machines, name(0), subjectChange)
	w.Patch(kinds.Machines, name(1), `{spec: {resources: {memory: {size: 6Gi}}, running: false}}`)
	w.Patch(kinds.Machines, name(3), `{spec: {disks: [{name: root, size: 5Gi}, {name: a, size: 1Gi}, {name: b, size: 1Gi}]}}`)
	w.Patch(kind.Secrets, "source", `{stringData: {userdata: "#cloud-config\nhostname: other\n"}}`)
	w.Patch(kinds.NetworkConfigurations, "lan", `{spec: {vlan: 8}}`)
	deliver(
		w.machineEvent(name(0)), w.machineEvent(name(1)), w.machineEvent(name(3)),
		w.Event(kind.Secrets, "source"), w.Event(kinds.NetworkConfigurations, "lan"),
	)
	w.Patch(kinds.Machines, name(5), `{spec: {template: small}}`)
	w.Remove(kinds.Machines, name(2))
	w.Remove(kinds.Machines, name(4))
	if w.Get(kinds.VirtualMachines, "vm-"+name(1)) != nil {
		w.Remove(kinds.VirtualMachines, "vm-"+name(1))
	}
	deliver(
		w.machineEvent(name(5)), w.machineEvent(name(2)), w.machineEvent(name(4)),
		w.Event(kinds.VirtualMachines, "vm-"+name(1)), w.Event(kinds.VirtualMachines, "vm-"+name(2)),
		w.Event(kind.PersistentVolumeClaims, name(2)+"-root"), w.Event(kinds.NetworkConfigurations, name(0)),
	)
}

// TestLostDoubledAndReorderedEventsEndTheSameAfterOneResync plays the same history
// with every event, with none, and with some of them in disorder.
func TestLostDoubledAndReorderedEventsEndTheSameAfterOneResync(t *testing.T) {
	play := func(t *testing.T, m mangle) map[string]string {
		t.Helper()
		w := newWorld(t)
		f := w.copyOf()
		var late []cloudevents.Event
		history(w, func(events ...cloudevents.Event) {
			// What arrives now, and what arrives when all is over.
			for i, e := range m(events) {
				if i%3 == 0 {
					late = append(late, e)
					continue
				}
				f.Send(e)
			}
		})
		for _, e := range m(late) {
			f.Send(e)
		}
		f.Resync()
		w.release()
		return w.State()
	}
	want := play(t, intact)
	if len(want) < 15 {
		t.Fatalf("the history ends with %d objects: it shows nothing", len(want))
	}
	type way struct {
		name string
		mangle
	}
	ways := []way{{"EveryEventLost", none}}
	for seed := range uint64(6) {
		ways = append(ways, way{fmt.Sprintf("Seed%d", seed), mangled(seed)})
	}
	suite.Each(t, ways, func(x way) string { return x.name }, func(t *testing.T, x way) {
		if diff := cmp.Diff(want, play(t, x.mangle)); diff != "" {
			t.Errorf("(-calm +%s):\n%s", x.name, diff)
		}
	})
}

// TestOneResyncBringsUpAndTakesDownWhatNoEventToldOf does it with KubeVirt: the
// function sleeps while Machines come and go.
func TestOneResyncBringsUpAndTakesDownWhatNoEventToldOf(t *testing.T) {
	w := newWorld(t)
	w.platform()
	f := w.copyOf()
	w.Create(sample(t, "basic-vm"), sample(t, "custom-vm"))
	f.Resync()
	for _, name := range []string{"basic-vm", "custom-vm"} {
		w.Await(kinds.VirtualMachines, "vm-"+name, "runs", running)
	}
	f.Resync()
	w.awaitReady("basic-vm", "custom-vm")
	w.Remove(kinds.Machines, "custom-vm")
	f.Resync()
	w.Await(kinds.VirtualMachines, "vm-custom-vm", "is gone", suite.Gone)
	w.Await(kinds.VirtualMachineInstances, "vm-custom-vm", "is gone", suite.Gone)
	f.Resync()
	w.Await(kinds.Machines, "custom-vm", "is gone", suite.Gone)
	w.Await(kind.PersistentVolumeClaims, "custom-vm-data", "is gone", suite.Gone)
	w.awaitReady("basic-vm")
}

// TestAResyncGoesThroughAllNamespacesPageByPage shows that one resync reaches every
// Machine of the cluster, under the function's own rights.
func TestAResyncGoesThroughAllNamespacesPageByPage(t *testing.T) {
	first, second := newWorld(t), newWorld(t)
	const machines = 60 // more than fit on a page
	for i := range machines / 2 {
		first.machine(fmt.Sprintf("m%d", i), `{template: unheard-of}`)
		second.machine(fmt.Sprintf("m%d", i), `{template: unheard-of}`)
	}
	second.machine("last", `{template: small}`)
	first.copyOf(suite.Everywhere).Resync()
	for _, w := range []*world{first, second} {
		for i := range machines / 2 {
			if got := w.condition(fmt.Sprintf("m%d", i), "Ready"); got != "False TemplateNotFound" {
				t.Errorf("Machine m%d was not reached: Ready is %q", i, got)
			}
		}
	}
	second.Must(kinds.VirtualMachines, "vm-last")
}
