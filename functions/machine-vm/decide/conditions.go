package decide

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/shared/clip"
)

// verdict is a condition without its type and times.
type verdict struct{ status, reason, message string }

func yes(reason, message string) verdict { return verdict{v1alpha1.ConditionTrue, reason, message} }

func no(reason, message string) verdict { return verdict{v1alpha1.ConditionFalse, reason, message} }

func unknown(reason, message string) verdict {
	return verdict{v1alpha1.ConditionUnknown, reason, message}
}

// conditions sets the Machine's own conditions; those of other writers stay.
func (v *view) conditions(now time.Time, status *v1alpha1.MachineStatus) {
	set := func(conditionType string, is verdict) {
		status.Conditions = v1alpha1.SetCondition(status.Conditions, v1alpha1.MachineCondition{
			Type: conditionType, Status: is.status, Reason: is.reason, Message: clip.Line(is.message, messageMax),
			ObservedGeneration: v.in.Machine.GetGeneration(),
		}, metav1.NewTime(now))
	}
	parts := map[string]func() verdict{
		v1alpha1.ConditionVirtualMachineReady: v.vmVerdict,
		v1alpha1.ConditionStorageReady:        v.storageVerdict,
		v1alpha1.ConditionNetworkReady:        v.networkVerdict,
	}
	complete := true
	for _, conditionType := range []string{
		v1alpha1.ConditionVirtualMachineReady, v1alpha1.ConditionStorageReady, v1alpha1.ConditionNetworkReady,
	} {
		have := v1alpha1.FindCondition(status.Conditions, conditionType)
		switch {
		case !v.frozen() || (v.problemOf(conditionType) != nil && !v.deleting()):
			set(conditionType, parts[conditionType]())
		case have == nil:
			set(conditionType, unknown(v1alpha1.ReasonWaiting, "not reached yet"))
		}
		have = v1alpha1.FindCondition(status.Conditions, conditionType)
		complete = complete && have.Status == v1alpha1.ConditionTrue
	}
	v.restart(status, set)
	ready := v.readyVerdict(complete)
	set(v1alpha1.ConditionReady, ready)
	status.Message = clip.Line(ready.message, messageMax)
}

// frozen tells that the parts cannot be judged now and stay what they were.
func (v *view) frozen() bool { return v.in.Target.Unreachable != nil || v.blind || v.deleting() }

// restart mirrors KubeVirt's condition RestartRequired.
func (v *view) restart(status *v1alpha1.MachineStatus, set func(string, verdict)) {
	if v.in.Target.Unreachable != nil || v.blind {
		return
	}
	cond := condition(v.vm, v1alpha1.ConditionRestartRequired)
	if text(cond, "status") != v1alpha1.ConditionTrue {
		status.Conditions = v1alpha1.RemoveCondition(status.Conditions, v1alpha1.ConditionRestartRequired)
		return
	}
	set(v1alpha1.ConditionRestartRequired, yes(v1alpha1.ReasonRestartRequired, text(cond, "message")))
}

// problemOf is the problem that a part's condition speaks of.
func (v *view) problemOf(conditionType string) *Problem {
	var mine []Problem
	for _, p := range v.problems {
		if p.condition() == conditionType {
			mine = append(mine, p)
		}
	}
	return first(mine)
}

func (v *view) vmVerdict() verdict {
	if p := v.problemOf(v1alpha1.ConditionVirtualMachineReady); p != nil {
		if p.Waiting {
			return unknown(v1alpha1.ReasonWaiting, p.text())
		}
		return no(v1alpha1.ReasonVMFailed, p.text())
	}
	if v.vm == nil {
		return unknown(v1alpha1.ReasonWaiting, "the virtual machine does not exist yet")
	}
	if reason, message := v.trouble(); reason != "" && reason != v1alpha1.ReasonInsufficientResources {
		return no(v1alpha1.ReasonVMFailed, reason+": "+message)
	}
	message := fmt.Sprintf("VirtualMachine %q exists", v.vm.GetName())
	if len(v.differences) > 0 {
		message += "; it differs from the Machine in " + quoted(v.differences) + " until the Machine's spec is changed"
	}
	return yes(v1alpha1.ReasonVMCreated, message)
}

func (v *view) networkVerdict() verdict {
	if p := v.problemOf(v1alpha1.ConditionNetworkReady); p != nil {
		if p.Waiting {
			return unknown(v1alpha1.ReasonWaiting, p.text())
		}
		return no(v1alpha1.ReasonNetworkFailed, p.text())
	}
	if v.vm == nil {
		return unknown(v1alpha1.ReasonWaiting, "the virtual machine does not exist yet")
	}
	message := "every network is attached"
	if v.adopted() && len(v.extraNics) > 0 {
		message += "; beyond the Machine's: " + quoted(v.extraNics)
	}
	if v.remembered {
		message += "; addresses are the last known ones"
	}
	return yes(v1alpha1.ReasonNetworkConfigured, message)
}

