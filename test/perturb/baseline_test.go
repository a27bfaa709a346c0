package perturb

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	baselineapplier "github.com/slipway-dev/slipway/functions/baseline-applier"
	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/decide"
	platform "github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

// hcos are HyperConvergeds in the version that the reduced definition has.
var hcos = func() kind.Resource {
	res := platform.HyperConvergeds
	res.Versions = []string{"v1beta1"}
	return res
}()

var baseline = &scenario{
	fn: "baseline-applier", alone: true,
	suite: suite.New(suite.Options{
		Specs: []reconcile.Spec{baselineapplier.DefaultSpec()}, Partial: true,
		CRDs:  []string{crds.OpenShiftMachineConfig, crds.PrometheusRules, crds.MetalLB, crds.UIPlugins, crds.AAQ},
		Files: []string{"test/baseline/crds"}, Kinds: []kind.Resource{hcos, kind.ConfigMaps}, Others: []kind.Resource{platform.Nodes},
		Objects: []*unstructured.Unstructured{named("openshift-mtv"), named("metallb-system"), named("openshift-kube-descheduler-operator")},
	}),
	given: func(w *world) {
		wipe(w)
		w.create(`{apiVersion: ` + hcos.APIVersion() + `, kind: HyperConverged, metadata: {name: ` + decide.HCOName + `}, spec: {}}`)
	},
	start: func(w *world, options ...suite.Option) *suite.Copy {
		settings := baselineapplier.DefaultSettings()
		settings.HCONamespace, settings.StateNamespace = w.NS, w.NS
		return run(w, baselineapplier.Declare(settings), options...)
	},
	steps: []func(w *world){
		func(w *world) {
			w.Patch(hcos, decide.HCOName, `{metadata: {annotations: {platform.kubevirt.io/enable-loadaware: "true", platform.kubevirt.io/enable-aaq: "true"}}}`)
		},
		func(w *world) {
			w.Patch(hcos, decide.HCOName, `{metadata: {annotations: {platform.kubevirt.io/enable-cpu-manager: "true"}}}`)
		},
		func(w *world) { edited(w, "descheduler-loadaware", `{"spec":{"mode":"Predictive"}}`) },
	},
	state: assets,
}

func named(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}}
}

// of is the client for an asset's object.
func of(w *world, a catalog.Asset) dynamic.ResourceInterface {
	res := a.Resource()
	if a.Name == catalog.HCO {
		res = hcos
	}
	return w.At(a.NamespaceIn(w.NS)).In(res)
}

// wipe takes away what a run before has left: the objects of the baseline have fixed
// names.
func wipe(w *world) {
	for _, a := range catalog.BuiltIn().Assets {
		if a.Name != catalog.HCO {
			_ = of(w, a).Delete(context.Background(), a.Object, metav1.DeleteOptions{})
		}
	}
}

// edited is an asset's object that somebody changes, if it is there.
func edited(w *world, name, body string) {
	w.TB.Helper()
	a, _ := catalog.BuiltIn().Find(name)
	_, _ = of(w, a).Patch(w.TB.Context(), a.Object, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "person"})
}

// assets are the objects of the baseline, and what the function holds of each.
func assets(w *world) map[string]string {
	w.TB.Helper()
	state := map[string]string{}
	for _, a := range catalog.BuiltIn().Assets {
		obj, err := of(w, a).Get(w.TB.Context(), a.Object, metav1.GetOptions{})
		if err == nil {
			state[a.Name] = fmt.Sprint(obj.Object["spec"], obj.GetLabels())
		}
	}
	var outcomes []string
	for name, asset := range decide.ReadState(w.Get(kind.ConfigMaps, decide.StateName)).Assets {
		outcomes = append(outcomes, name+" "+string(asset.Outcome))
	}
	slices.Sort(outcomes)
	state["outcomes"] = fmt.Sprint(outcomes)
	return state
}
