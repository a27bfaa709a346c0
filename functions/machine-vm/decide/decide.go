package decide

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Decide is what shall be written for a Machine, or what else must be known.
func Decide(_ time.Time, in Input, known plan.Answers) plan.Decision {
	v := look(in, known)
	if len(v.needs) > 0 {
		return plan.Decision{Needs: v.needs, Reasons: v.reasons}
	}
	return plan.Decision{Plan: v.plan, Reasons: v.reasons}
}

// look makes one decision from beginning to end.
func look(in Input, known plan.Answers) *view {
	v := newView(in, known)
	switch {
	case !v.concerned():
		v.reason("the Machine is another provider's, or nothing of it is left to clean up")
	case v.deleting():
		v.dismantle()
	default:
		v.realise()
	}
	return v
}

// realise brings a Machine that stays to what it asks for.
func (v *view) realise() {
	if v.blind = !v.reachable(); v.blind {
		return
	}
	if conflict := v.in.Target.Conflict; conflict != nil {
		v.problem(*conflict)
	}
	for _, f := range v.in.Faults {
		v.refused(f)
	}
	if v.blind = v.in.VMsUnread; v.blind {
		return
	}
	v.pickVM()
	if len(v.in.Faults) > 0 {
		return
	}
	v.resolveSpec()
	if len(v.needs) > 0 || v.in.Target.Unreachable != nil {
		return
	}
	v.planWrites()
}

// reachable notes what stands in the way of looking at the cluster at all.
func (v *view) reachable() bool {
	target := v.in.Target
	if target.Problem != nil {
		v.problem(*target.Problem)
		return false
	}
	if target.Unreachable != nil {
		return false
	}
	if target.KubeVirtMissing {
		v.problem(Problem{
			Part: PartVM, Reason: v1alpha1.ReasonKubeVirtAPIError,
			Message: "the cluster does not know VirtualMachines: install KubeVirt",
		})
		return false
	}
	return true
}

// pickVM finds the Machine's virtual machine, and whether it is to follow the
// Machine.
func (v *view) pickVM() {
	chosen := choose(v.in.Machine, v.in.Settings, v.in.VMs)
	v.vm, v.vmName = chosen.vm, chosen.name
	if chosen.problem != nil {
		v.problem(*chosen.problem)
	}
	if v.vm != nil && v.vm.GetDeletionTimestamp() != nil {
		v.problem(terminating(PartVM, kinds.VirtualMachines.Kind, v.vmName))
	}
	v.enforced = !v.adopted() || v.in.Machine.GetGeneration() > v.adoptedAt()
}

// resolveSpec goes through the parts of the spec. Every part is looked at,
// also when one before it has a problem: each has a condition of its own.
func (v *view) resolveSpec() {
	v.checkFirmware()
	v.resolveISO()
	v.resolveSize()
	v.resolveNetworks()
	v.resolveDisks()
	v.checkClaims()
	v.newClaims()
	v.resolveCloudInit()
	v.resolveNamespace()
}

// resolveNamespace sees to the namespace on another cluster, which nobody else
// creates. Where a virtual machine is, it exists.
func (v *view) resolveNamespace() {
	if v.in.Target.Same || v.vm != nil || v.stopped() {
		return
	}
	answer, ok := v.ask(plan.Need{Cluster: v.in.Target.Cluster, Resource: kind.Namespaces, Name: v.namespace})
	if !ok {
		return
	}
	if ns := answer.Object; ns != nil {
		if ns.GetDeletionTimestamp() != nil {
			v.problem(terminating(PartVM, kind.Namespaces.Kind, v.namespace))
		}
		return
	}
	ns := &unstructured.Unstructured{Object: map[string]any{}}
	ns.SetGroupVersionKind(kind.Namespaces.GVK())
	ns.SetName(v.namespace)
	ns.SetLabels(map[string]string{v1alpha1.LabelManagedBy: v.in.Settings.ManagedBy})
	v.createObject(kind.Namespaces, ns, &v.namespaces, "the cluster has no namespace for the Machine")
	v.namespaces[0].Shared = true
}

