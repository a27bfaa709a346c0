package decide

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/render"
)

// Settled tells whether a Workload's inventory names everything that is the
// Workload's, and how that is read: an event that changes nothing, which most are, then
// costs a read for each object instead of a list for each kind. It does after a
// reconcile that found everything in order: what carries the Workload's marks and stands
// in no inventory would have been said.
func Settled(workload *unstructured.Unstructured, s Settings) (needs []plan.Need, settled bool) {
	own, _ := conditionOf(workload, v1alpha3.ConditionWorkloadTemplateReconciled)
	busy, _ := conditionOf(workload, v1alpha3.ConditionReconciling)
	annotations := workload.GetAnnotations()
	if own.status != string(metav1.ConditionTrue) || own.message != "" || own.generation != workload.GetGeneration() ||
		busy.reason == ReasonPruning || annotations[AnnotationPruneOrphans] == "true" || dockyards.Going(workload) {
		return nil, false
	}
	recorded, problem := parseInventory(annotations[AnnotationInventory], s.Rules.Allowed)
	if problem != "" || annotations[AnnotationInventory] == "" {
		return nil, false
	}
	for _, entry := range recorded {
		res, _ := render.Find(s.Rules.Allowed, entry.Group, entry.Kind)
		if !entry.known() {
			return nil, false
		}
		need := plan.Need{Resource: res, Name: entry.Name}
		if res.Namespaced {
			need.Namespace = workload.GetNamespace()
		}
		needs = append(needs, need)
		if _, given := recorded.find(render.GitRepositories, entry.Name); res.Kind == render.Worktrees.Kind && !given {
			need.Resource = render.GitRepositories
			needs = append(needs, need)
		}
	}
	return needs, true
}
