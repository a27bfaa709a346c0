package controller

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// report writes the status of the machine.
func (p *player) report(ctx context.Context, s *state) error {
	if s.vm == nil {
		return nil
	}
	before, err := as[kubevirtv1.VirtualMachine](s.vm.raw)
	if err != nil {
		return err
	}
	status := &s.vm.Status
	status.Created = s.vmi != nil
	status.Ready = s.vmi != nil && isReady(s.vmi.VirtualMachineInstance)
	strategy, err := s.vm.RunStrategy()
	if err == nil && (status.RunStrategy != "" || status.Created) {
		status.RunStrategy = strategy
	}
	reportGeneration(s)
	if requestIsDone(s) {
		status.StateChangeRequests = status.StateChangeRequests[1:]
	}
	p.mirrorConditions(s)
	status.PrintableStatus = printable(s, strategy)
	if equality.Semantic.DeepEqual(*status, before.Status) {
		return nil
	}
	raw := s.vm.raw.DeepCopy()
	if raw.Object["status"], err = content(status); err != nil {
		return err
	}
	written, err := p.client.Resource(machines).Namespace(raw.GetNamespace()).UpdateStatus(ctx, raw, metav1.UpdateOptions{FieldManager: FieldManager})
	if err != nil {
		return err
	}
	typed, err := as[kubevirtv1.VirtualMachine](written)
	if err != nil {
		return err
	}
	if typed.Status.PrintableStatus != before.Status.PrintableStatus {
		p.Log.Info("machine moved on", "namespace", typed.Namespace, "machine", typed.Name, "status", string(typed.Status.PrintableStatus))
	}
	s.vm = &machine{typed, written}
	return nil
}

func isReady(vmi *kubevirtv1.VirtualMachineInstance) bool {
	return hasCondition(vmi, kubevirtv1.VirtualMachineInstanceReady, corev1.ConditionTrue, "")
}

// hasCondition tells whether an instance has a condition of a status and, unless it is
// "", of a reason.
func hasCondition(vmi *kubevirtv1.VirtualMachineInstance, kind kubevirtv1.VirtualMachineInstanceConditionType, status corev1.ConditionStatus, reason string) bool {
	if vmi == nil {
		return false
	}
	for _, condition := range vmi.Status.Conditions {
		if condition.Type == kind && condition.Status == status && (reason == "" || condition.Reason == reason) {
			return true
		}
	}
	return false
}

// reportGeneration says which generation the instance was made of.
func reportGeneration(s *state) {
	if s.vmi == nil {
		return
	}
	generation, err := strconv.ParseInt(s.vmi.Annotations[kubevirtv1.VirtualMachineGenerationAnnotation], 10, 64)
	if err != nil {
		return
	}
	s.vm.Status.ObservedGeneration = generation
	s.vm.Status.DesiredGeneration = s.vm.Generation
}

// requestIsDone tells whether the first request to start or stop has been served.
func requestIsDone(s *state) bool {
	requests := s.vm.Status.StateChangeRequests
	if len(requests) == 0 {
		return false
	}
	switch requests[0].Action {
	case kubevirtv1.StopRequest:
		return s.vmi == nil || requests[0].UID == nil || *requests[0].UID != s.vmi.UID
	case kubevirtv1.StartRequest:
		return s.vmi != nil && s.vmi.DeletionTimestamp == nil && !s.vmi.IsFinal()
	}
	return false
}

// own are the conditions of a machine that are not its instance's.
var own = []kubevirtv1.VirtualMachineConditionType{
	kubevirtv1.VirtualMachineReady, kubevirtv1.VirtualMachineFailure, kubevirtv1.VirtualMachineRestartRequired,
}

// mirrorConditions copies the conditions of the instance to the machine.
func (p *player) mirrorConditions(s *state) {
	now := metav1.NewTime(p.Now())
	ready := kubevirtv1.VirtualMachineCondition{
		Type: kubevirtv1.VirtualMachineReady, Status: corev1.ConditionFalse, Reason: "VMINotExists", Message: "VMI does not exist",
		LastProbeTime: now, LastTransitionTime: now,
	}
	var mirrored []kubevirtv1.VirtualMachineCondition
	if s.vmi != nil {
		ready.Reason, ready.Message = "VMIConditionMissing", "VMI is missing the Ready condition"
		for _, c := range s.vmi.Status.Conditions {
			condition := kubevirtv1.VirtualMachineCondition{
				Type: kubevirtv1.VirtualMachineConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
				LastProbeTime: c.LastProbeTime, LastTransitionTime: c.LastTransitionTime,
			}
			switch {
			case condition.Type == kubevirtv1.VirtualMachineReady:
				ready = condition
			case !slices.Contains(own, condition.Type):
				mirrored = append(mirrored, condition)
			}
		}
		// Conditions of an instance that is gone stay until there is another one.
		s.vm.Status.Conditions = slices.DeleteFunc(s.vm.Status.Conditions, func(c kubevirtv1.VirtualMachineCondition) bool {
			return !slices.Contains(own, c.Type)
		})
	}
	putCondition(s.vm.VirtualMachine, ready)
	if s.failure == nil {
		dropCondition(s.vm.VirtualMachine, kubevirtv1.VirtualMachineFailure)
	} else {
		putCondition(s.vm.VirtualMachine, kubevirtv1.VirtualMachineCondition{
			Type: kubevirtv1.VirtualMachineFailure, Status: corev1.ConditionTrue, Reason: s.failure.reason, Message: s.failure.message, LastTransitionTime: now,
		})
	}
	s.vm.Status.Conditions = append(s.vm.Status.Conditions, mirrored...)
	slices.SortStableFunc(s.vm.Status.Conditions, func(a, b kubevirtv1.VirtualMachineCondition) int { return compare(a.Type, b.Type) })
}

