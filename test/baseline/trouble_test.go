package baseline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// calls are the numbers of calls at which something goes wrong.
func calls(most int, some ...int) []int {
	if !suite.Exhaustive() {
		return some
	}
	all := make([]int, most)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// TestACopyThatWasHeldUndoesNothing: it goes on, at any call, with what it read before
// the HyperConverged changed and another copy had followed.
func TestACopyThatWasHeldUndoesNothing(t *testing.T) {
	for _, n := range calls(40, 8, 10, 13) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newScene(t, everything())
			s.run().Resync()
			gate := suite.NewGate(n)
			slow := s.run(suite.WithTap(gate.Tap))
			quick := s.run()
			s.edit("admin", "descheduler-loadaware", `{"spec":{"mode":"Predictive"}}`)
			finish, held := gate.Begin(slow, s.changed("descheduler-loadaware"))
			s.annotate(catalog.HCO, decide.AnnotationPatch, `[{"op":"replace","path":"/spec/liveMigrationConfig/parallelMigrationsPerCluster","value":7}]`)
			quick.Insist(s.changed(catalog.HCO))
			finish()
			if got := s.value("descheduler-loadaware", "spec", "evictionLimits", "total"); got != int64(7) {
				t.Errorf("held at call %d (%v), it brought back %v", n, held, got)
			}
			if got := s.value("descheduler-loadaware", "spec", "mode"); got != "Automatic" {
				t.Errorf("the mode is %v", got)
			}
		})
	}
}

// TestTheNewerVersionOfTheHyperConvergedIsSpoken where it is served.
func TestTheNewerVersionOfTheHyperConvergedIsSpoken(t *testing.T) {
	s := newScene(t, everything())
	crd := s.Must(kind.CRDs, "hyperconvergeds.hco.kubevirt.io")
	// A version that objects were stored in cannot be taken back.
	defer func() {
		s.Remove(kind.CRDs, crd.GetName())
		s.Await(kind.CRDs, crd.GetName(), "is gone", suite.Gone)
		s.Apply(string(must(t)(suite.Bare(withoutStatus(crd)).MarshalJSON())))
	}()
	s.Update(kind.CRDs, crd.GetName(), "person", func(obj *unstructured.Unstructured) {
		versions, _, _ := unstructured.NestedSlice(obj.Object, "spec", "versions")
		versions[0].(map[string]any)["storage"] = false
		versions = append(versions, map[string]any{
			"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
		_ = unstructured.SetNestedSlice(obj.Object, versions, "spec", "versions")
	})
	newer := hcos
	newer.Versions = []string{"v1"}
	for began := time.Now(); time.Since(began) < suite.Patience; {
		if _, err := s.In(newer).Get(t.Context(), decide.HCOName, metav1.GetOptions{}); err == nil {
			break
		}
	}
	// The other version's values are none of this one.
	s.Update(newer, decide.HCOName, "person", func(obj *unstructured.Unstructured) {
		obj.Object["spec"] = map[string]any{
			"featureGates":   []any{map[string]any{"name": "CPUManager", "state": "Enabled"}},
			"virtualization": map[string]any{"liveMigrationConfig": map[string]any{"network": "fast"}},
		}
	})
	f := s.run()
	f.Resync()
	f.Rests(s.changed(catalog.HCO))
	hco := s.Must(newer, decide.HCOName)
	if got := suite.Text(hco, "spec", "virtualization", "tuningPolicy"); got != "highBurst" {
		t.Errorf("the policy is %q: %v", got, hco.Object["spec"])
	}
	if _, isList := hco.Object["spec"].(map[string]any)["featureGates"].([]any); !isList {
		t.Errorf("the list of gates was touched: %v", hco.Object["spec"])
	}
	if s.live("kubelet-cpu-manager") == nil || s.value("descheduler-loadaware", "spec", "evictionLimits", "total") != int64(5) {
		t.Error("gates or live migration settings are not read from where the newer version has them")
	}
}

func TestARecordThatIsLostBeginsAnew(t *testing.T) {
	s := newScene(t, nil)
	f := s.run()
	f.Resync()
	before := s.versions()
	s.Patch(kind.ConfigMaps, decide.StateName, `{data: {psi-enable: "{", _platform: "["}}`)
	f.Resync()
	if s.memory().Lost != "" || s.told("")[decide.ReasonStateLost] != 1 {
		t.Errorf("it is lost (%s), or nobody was told: %v", s.memory().Lost, s.told(""))
	}
	s.Remove(kind.ConfigMaps, decide.StateName)
	f.Resync()
	if diff := cmp.Diff(before, s.versions()); diff != "" {
		t.Errorf("objects were written because a record was lost (-before +after):\n%s", diff)
	}
	f.Rests()
}

func TestPlanModeWritesNothing(t *testing.T) {
	s := newScene(t, map[string]string{"slipway.dev/mode": "plan"})
	f := s.run()
	f.Resync()
	if w := writes(f); slices.ContainsFunc(w, func(request string) bool { return !strings.Contains(request, "dry-run") }) {
		t.Errorf("it writes %v", w)
	}
	if s.live("psi-enable") != nil {
		t.Error("something was made")
	}
}
