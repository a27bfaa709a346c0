package machinevm

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
	"github.com/slipway-dev/slipway/test/virt/admission"
)

// samples are the Machines of deploy/samples/vitistack, each in a file of its
// name.
var samples = []string{"basic-vm", "cloud-init-secret-vm", "cloud-init-vm", "custom-vm", "networked-vm"}

func sample(t *testing.T, name string) string {
	return suite.File(t, "deploy/samples/vitistack/"+name+".yaml")
}

func TestEverySampleBecomesTheObjectsOfItsGolden(t *testing.T) {
	for _, name := range samples {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Create(sample(t, name))
			given := w.Names()
			f := w.copyOf()
			if got := f.Send(w.machineEvent(name)); got != http.StatusNoContent {
				t.Fatalf("the event was answered %d; the log:\n%s", got, f.Log)
			}
			reads, writes := f.Asked()
			t.Logf("creation took %d reads and %d writes", len(reads), len(writes))
			suite.Golden(t, name+".yaml", w.Documents(given...))
			w.acceptedStrictly("vm-" + name)
		})
	}
}

// TestWritesComeInTheOrderInWhichTheyCanBeFoundAgain lists the writes of a creation:
// whenever a copy dies, what it has made can be told by what was written before.
func TestWritesComeInTheOrderInWhichTheyCanBeFoundAgain(t *testing.T) {
	w := newSubject(t)
	f := w.copyOf()
	f.Insist(w.machineEvent(subject))
	_, writes := f.Asked()
	want := []string{
		"patch machines.vitistack.io NS/web 200",
		"create networkconfigurations.vitistack.io NS 201",
		"create network-attachment-definitions.k8s.cni.cncf.io NS 201",
		"create persistentvolumeclaims NS 201",
		"create persistentvolumeclaims NS 201",
		"create secrets NS 201",
		"create virtualmachines.kubevirt.io NS 201",
		"patch machines.vitistack.io/status NS/web 200",
		"create events.events.k8s.io NS 201",
	}
	for i := range writes {
		writes[i] = strings.ReplaceAll(writes[i], w.NS, "NS")
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// acceptedStrictly shows that KubeVirt's definition has every field that was
// written, and KubeVirt's admission no objection.
func (w *world) acceptedStrictly(name string) {
	w.t.Helper()
	vm := w.Must(kinds.VirtualMachines, name)
	for _, violation := range admission.Check(vm) {
		w.t.Errorf("KubeVirt would refuse the virtual machine: %v", violation)
	}
	if warnings := admission.Warnings(vm); len(warnings) > 0 {
		w.t.Errorf("KubeVirt would warn: %v", warnings)
	}
	again := suite.Bare(vm)
	again.SetName(name + "-again")
	again.SetOwnerReferences(nil)
	_, err := w.In(kinds.VirtualMachines).Create(w.t.Context(), again, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	if err != nil {
		w.t.Errorf("the definition of KubeVirt refuses the virtual machine: %v", err)
	}
}

// TestAnUnchangedMachineCostsOnlyReads brings all samples up on a played
// KubeVirt, stops that, and sends every event there could be.
func TestAnUnchangedMachineCostsOnlyReads(t *testing.T) {
	w := newWorld(t)
	p := w.platform()
	f := w.copyOf()
	s := w.Source(f)
	for _, name := range samples {
		w.Create(sample(t, name))
	}
	w.awaitReady(samples...)
	p.Stop()
	s.Stop()
	for _, name := range samples {
		// What the platform did last may have given no event.
		f.Insist(w.machineEvent(name))
	}
	before := w.Versions()
	still := func(reason string, f *suite.Copy) []string {
		t.Helper()
		reads, writes := f.Asked()
		if len(writes) > 0 {
			t.Errorf("%s: %d writes although nothing has changed:\n%s", reason, len(writes), strings.Join(writes, "\n"))
		}
		return reads
	}
	f.Asked()
	for _, name := range samples {
		for pass := range 3 {
			f.Insist(w.machineEvent(name))
			reads := still(fmt.Sprintf("%s, pass %d", name, pass+1), f)
			if pass == 0 {
				t.Logf("an event about %s costs %d reads:\n  %s", name, len(reads), strings.Join(reads, "\n  "))
			}
		}
		for _, ce := range []struct {
			res  kind.Resource
			name string
		}{
			{kinds.VirtualMachines, "vm-" + name},
			{kinds.VirtualMachineInstances, "vm-" + name},
			{kind.PersistentVolumeClaims, name + "-root"},
			{kinds.NetworkConfigurations, name},
			{kind.Secrets, name},
		} {
			f.Insist(w.Event(ce.res, ce.name))
			still("an event about "+ce.res.Kind+" "+ce.name, f)
		}
	}
	fresh := w.copyOf()
	fresh.Resync()
	reads := still("a resync", fresh)
	t.Logf("a resync of %d Machines costs %d reads", len(samples), len(reads))

	other := w.copyOf()
	var both sync.WaitGroup
	for _, copy := range []*suite.Copy{f, other} {
		for _, name := range samples {
			both.Go(func() { copy.Send(w.machineEvent(name)) })
		}
	}
	both.Wait()
	still("two copies at once, the first", f)
	still("two copies at once, the second", other)
	if diff := cmp.Diff(before, w.Versions()); diff != "" {
		t.Errorf("something was written although nothing has changed (-before +after):\n%s", diff)
	}
}