// putCondition sets a condition; one that says the same keeps its times.
func putCondition(vm *kubevirtv1.VirtualMachine, condition kubevirtv1.VirtualMachineCondition) {
	for i, c := range vm.Status.Conditions {
		if c.Type != condition.Type {
			continue
		}
		if c.Status == condition.Status && c.Reason == condition.Reason && c.Message == condition.Message {
			return
		}
		vm.Status.Conditions[i] = condition
		return
	}
	vm.Status.Conditions = append(vm.Status.Conditions, condition)
}

func dropCondition(vm *kubevirtv1.VirtualMachine, kind kubevirtv1.VirtualMachineConditionType) {
	vm.Status.Conditions = slices.DeleteFunc(vm.Status.Conditions, func(c kubevirtv1.VirtualMachineCondition) bool { return c.Type == kind })
}

// printable is the first status that fits, in KubeVirt's order.
func printable(s *state, strategy kubevirtv1.VirtualMachineRunStrategy) kubevirtv1.VirtualMachinePrintableStatus {
	if s.vm.DeletionTimestamp != nil {
		return kubevirtv1.VirtualMachineStatusTerminating
	}
	if status := printableOfInstance(s.vmi); status != "" {
		return status
	}
	if s.vm.Spec.Template != nil {
		if status := printableOfVolumes(s, strategy); status != "" {
			return status
		}
	}
	if s.vmi != nil && !s.vmi.IsFinal() {
		return kubevirtv1.VirtualMachineStatusStarting
	}
	return kubevirtv1.VirtualMachineStatusStopped
}

func printableOfInstance(vmi *instance) kubevirtv1.VirtualMachinePrintableStatus {
	if vmi == nil {
		return ""
	}
	v := vmi.VirtualMachineInstance
	switch {
	case !v.IsFinal() && v.DeletionTimestamp != nil:
		return kubevirtv1.VirtualMachineStatusStopping
	case v.IsRunning() && hasCondition(v, kubevirtv1.VirtualMachineInstancePaused, corev1.ConditionTrue, ""):
		return kubevirtv1.VirtualMachineStatusPaused
	case v.IsRunning():
		return kubevirtv1.VirtualMachineStatusRunning
	case hasCondition(v, kubevirtv1.VirtualMachineInstanceSynchronized, corev1.ConditionFalse, "FailedPvcNotFound"):
		return kubevirtv1.VirtualMachineStatusPvcNotFound
	}
	return ""
}

func printableOfVolumes(s *state, strategy kubevirtv1.VirtualMachineRunStrategy) kubevirtv1.VirtualMachinePrintableStatus {
	volumes := s.vm.Spec.Template.Spec.Volumes
	var vmi *kubevirtv1.VirtualMachineInstance
	if s.vmi != nil {
		vmi = s.vmi.VirtualMachineInstance
	}
	switch {
	case s.store.importFailed(volumes):
		return kubevirtv1.VirtualMachineStatusDataVolumeError
	case hasCondition(vmi, kubevirtv1.VirtualMachineInstanceConditionType(corev1.PodScheduled), corev1.ConditionFalse, corev1.PodReasonUnschedulable):
		return kubevirtv1.VirtualMachineStatusUnschedulable
	case s.store.provisioning(volumes):
		return kubevirtv1.VirtualMachineStatusProvisioning
	case setToStart(s, strategy) && s.store.unbound(volumes):
		return kubevirtv1.VirtualMachineStatusWaitingForVolumeBinding
	}
	return ""
}

// setToStart tells whether the machine is meant to run.
func setToStart(s *state, strategy kubevirtv1.VirtualMachineRunStrategy) bool {
	switch strategy {
	case kubevirtv1.RunStrategyAlways:
		return true
	case kubevirtv1.RunStrategyOnce:
		return s.vmi == nil
	case kubevirtv1.RunStrategyManual:
		if s.vmi == nil {
			return hasStartRequest(s.vm.VirtualMachine)
		}
		return !hasStopRequest(s.vm.VirtualMachine, s.vmi.VirtualMachineInstance)
	case kubevirtv1.RunStrategyRerunOnFailure:
		return s.vmi == nil || s.vmi.Status.Phase != kubevirtv1.Succeeded
	}
	return false
}

func compare[T cmp.Ordered](a, b T) int { return cmp.Compare(a, b) }