// stopped tells whether a problem forbids writing.
func (v *view) stopped() bool { return len(v.problems) > 0 }

// planWrites puts the writes in their order. With a problem, nothing but the
// finalizer of a Machine with a virtual machine is written; while only an
// address is awaited, the record too, since the address operator needs it.
func (v *view) planWrites() {
	if !v.stopped() {
		v.planVM()
	} else if v.vm != nil {
		m := v.merged()
		v.extraDisks, v.extraNics = m.extraDisks, m.extraNics
	}
	awaitsAddress := v.stopped() && !slices.ContainsFunc(v.problems, func(p Problem) bool {
		return p.Reason != v1alpha1.ReasonStaticAddressPending
	})
	if v.enforced && (!v.stopped() || awaitsAddress) {
		v.planRecord()
	}
	if v.stopped() {
		v.attachments, v.claims, v.secrets, v.growth = nil, nil, nil, nil
		v.vms, v.leftovers, v.notes, v.namespaces = nil, nil, nil, nil
	}
	if !v.enforced {
		v.attachments, v.claims, v.secrets, v.growth = nil, nil, nil, nil
	}
	if v.vm != nil || !v.stopped() || len(v.records) > 0 {
		v.plan.Add("finalizer", v.hold()...)
	}
	v.plan.Add("namespace", v.namespaces...)
	v.plan.Add("record", v.records...)
	v.plan.Add("networks", v.attachments...)
	v.plan.Add("claims", append(v.remarkedClaims(), v.claims...)...)
	v.plan.Add("cloud-init", v.secrets...)
	v.plan.Add("virtual machine", v.vms...)
	v.plan.Add("growth", v.growth...)
	v.plan.Add("boot image", v.leftovers...)
	v.plan.Add("boot image noted", v.notes...)
}

func (v *view) hasFinalizer() bool {
	return slices.ContainsFunc(v.in.Machine.GetFinalizers(), isFinalizer)
}

func isFinalizer(name string) bool {
	return name == v1alpha1.MachineFinalizer || name == v1alpha1.UpstreamMachineFinalizer
}

// hold keeps the Machine, and notes its cluster on it, before anything is made
// for it: whatever is made can be found again.
func (v *view) hold() []plan.Entry {
	machine := v.in.Machine
	held := machine.DeepCopy()
	reason := ""
	if config := v.in.Target.Config; config != "" && v.in.Target.Conflict == nil && machine.GetAnnotations()[v1alpha1.AnnotationKubevirtConfig] != config {
		held.SetAnnotations(with(machine.GetAnnotations(), map[string]string{v1alpha1.AnnotationKubevirtConfig: config}))
		reason = "the Machine's cluster is noted on it"
	}
	if !slices.Contains(machine.GetFinalizers(), v1alpha1.MachineFinalizer) {
		held.SetFinalizers(append(held.GetFinalizers(), v1alpha1.MachineFinalizer))
		reason = "the Machine is held until everything made for it is gone"
	}
	if reason == "" {
		return nil
	}
	return []plan.Entry{{Verb: plan.Patch, Resource: kinds.Machines, Base: machine, Object: held, Reason: reason}}
}

// remarkedClaims are the own claims that record another UID: the supervisor
// was restored.
func (v *view) remarkedClaims() []plan.Entry {
	if v.stopped() || !v.id.adopt {
		return nil
	}
	var entries []plan.Entry
	for _, claim := range sorted(v.in.Claims) {
		if marked := v.remarked(claim); marked != nil {
			v.patch(v.in.Target.Cluster, kindClaims, claim, marked, &entries, "the claim records another UID of the Machine")
		}
	}
	return entries
}

// sorted are pointers to objects, by name.
func sorted(objects []unstructured.Unstructured) []*unstructured.Unstructured {
	list := make([]*unstructured.Unstructured, 0, len(objects))
	for i := range objects {
		list = append(list, &objects[i])
	}
	slices.SortFunc(list, func(a, b *unstructured.Unstructured) int {
		switch {
		case a.GetName() < b.GetName():
			return -1
		case a.GetName() > b.GetName():
			return 1
		}
		return 0
	})
	return list
}
