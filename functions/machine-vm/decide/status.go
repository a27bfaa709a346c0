package decide

import (
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/shared/clip"
)

// Printable statuses of a virtual machine, as KubeVirt writes them.
const (
	printRunning       = string(kubevirtv1.VirtualMachineStatusRunning)
	printMigrating     = string(kubevirtv1.VirtualMachineStatusMigrating)
	printPaused        = string(kubevirtv1.VirtualMachineStatusPaused)
	printStopped       = string(kubevirtv1.VirtualMachineStatusStopped)
	printStopping      = string(kubevirtv1.VirtualMachineStatusStopping)
	printTerminating   = string(kubevirtv1.VirtualMachineStatusTerminating)
	printUnknown       = string(kubevirtv1.VirtualMachineStatusUnknown)
	printUnschedulable = string(kubevirtv1.VirtualMachineStatusUnschedulable)
)

// failing are the printable statuses that need somebody to act. They are
// reasons of condition Ready by the same words.
var failing = []string{
	v1alpha1.ReasonCrashLoopBackOff, v1alpha1.ReasonErrImagePull, v1alpha1.ReasonImagePullBackOff,
	v1alpha1.ReasonErrorPVCNotFound, v1alpha1.ReasonDataVolumeError,
}

// status is the whole status as it follows from what is known now. written is
// the resourceVersion of the virtual machine if it was written just now.
func (v *view) status(now time.Time, written string) v1alpha1.MachineStatus {
	status := *v.machine.Status.DeepCopy()
	status.Conditions = v1alpha1.DropUpstreamUnknown(status.Conditions)
	status.ObservedGeneration = v.in.Machine.GetGeneration()
	status.Provider = v1alpha1.ProviderKubevirt
	if v.in.Target.Config != "" && v.in.Target.Problem == nil {
		status.KubevirtConfigRef = v.in.Target.Config
	}
	if v.in.Target.Unreachable == nil {
		if !v.blind {
			v.describe(&status, written)
		}
		v.describeFailure(&status)
	}
	status.Phase = v.phase()
	v.conditions(now, &status)
	return status
}

// describe fills in what the cluster shows.
func (v *view) describe(status *v1alpha1.MachineStatus, written string) {
	status.VMName, status.State = "", ""
	if v.vm != nil {
		status.VMName = v.vm.GetName()
		status.State = v.printable()
		if v.running() {
			status.State = printRunning
		}
	}
	switch {
	case v.vm == nil:
		status.ResourceVersion = ""
	case written != "":
		status.ResourceVersion = written
	case status.ResourceVersion == "":
		status.ResourceVersion = v.vm.GetResourceVersion()
	}
	v.describeInstance(status)
}

// describeFailure says what is wrong now, or that nothing is.
func (v *view) describeFailure(status *v1alpha1.MachineStatus) {
	if p := first(v.problems); p != nil {
		fail(status, p.Reason, p.Message)
		return
	}
	if reason, message := v.trouble(); reason != "" {
		fail(status, reason, message)
		return
	}
	status.FailureReason, status.FailureMessage = nil, nil
}

func fail(status *v1alpha1.MachineStatus, reason, message string) {
	message = clip.Line(message, failureMax)
	status.FailureReason, status.FailureMessage = &reason, &message
}

// trouble is what KubeVirt reports of the virtual machine: no room for it, or
// a failure.
func (v *view) trouble() (reason, message string) {
	if v.vm == nil || v.deleting() {
		return "", ""
	}
	if message, short := v.unschedulable(); short {
		return v1alpha1.ReasonInsufficientResources, message
	}
	if printable := v.printable(); slices.Contains(failing, printable) {
		return printable, v.kubevirtSays(printable)
	}
	return "", ""
}

// unschedulable tells whether no node has room, in the scheduler's words. The
// virtual machine keeps the conditions of an instance that is gone: they lend
// their words only.
func (v *view) unschedulable() (string, bool) {
	short := func(obj *unstructured.Unstructured) (string, bool) {
		cond := condition(obj, "PodScheduled")
		return text(cond, "message"), text(cond, "status") == v1alpha1.ConditionFalse && text(cond, "reason") == "Unschedulable"
	}
	if v.in.Instance != nil && v.in.Instance.GetDeletionTimestamp() == nil {
		if message, is := short(v.in.Instance); is {
			return message, true
		}
	}
	if v.printable() != printUnschedulable {
		return "", false
	}
	if message, is := short(v.vm); is {
		return message, true
	}
	return "no node has room for the virtual machine", true
}

// kubevirtSays is KubeVirt's own account of a printable status.
func (v *view) kubevirtSays(printable string) string {
	for _, conditionType := range []string{"Failure", "Ready", "DataVolumesReady"} {
		cond := condition(v.vm, conditionType)
		bad := v1alpha1.ConditionFalse
		if conditionType == "Failure" {
			bad = v1alpha1.ConditionTrue
		}
		if message := text(cond, "message"); message != "" && text(cond, "status") == bad {
			return "KubeVirt reports " + printable + ": " + message
		}
	}
	return "KubeVirt reports " + printable
}

func (v *view) printable() string {
	if v.vm == nil {
		return ""
	}
	return text(v.vm.Object, "status", "printableStatus")
}

// running tells whether the instance runs.
func (v *view) running() bool {
	return v.in.Instance != nil && v.in.Instance.GetDeletionTimestamp() == nil &&
		text(v.in.Instance.Object, "status", "phase") == string(kubevirtv1.Running)
}

// phase follows from what was read; only while the cluster cannot be asked it
// stays what it was.
func (v *view) phase() string {
	p := first(v.problems)
	switch {
	case v.in.Target.Unreachable != nil && v.machine.Status.Phase != "":
		return v.machine.Status.Phase
	case v.in.Target.Unreachable != nil:
		return v1alpha1.PhasePending
	case v.running():
		return v1alpha1.PhaseRunning
	case v.vm != nil:
		return v.phaseOfVM()
	case p != nil && !p.Waiting:
		return v1alpha1.PhaseFailed
	}
	return v1alpha1.PhasePending
}

func (v *view) phaseOfVM() string {
	printable := v.printable()
	switch printable {
	case printRunning, printMigrating, printPaused:
		return v1alpha1.PhaseRunning
	case printStopped:
		if v.startsAlways() {
			return v1alpha1.PhaseCreating // KubeVirt is about to start it
		}
		return v1alpha1.PhaseStopped
	case printStopping, printTerminating:
		return v1alpha1.PhaseStopped
	}
	if slices.Contains(failing, printable) {
		return v1alpha1.PhaseFailed
	}
	return v1alpha1.PhaseCreating
}

func (v *view) startsAlways() bool {
	running, _ := boolean(v.vm.Object, "spec", "running")
	return running || text(v.vm.Object, "spec", "runStrategy") == strategyAlways
}

// settle is the status as it is written: what was there, to the byte, if
// nothing but the time of writing would change.
func (v *view) settle(now time.Time, status v1alpha1.MachineStatus) map[string]any {
	raw, _ := at(v.in.Machine.Object, "status").(map[string]any)
	before := v.machine.Status
	before.LastUpdated, status.LastUpdated = metav1.Time{}, metav1.Time{}
	if reflect.DeepEqual(statusFields(before), statusFields(status)) && raw != nil {
		return raw
	}
	status.LastUpdated = metav1.NewTime(now).Rfc3339Copy()
	return statusFields(status)
}

func statusFields(status v1alpha1.MachineStatus) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		// A struct of strings, numbers and times always converts.
		return map[string]any{}
	}
	return fields
}
