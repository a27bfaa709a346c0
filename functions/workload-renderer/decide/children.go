package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/render"
)

// Types of conditions that Flux writes.
const (
	fluxReady       = "Ready"
	fluxReconciling = "Reconciling"
	fluxStalled     = "Stalled"
)

// verdict is a condition without its type and times.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

func no(reason, message string) *verdict { return &verdict{metav1.ConditionFalse, reason, message} }

// children are the Flux objects of the Workload as they are after the writes, by kind
// and name: those that it controls, and the sources that are made of its Worktrees. What
// others label with its name says nothing about it.
func (v *view) children(outcomes plan.Outcomes) []Found {
	var children []Found
	for _, found := range v.in.Objects {
		if !render.IsRelease(found.Resource) && !render.IsSource(found.Resource) {
			continue
		}
		outcome, written := outcomes.Of("", found.Resource, found.Object.GetNamespace(), found.Object.GetName())
		switch {
		case written && outcome.Result == plan.Deleted:
			continue
		case written && outcome.Object != nil:
			found.Object = outcome.Object
		}
		if v.relate(found.Object) == own || v.ofWorktree(found.Object) {
			children = append(children, found)
		}
	}
	for _, outcome := range outcomes {
		if res := outcome.Entry.Resource; outcome.Result == plan.Created && (render.IsRelease(res) || render.IsSource(res)) {
			children = append(children, Found{Resource: res, Object: outcome.Object})
		}
	}
	slices.SortFunc(children, func(a, b Found) int {
		return cmp.Or(strings.Compare(a.Resource.Kind, b.Resource.Kind), strings.Compare(a.Object.GetName(), b.Object.GetName()))
	})
	return children
}

// ofWorktree tells whether an object belongs to one of the Workload's Worktrees.
func (v *view) ofWorktree(obj *unstructured.Unstructured) bool {
	return slices.ContainsFunc(v.in.Objects, func(found Found) bool {
		return found.Resource.Kind == render.Worktrees.Kind && dockyards.OwnedBy(obj, found.Object)
	})
}

// reconciling is what Flux is still busy with; nil for nothing.
func reconciling(children []Found) *verdict {
	for _, kindOf := range []struct{ kind, reason string }{
		{render.Kustomizations.Kind, v1alpha3.ReasonKustomizationReconciling},
		{render.HelmReleases.Kind, v1alpha3.ReasonHelmReleaseReconciling},
	} {
		for _, child := range children {
			if child.Resource.Kind != kindOf.kind {
				continue
			}
			if busy := busyWith(child.Object); busy != "" {
				return &verdict{metav1.ConditionTrue, kindOf.reason, name(child.Resource, child.Object) + ": " + busy}
			}
		}
	}
	return nil
}

// busyWith says what Flux does with an object, or that it has not looked yet.
func busyWith(obj *unstructured.Unstructured) string {
	if isTrue(obj, fluxReconciling) && !isTrue(obj, fluxStalled) {
		c, _ := conditionOf(obj, fluxReconciling)
		return clip.Line(c.message, messageMax)
	}
	if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); suspended {
		return ""
	}
	if _, looked := conditionOf(obj, fluxReady); !looked || !observed(obj) {
		return "waits to be looked at by Flux"
	}
	return ""
}

// observed tells whether Flux has seen the latest spec.
func observed(obj *unstructured.Unstructured) bool {
	seen, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	return seen >= obj.GetGeneration()
}

// failing is the first child that failed, and how many more; nil for none.
func failing(children []Found) *verdict {
	var first *verdict
	more := 0
	for _, child := range children {
		c, failed := failure(child.Object)
		if !failed {
			continue
		}
		if first != nil {
			more++
			continue
		}
		reason := ReasonSource
		switch child.Resource.Kind {
		case render.Kustomizations.Kind:
			reason = ReasonKustomization
		case render.HelmReleases.Kind:
			reason = ReasonHelmRelease
		}
		first = no(reason, fmt.Sprintf("%s: %s: %s", name(child.Resource, child.Object), c.reason, clip.Line(c.message, messageMax)))
	}
	if first != nil && more > 0 {
		first.message += fmt.Sprintf(" and %d more", more)
	}
	return first
}

func failure(obj *unstructured.Unstructured) (c condition, failed bool) {
	if c, _ := conditionOf(obj, fluxStalled); c.status == string(metav1.ConditionTrue) {
		return c, true
	}
	c, found := conditionOf(obj, fluxReady)
	current := c.generation >= obj.GetGeneration() || (c.generation == 0 && observed(obj))
	return c, found && c.status == string(metav1.ConditionFalse) && current
}