func (v *view) storageVerdict() verdict {
	if p := v.problemOf(v1alpha1.ConditionStorageReady); p != nil {
		return no(v1alpha1.ReasonPVCPending, p.text())
	}
	if v.vm == nil && v.stopped() {
		return unknown(v1alpha1.ReasonWaiting, "the claims are not made yet")
	}
	if pending := v.unbound(); len(pending) > 0 {
		return no(v1alpha1.ReasonPVCPending, "not bound: "+quoted(pending))
	}
	message := "every claim is bound"
	if left := v.unlisted(); len(left) > 0 {
		message += "; kept until the Machine is deleted: " + quoted(left)
	}
	if v.adopted() && len(v.extraDisks) > 0 {
		message += "; beyond the Machine's: " + quoted(v.extraDisks)
	}
	return yes(v1alpha1.ReasonPVCBound, message)
}

// unbound are the Machine's claims that are missing or not bound.
func (v *view) unbound() []string {
	var wanted []string
	for _, d := range v.disks {
		if v.vm == nil || v.attached(d.claim) || (v.enforced && !d.byDefault) {
			wanted = appendNew(wanted, d.claim)
		}
	}
	for _, volume := range volumes(v.vm) {
		if claim := volumeClaim(volume); v.owns(claim) {
			wanted = appendNew(wanted, claim)
		}
	}
	var pending []string
	for _, name := range wanted {
		claim := find(v.in.Claims, name)
		if claim == nil || !bound(claim) {
			pending = append(pending, name)
		}
	}
	return pending
}

// unlisted are the own claims of disks that the spec does not list any more.
func (v *view) unlisted() []string {
	var left []string
	for i := range v.in.Claims {
		name := v.in.Claims[i].GetName()
		if v.owns(name) && !v.attached(name) && !v.listed(name) {
			left = append(left, name)
		}
	}
	return left
}

func (v *view) listed(claim string) bool {
	for _, d := range v.disks {
		if d.claim == claim {
			return true
		}
	}
	return false
}

// readyVerdict goes through the reasons in the order in which they count.
func (v *view) readyVerdict(complete bool) verdict {
	for _, check := range []func() (verdict, bool){
		v.readyDeleting, v.readyUnreachable, v.readyProblem, v.readyTrouble, v.readyPaused, v.readyUnseen, v.readyPower,
	} {
		if is, found := check(); found {
			return is
		}
	}
	if !complete {
		return no(v1alpha1.ReasonStoragePending, "the virtual machine runs; "+v.storageVerdict().message)
	}
	return yes(v1alpha1.ReasonRunning, "the virtual machine runs")
}

// readyDeleting: a Machine that goes is not ready, unless its cluster cannot
// be asked or is not known any more.
func (v *view) readyDeleting() (verdict, bool) {
	if !v.deleting() || v.in.Target.Unreachable != nil || v.in.Target.Problem != nil {
		return verdict{}, false
	}
	message := "the Machine is being deleted"
	if v.vm != nil {
		message = fmt.Sprintf("waiting until VirtualMachine %q is gone", v.vm.GetName())
	}
	if v.putOff > 0 {
		message = fmt.Sprintf("the Machine is being deleted; so many objects belong to it that %d of them wait for the next reconcile", v.putOff)
	}
	if p := first(v.problems); p != nil {
		message = p.text()
	}
	return no(v1alpha1.ReasonDeleting, message), true
}

func (v *view) readyUnreachable() (verdict, bool) {
	f := v.in.Target.Unreachable
	if f == nil {
		return verdict{}, false
	}
	message := fmt.Sprintf("cluster %q does not answer: %s", firstOf(f.Cluster, v.in.Target.Config), f.Cause())
	if v.deleting() {
		message += "; the deletion waits for it"
	}
	return unknown(v1alpha1.ReasonClusterUnreachable, message), true
}

func (v *view) readyProblem() (verdict, bool) {
	p := first(v.problems)
	if p == nil {
		return verdict{}, false
	}
	return no(p.Reason, p.Message), true
}

func (v *view) readyTrouble() (verdict, bool) {
	reason, message := v.trouble()
	return no(reason, message), reason != ""
}

func (v *view) readyPaused() (verdict, bool) {
	paused := v.printable() == printPaused || text(condition(v.in.Instance, "Paused"), "status") == v1alpha1.ConditionTrue
	return no(v1alpha1.ReasonPaused, "the virtual machine is paused"), paused
}

// readyUnseen: KubeVirt does not tell, or tells of an instance that is not
// there.
func (v *view) readyUnseen() (verdict, bool) {
	printable := v.printable()
	unseen := !v.running() && (printable == printUnknown || (printable == printRunning && v.in.Instance == nil))
	return unknown(v1alpha1.ReasonVMStatusUnknown, "KubeVirt does not tell whether the virtual machine runs"), unseen
}

func (v *view) readyPower() (verdict, bool) {
	if !v.running() {
		if v.vm != nil && v.phaseOfVM() == v1alpha1.PhaseStopped {
			return no(v1alpha1.ReasonStopped, "the virtual machine is off or going off"), true
		}
		return no(v1alpha1.ReasonCreating, "the virtual machine is on its way up"), true
	}
	if cond := condition(v.in.Instance, "Ready"); cond != nil && text(cond, "status") != v1alpha1.ConditionTrue {
		return no(v1alpha1.ReasonCreating, "the instance runs and is not ready: "+text(cond, "message")), true
	}
	return verdict{}, false
}
