package controller

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// advance takes an instance through the phases that are virt-controller's, and keeps
// the information about its claims up to date in the others.
func (p *player) advance(ctx context.Context, s *state) error {
	if s.vmi == nil {
		return nil
	}
	vmi := s.vmi.DeepCopy()
	switch vmi.Status.Phase {
	case "", kubevirtv1.Pending:
		p.pending(s, vmi)
	case kubevirtv1.Scheduling:
		if err := p.scheduling(ctx, s, vmi); err != nil {
			return err
		}
	case kubevirtv1.Scheduled, kubevirtv1.Running:
		describeVolumes(s, vmi)
	}
	return p.writeInstance(ctx, s, vmi)
}

// pending waits for data volumes to be imported and for claims to exist; then the
// instance gets its pod.
func (p *player) pending(s *state, vmi *kubevirtv1.VirtualMachineInstance) {
	now := p.Now()
	if vmi.DeletionTimestamp != nil {
		setPhase(vmi, kubevirtv1.Failed, now)
		return
	}
	setPhase(vmi, kubevirtv1.Pending, now)
	if !s.store.imported(vmi.Spec.Volumes) {
		return
	}
	if name := s.store.missing(vmi.Spec.Volumes); name != "" {
		message := "failed to render launch manifest: didn't find PVC " + name
		setCondition(vmi, kubevirtv1.VirtualMachineInstanceSynchronized, "FailedPvcNotFound", message, now)
		setCondition(vmi, kubevirtv1.VirtualMachineInstanceConditionType(corev1.PodScheduled), corev1.PodReasonUnschedulable, message, now)
		return
	}
	removeCondition(vmi, kubevirtv1.VirtualMachineInstanceSynchronized)
	removeCondition(vmi, kubevirtv1.VirtualMachineInstanceConditionType(corev1.PodScheduled))
	vmi.Status.ActivePods = map[types.UID]string{podUID(vmi): ""}
	setReady(vmi, "GuestNotRunning", "Guest VM is not reported as running", now)
	setPhase(vmi, kubevirtv1.Scheduling, now)
}

// scheduling plays the scheduler: the node needs room, and claims have to be bound.
// When that is so the pod has its node, and the instance is the node's.
func (p *player) scheduling(ctx context.Context, s *state, vmi *kubevirtv1.VirtualMachineInstance) error {
	now := p.Now()
	if vmi.DeletionTimestamp != nil {
		vmi.Status.ActivePods = nil
		setPhase(vmi, kubevirtv1.Failed, now)
		return nil
	}
	scheduled := kubevirtv1.VirtualMachineInstanceConditionType(corev1.PodScheduled)
	if guest := vmi.Spec.Domain.Memory; !p.Memory.IsZero() && guest != nil && guest.Guest != nil && guest.Guest.Cmp(p.Memory) > 0 {
		setCondition(vmi, scheduled, corev1.PodReasonUnschedulable,
			"0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.", now)
		return nil
	}
	removeCondition(vmi, scheduled)
	if err := p.selectNode(ctx, s, vmi.Spec.Volumes); err != nil {
		return err
	}
	if !s.store.bound(vmi.Spec.Volumes) {
		return nil
	}
	vmi.Status.ActivePods = map[types.UID]string{podUID(vmi): p.Node}
	describeVolumes(s, vmi)
	return nil
}

// describeVolumes reports the claims behind the volumes. What the node reported about
// a volume stays.
func describeVolumes(s *state, vmi *kubevirtv1.VirtualMachineInstance) {
	known := map[string]kubevirtv1.VolumeStatus{}
	for _, status := range vmi.Status.VolumeStatus {
		known[status.Name] = status
	}
	all := make([]kubevirtv1.VolumeStatus, 0, len(vmi.Spec.Volumes))
	for _, volume := range vmi.Spec.Volumes {
		status := known[volume.Name]
		status.Name = volume.Name
		if claim := s.store.claims[claimName(volume)]; claim != nil {
			overhead := kubevirtv1.Percent("0.055")
			status.PersistentVolumeClaimInfo = &kubevirtv1.PersistentVolumeClaimInfo{
				ClaimName:          claim.Name,
				AccessModes:        claim.Spec.AccessModes,
				VolumeMode:         claim.Spec.VolumeMode,
				Capacity:           claim.Status.Capacity,
				Requests:           claim.Spec.Resources.Requests,
				FilesystemOverhead: &overhead,
			}
		}
		all = append(all, status)
	}
	slices.SortStableFunc(all, func(a, b kubevirtv1.VolumeStatus) int { return compare(a.Name, b.Name) })
	vmi.Status.VolumeStatus = all
}

// writeInstance writes what has changed of an instance. Its status is no subresource.
func (p *player) writeInstance(ctx context.Context, s *state, vmi *kubevirtv1.VirtualMachineInstance) error {
	sameStatus := equality.Semantic.DeepEqual(vmi.Status, s.vmi.Status)
	if sameStatus && equality.Semantic.DeepEqual(vmi.Spec, s.vmi.Spec) {
		return nil
	}
	raw := s.vmi.raw.DeepCopy()
	status, err := content(&vmi.Status)
	if err != nil {
		return err
	}
	raw.Object["status"] = status
	if raw.Object["spec"], err = content(&vmi.Spec); err != nil {
		return err
	}
	written, err := p.client.Resource(instances).Namespace(raw.GetNamespace()).Update(ctx, raw, metav1.UpdateOptions{FieldManager: FieldManager})
	if err != nil {
		return err
	}
	typed, err := as[kubevirtv1.VirtualMachineInstance](written)
	if err != nil {
		return err
	}
	if typed.Status.Phase != s.vmi.Status.Phase {
		p.Log.Info("instance moved on", "namespace", typed.Namespace, "machine", typed.Name, "phase", string(typed.Status.Phase))
	}
	s.vmi = &instance{typed, written}
	return nil
}

// podUID is the UID of the pod that the instance would have.
func podUID(vmi *kubevirtv1.VirtualMachineInstance) types.UID {
	return types.UID(derivedUUID(&kubevirtv1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{UID: vmi.UID}}, "pod"))
}

// setReady says that an instance is not ready, and why.
func setReady(vmi *kubevirtv1.VirtualMachineInstance, reason, message string, now time.Time) {
	setCondition(vmi, kubevirtv1.VirtualMachineInstanceReady, reason, message, now)
}

// setCondition sets a condition to False.
func setCondition(vmi *kubevirtv1.VirtualMachineInstance, kind kubevirtv1.VirtualMachineInstanceConditionType, reason, message string, now time.Time) {
	for _, condition := range vmi.Status.Conditions {
		if condition.Type == kind && condition.Status == corev1.ConditionFalse && condition.Reason == reason && condition.Message == message {
			return
		}
	}
	removeCondition(vmi, kind)
	vmi.Status.Conditions = append(vmi.Status.Conditions, kubevirtv1.VirtualMachineInstanceCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		LastProbeTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
	})
}

func removeCondition(vmi *kubevirtv1.VirtualMachineInstance, kind kubevirtv1.VirtualMachineInstanceConditionType) {
	vmi.Status.Conditions = slices.DeleteFunc(vmi.Status.Conditions, func(c kubevirtv1.VirtualMachineInstanceCondition) bool { return c.Type == kind })
}
