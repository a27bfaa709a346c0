package decide

import (
	"time"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Decide is what shall be written for a NodePool, or what else must be known.
func Decide(now time.Time, in Input, known plan.Answers) plan.Decision {
	v := look(now, in, known)
	if len(v.needs) > 0 {
		return plan.Decision{Needs: v.needs, Reasons: v.reasons}
	}
	return plan.Decision{Plan: v.plan, Reasons: v.reasons}
}

// look makes one decision from beginning to end.
func look(now time.Time, in Input, known plan.Answers) *view {
	v := newView(now, in, known)
	switch {
	case dockyards.Going(in.Pool):
		v.silent = true
		v.dismantle()
	case v.blocked():
	case dockyards.Going(in.Cluster) || dockyards.Going(in.CAPICluster):
		v.silent = true
		v.reason("the Cluster is being deleted: nothing is made or changed")
	default:
		v.realise()
	}
	return v
}

// blocked tells whether nothing at all can be decided, and says why under every
// part.
func (v *view) blocked() bool {
	var p problem
	switch {
	case v.in.Blocked != nil:
		p = failed(*v.in.Blocked)
		p.retry = true
	case v.in.Cluster == nil:
		p = waiting(v1alpha3.ReasonWaitingForCluster, "the pool has no Cluster: add an ownerReference to it, or label %s", v1alpha3.LabelClusterName)
		if name := dockyards.ClusterOf(v.in.Pool); name != "" {
			p = waiting(v1alpha3.ReasonWaitingForCluster, "Cluster %q does not exist", name)
		}
	default:
		return false
	}
	v.template.add(p)
	v.config.add(p)
	v.machines.add(p)
	return true
}

// realise brings a pool that stays to what it asks for.
func (v *view) realise() {
	for _, refusal := range v.in.Refused {
		v.part(refusal.Part).add(failed(refusal.Fault))
	}
	v.findLive()
	if !v.refused(PartTemplate) {
		v.wantMachine()
	}
	if !v.refused(PartConfig) && !v.refused(PartMachines) {
		v.wantTalos()
	}
	v.findPhase()
	v.chooseTemplates()
	if v.controlPlane() {
		v.keepControlPlane()
	} else {
		v.keepDeployment()
	}
	v.prune()
	v.planWrites()
}

// part is what is said about a part.
func (v *view) part(part Part) *verdict {
	switch part {
	case PartTemplate:
		return v.template
	case PartConfig:
		return v.config
	case PartMachines, PartReference:
	}
	return v.machines
}

// refused tells whether a read for a part was refused.
func (v *view) refused(part Part) bool {
	for _, refusal := range v.in.Refused {
		if refusal.Part == part {
			return true
		}
	}
	return false
}

// planWrites puts the writes in their order. What does not depend on one another
// comes first, side by side: replicas and the Kubernetes version never wait for a
// template. What names a template comes when the template is there. Nothing is
// removed in a pass that has anything else to do, since what was read may be older
// than what was just written.
func (v *view) planWrites() {
	first := append(append(v.scaling, v.templates...), v.marks()...)
	if v.live != nil {
		first = append(first, v.references...)
	}
	v.plan.Add("replicas, version and templates", first...)
	v.plan.Add("machines", v.rolling...)
	if v.live == nil && len(v.rolling) > 0 {
		v.plan.Add("control plane of the Cluster", v.references...)
	}
	if len(v.plan.Stages) == 0 {
		v.plan.Add("templates that nothing names", v.pruning...)
	}
}
