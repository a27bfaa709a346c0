package decide

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/render"
)

// Reasons of conditions that are not upstream's.
const (
	ReasonTemplateNotAllowed = "WorkloadTemplateNotAllowed"
	ReasonNotOwned           = "ObjectNotOwned"
	ReasonInventoryInvalid   = "InventoryInvalid"
	ReasonPruning            = "Pruning"
	ReasonDeleting           = v1alpha3.ReasonDeleting
	ReasonKustomization      = "KustomizationFailed"
	ReasonHelmRelease        = "HelmReleaseFailed"
	ReasonSource             = "SourceFailed"
)

// messageMax bounds what is copied from others into a message, in bytes.
const messageMax = 256

// problem is why the template phase stopped.
type problem struct {
	reason, message string
	// waiting: something else is awaited, nobody has to change anything.
	waiting bool
}

// view is one decision while it is made: what is known, what follows from it, and
// what shall be written.
type view struct {
	in       Input
	known    plan.Answers
	workload *unstructured.Unstructured
	scope    render.Scope

	old inventory
	// invalid is why the inventory cannot be used.
	invalid string

	// templated: the Workload names a template.
	templated bool
	problem   *problem
	// hash is that of the render that would be made; stopped tells that it was
	// stopped just now.
	hash    string
	stopped bool

	objects []render.Object
	// going are wanted objects that are being deleted; leaving are unwanted ones that
	// are still there.
	going, leaving []Found
	// forgetting are entries of the inventory that go in another round.
	forgetting inventory
	// lost are objects with our marks that stand in no inventory.
	lost []Found
	// reinstalled are HelmReleases whose change makes Flux install anew.
	reinstalled []string
	// capped: one run deletes no more.
	capped bool

	needs   []plan.Need
	reasons []string
	plan    plan.Plan
}

func newView(in Input, known plan.Answers) *view {
	v := &view{
		in: in, known: known, workload: in.Workload,
		scope: render.ScopeOf(in.Workload, dockyards.ClusterOf(in.Workload)),
	}
	v.old, v.invalid = parseInventory(in.Workload.GetAnnotations()[AnnotationInventory], in.Settings.Rules.Allowed)
	return v
}

func (v *view) deleting() bool { return v.workload.GetDeletionTimestamp() != nil }

func (v *view) held() bool { return slices.Contains(v.workload.GetFinalizers(), Finalizer) }

func (v *view) stop(reason, format string, args ...any) {
	v.problem = &problem{reason: reason, message: clip.Line(fmt.Sprintf(format, args...), 1024)}
	v.reason("%s: %s", reason, v.problem.message)
}

func (v *view) wait(reason, format string, args ...any) {
	v.stop(reason, format, args...)
	v.problem.waiting = true
}

func (v *view) reason(format string, args ...any) {
	v.reasons = append(v.reasons, fmt.Sprintf(format, args...))
}

// ask looks up a further need. Not ok: it has not been answered yet, or was refused,
// which stops the phase.
func (v *view) ask(need plan.Need) (plan.Answer, bool) {
	answer, ok := v.known.To(need)
	switch {
	case !ok:
		v.needs = append(v.needs, need)
		return plan.Answer{}, false
	case answer.Fault != nil:
		v.stop(v1alpha3.ReasonReconcileFailed, "%s", answer.Fault.Error())
		return plan.Answer{}, false
	}
	return answer, true
}

// live is an object as it is now; nil if there is none. Not ok: not known yet.
func (v *view) live(res kind.Resource, name string) (obj *unstructured.Unstructured, ok bool) {
	for _, found := range v.in.Objects {
		if found.Resource.String() == res.String() && found.Object.GetName() == name {
			return found.Object, true
		}
	}
	need := plan.Need{Resource: res, Name: name}
	if res.Namespaced {
		need.Namespace = v.scope.Namespace
	}
	answer, ok := v.ask(need)
	return answer.Object, ok
}

// liveAs is the same in the version that an intent speaks.
func (v *view) liveAs(res kind.Resource, intent *unstructured.Unstructured) (obj *unstructured.Unstructured, ok bool) {
	obj, ok = v.live(res, intent.GetName())
	version := intent.GroupVersionKind().Version
	if !ok || obj == nil || obj.GroupVersionKind().Version == version {
		return obj, ok
	}
	res.Versions = []string{version}
	answer, ok := v.ask(plan.Need{Resource: res, Namespace: v.scope.Namespace, Name: intent.GetName()})
	return answer.Object, ok
}

func name(res kind.Resource, obj *unstructured.Unstructured) string {
	return res.Kind + "/" + obj.GetName()
}

// condition is a condition of an object, as its own controller wrote it.
type condition struct {
	status, reason, message string
	generation              int64
}

func conditionOf(obj *unstructured.Unstructured, conditionType string) (c condition, found bool) {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range list {
		fields, _ := item.(map[string]any)
		if fields["type"] != conditionType {
			continue
		}
		c.status, _ = fields["status"].(string)
		c.reason, _ = fields["reason"].(string)
		c.message, _ = fields["message"].(string)
		c.generation, _ = fields["observedGeneration"].(int64)
		return c, true
	}
	return c, false
}

func isTrue(obj *unstructured.Unstructured, conditionType string) bool {
	c, _ := conditionOf(obj, conditionType)
	return c.status == string(metav1.ConditionTrue)
}
