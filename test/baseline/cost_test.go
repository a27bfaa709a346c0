package baseline

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/test/suite"
)

func TestOneChangedObjectCostsItsOwnReadsOnly(t *testing.T) {
	s := newScene(t, everything())
	s.Create(hardware)
	f := s.run()
	f.Resync()
	before := s.versions()
	s.edit("admin", "psi-enable", `{"spec":{"kernelArguments":["psi=0"]}}`)
	f.Asked()
	f.Insist(s.changed("psi-enable"))
	reads, wrote := f.Asked()
	t.Logf("drift of one object: %d reads, %d writes: %s; %s", len(reads), len(wrote), strings.Join(reads, "; "), strings.Join(wrote, "; "))
	for _, request := range append(reads, wrote...) {
		for _, other := range []string{"swap", "kubeletconfigs", "metallb", "customresourcedefinitions", "nodes"} {
			if strings.Contains(request, other) {
				t.Errorf("another asset is looked at: %s", request)
			}
		}
	}
	if len(reads) > 14 {
		t.Errorf("%d reads", len(reads))
	}
	if got := fmt.Sprint(s.value("psi-enable", "spec", "kernelArguments")); got != "[psi=1]" {
		t.Errorf("the arguments are %s", got)
	}
	after := s.versions()
	delete(before, "psi-enable")
	delete(after, "psi-enable")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("others were written (-before +after):\n%s", diff)
	}
	want := map[string]int{decide.ReasonAssetApplied: 2, decide.ReasonDriftDetected: 1, decide.ReasonDriftCorrected: 1}
	if diff := cmp.Diff(want, s.told("psi-enable")); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
}

func TestAStatusOfTheHyperConvergedCostsNothing(t *testing.T) {
	s := newScene(t, nil)
	f := s.run()
	f.Resync()
	for i := range 3 {
		s.Patch(hcos, decide.HCOName, fmt.Sprintf(`{status: {observed: %d}}`, i), "status")
		f.Asked()
		f.Insist(s.changed(catalog.HCO))
		reads, wrote := f.Asked()
		if i == 0 {
			t.Logf("a status of the HyperConverged: %d reads: %s", len(reads), strings.Join(reads, "; "))
		}
		if len(reads) > 2 || len(wrote) > 0 {
			t.Errorf("it costs %v, %v", reads, wrote)
		}
	}
	// Another HyperConverged is nobody's business.
	f.Asked()
	f.Insist(suite.Changed("update", hcos.APIVersion(), hcos.Kind, "elsewhere", decide.HCOName))
	if reads, _ := f.Asked(); len(reads) > 0 {
		t.Errorf("it is read: %v", reads)
	}
}

func TestNodesThatChangeNothingCostTwoReads(t *testing.T) {
	s := newScene(t, nil)
	s.Create(`{apiVersion: v1, kind: Node, metadata: {name: plain}}`)
	f := s.run()
	f.Resync()
	if s.live("usb-passthrough") != nil || s.live("pci-passthrough") != nil {
		t.Fatal("there is no hardware for it")
	}
	event := func(what, name string) { f.Insist(suite.Changed(what, "v1", "Node", "", name)) }
	f.Asked()
	event("update", "plain")
	if reads, wrote := f.Asked(); len(reads) > 2 || len(wrote) > 0 {
		t.Errorf("a heartbeat costs %v, %v", reads, wrote)
	}
	s.Create(hardware)
	event("add", "full")
	for _, name := range []string{"usb-passthrough", "pci-passthrough", "vfio-assign", "numa-topology"} {
		if s.live(name) == nil {
			t.Errorf("%s did not follow: %v\n%s", name, s.outcomes(), f.Log)
		}
	}
	s.Remove(kinds.Nodes, "full")
	event("delete", "full")
	if obj := s.must("usb-passthrough"); obj.GetLabels()[catalog.LabelManaged] != "" {
		t.Error("the last node with the hardware is gone, and the object still carries the label")
	}
	if s.outcome("usb-passthrough") != decide.Inactive {
		t.Errorf("it is %s", s.outcome("usb-passthrough"))
	}
}

// costs hands a copy an event, and wants it to cost so many reads at most, and no write.
func (s *scene) costs(f *suite.Copy, what, asset string, most int) {
	s.t.Helper()
	f.Asked()
	f.Insist(s.changed(asset))
	reads, wrote := f.Asked()
	// A process asks once which versions there are.
	reads = slices.DeleteFunc(reads, func(request string) bool { return strings.HasPrefix(request, "get /apis/") })
	s.t.Logf("%s: %d reads: %s", what, len(reads), strings.Join(reads, "; "))
	if len(reads) > most || len(wrote) > 0 {
		s.t.Errorf("%s: %d reads are allowed, and no write; it costs %v, %v", what, most, reads, wrote)
	}
}

func TestOnesOwnWritesCostOneRead(t *testing.T) {
	s := newScene(t, nil)
	f := s.run()
	f.Resync()
	s.costs(f, "what the resync has made", "psi-enable", 1)
	s.costs(f, "the HyperConverged, after the resync", catalog.HCO, 1)
	s.edit("admin", "psi-enable", `{"spec":{"kernelArguments":["psi=0"]}}`)
	f.Insist(s.changed("psi-enable"))
	s.costs(f, "what was put right", "psi-enable", 1)
	s.edit("admin", catalog.HCO, `{"spec":{"tuningPolicy":"annotation"}}`)
	f.Insist(s.changed(catalog.HCO))
	s.costs(f, "the HyperConverged, put right", catalog.HCO, 1)
	s.annotate("psi-enable", decide.AnnotationMode, decide.Unmanaged)
	f.Insist(s.changed("psi-enable"))
	s.costs(f, "what is unmanaged", "psi-enable", 1)
	// A copy that has just started asks the record.
	s.costs(s.run(), "another copy's write", health, 2)
	s.costs(s.run(), "another copy's HyperConverged", catalog.HCO, 2)
	// The annotation of a pause is a write like any other.
	s.fight(f, time.Second, 30)
	s.costs(f, "the annotation of a pause", health, 1)
}

// TestAnEventInTheMiddleOfACallCostsOneReadToo: it comes after the write, and before the
// call looks at it again.
func TestAnEventInTheMiddleOfACallCostsOneReadToo(t *testing.T) {
	s := newScene(t, nil)
	var f *suite.Copy
	var wrote atomic.Bool
	var during []string
	f = s.run(suite.WithTap(func(c suite.Call) (*http.Response, error) {
		switch {
		case c.Write() && c.Apply && c.Resource == "nodehealthchecks":
			wrote.Store(true)
		case c.Resource == "hyperconvergeds" && wrote.CompareAndSwap(true, false):
			before := len(f.Calls())
			if got := f.Send(s.changed(health)); got != http.StatusNoContent {
				t.Errorf("it is answered %d", got)
			}
			for _, call := range f.Calls()[before:] {
				during = append(during, call.String())
			}
		}
		return nil, nil
	}))
	f.Insist(s.event("add", health))
	during = nil
	s.edit("admin", health, `{"spec":{"minHealthy":"10%"}}`)
	f.Insist(s.changed(health))
	if len(during) != 1 || !strings.HasPrefix(during[0], "get nodehealthchecks") {
		t.Errorf("it costs %v", during)
	}
}
