package cluster_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/cluster"
)

// settled are the outcomes of an asset that needs nothing any more.
var settled = []decide.Outcome{decide.InSync, decide.Inactive, decide.Excluded, decide.NotApplicable, decide.OptedOut}

// unsettled is what the function's own report says about assets that are not in place.
func (f *fixture) unsettled() string {
	memory, err := f.Client.Resource(kind.ConfigMaps.GVR()).Namespace(cluster.Namespace).Get(f.t.Context(), decide.StateName, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	state := decide.ReadState(memory)
	if state.Platform.HCO == "" || len(state.Assets) == 0 {
		return "nothing is recorded yet"
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(state.Assets)) {
		if asset := state.Assets[name]; !slices.Contains(settled, asset.Outcome) {
			out = append(out, fmt.Sprintf("%s is %s (%s)", name, asset.Outcome, asset.Message))
		}
	}
	return strings.Join(out, "; ")
}

func baseline(f *fixture, report *report) {
	f.kubectl("apply", "-k", filepath.Join(f.Root, "deploy/samples/baseline"))
	report.add("the baseline in place after %.1f s", f.eventually("the baseline", f.unsettled).Seconds())
	asset, found := catalog.BuiltIn().Find("kubelet-perf-settings")
	if !found {
		f.t.Fatal("the catalog has no kubelet-perf-settings")
	}
	resource := strings.ToLower(asset.Component)
	f.kubectl("patch", resource, asset.Object, "--type=merge", "--field-manager=admin", "-p", `{"spec":{"kubeletConfig":{"maxPods":250}}}`)
	took := f.eventually("what an admin changed to be as before", func() string {
		obj, err := f.Client.Resource(asset.Resource().GVR()).Get(f.t.Context(), asset.Object, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if pods, _, _ := unstructured.NestedInt64(obj.Object, "spec", "kubeletConfig", "maxPods"); pods != 500 {
			return fmt.Sprintf("maxPods is %d", pods)
		}
		return ""
	})
	report.add("an admin's change of the baseline undone after %.1f s", took.Seconds())
}
