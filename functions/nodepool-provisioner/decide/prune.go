package decide

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// prune plans the removal of templates that nothing names any more. It looks only
// when everything about the pool is known and as it shall be.
func (v *view) prune() {
	if len(v.needs) > 0 || len(v.in.Refused) > 0 || v.handsOff || v.today == "" || v.template.bad() || v.config.bad() {
		return
	}
	if v.live != nil && v.live.GetAnnotations()[v1alpha3.AnnotationRolloutInputs] != v.today {
		return
	}
	if len(v.templates)+len(v.scaling)+len(v.rolling)+len(v.references) > 0 {
		return
	}
	for _, s := range v.shelves() {
		for _, obj := range v.spare(s) {
			if used, known := v.used(s, obj.GetName()); known && !used {
				v.remove(&v.pruning, s.res, obj, "nothing names the template any more")
			}
		}
	}
}

// used tells whether a machine, or a generation of machines, still names a template.
func (v *view) used(s *shelf, name string) (used, known bool) {
	known = true
	for _, res := range s.clones {
		answer, ok := v.ask(s.verdict, plan.Need{Resource: res, Namespace: v.namespace()})
		known = known && ok
		for i := range answer.Items {
			used = used || answer.Items[i].GetAnnotations()[clonedFrom] == name
		}
	}
	if v.controlPlane() {
		return used, known
	}
	answer, ok := v.ask(s.verdict, plan.Need{Resource: dockyards.MachineSets, Namespace: v.namespace()})
	for i := range answer.Items {
		used = used || namedBy(&answer.Items[i], s, name)
	}
	return used, known && ok
}

// namedBy tells whether a generation of machines names a template. Its fields lie
// where those of a MachineDeployment do.
func namedBy(set *unstructured.Unstructured, s *shelf, name string) bool {
	return named(at(set.Object, deploymentRoller.infrastructure...), s.res) == name ||
		named(at(set.Object, deploymentRoller.bootstrap...), s.res) == name
}
