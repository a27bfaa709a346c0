package perturb

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/functions/nodepool-provisioner/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// poolConditions are those of pools.
var poolConditions = []string{
	v1alpha3.ConditionKubevirtMachineTemplateReconciled, v1alpha3.ConditionTalosControlPlaneReconciled,
	v1alpha3.ConditionTalosConfigTemplateReconciled, v1alpha3.ConditionMachineDeploymentReconciled, v1alpha3.ConditionReady,
}

// lasting is what is compared of pools. Permitted differences:
//
//   - Which template carries the plain name and which one is called after its content:
//     the first that was seen has the plain one, so a change that nobody heard of before
//     the first look makes no second template.
//   - What a rollout was announced as, for the same reason.
//   - Templates that are younger than the one in use, or older and no longer used: they
//     go with a later rollout.
func lasting(w *world) map[string]string {
	w.TB.Helper()
	state := map[string]string{}
	pools, err := w.In(dockyards.NodePools).List(w.TB.Context(), metav1.ListOptions{})
	if err != nil {
		w.TB.Fatal(err)
	}
	for i := range pools.Items {
		name := pools.Items[i].GetName()
		for _, conditionType := range poolConditions {
			state[name+" "+conditionType] = w.Condition(dockyards.NodePools, name, conditionType)
		}
		state[name+" finalizers"] = fmt.Sprint(pools.Items[i].GetFinalizers())
	}
	for _, res := range []kind.Resource{dockyards.TalosControlPlanes, dockyards.MachineDeployments} {
		keepers, err := w.In(res).List(w.TB.Context(), metav1.ListOptions{})
		if err != nil {
			w.TB.Fatal(err)
		}
		for i := range keepers.Items {
			keeper := &keepers.Items[i]
			infrastructure, bootstrap := decide.References(keeper)
			state[res.Kind+"/"+keeper.GetName()] = fmt.Sprint("replicas ", suite.Text(keeper, "spec", "replicas"), ", version ", suite.Text(keeper, "spec", "version"),
				suite.Text(keeper, "spec", "template", "spec", "version"), ", deleted ", keeper.GetDeletionTimestamp() != nil)
			state[keeper.GetName()+" machines"] = suite.Bytes(w.TB, w.Must(dockyards.KubevirtMachineTemplates, infrastructure), "spec")
			if bootstrap != "" {
				state[keeper.GetName()+" bootstrap"] = suite.Bytes(w.TB, w.Must(dockyards.TalosConfigTemplates, bootstrap), "spec")
			}
		}
	}
	return state
}
