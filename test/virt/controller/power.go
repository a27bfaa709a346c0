package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// What a machine's power asks for.
type wish int

const (
	leave wish = iota
	start
	stop
)

// power makes or deletes the instance, as the run strategy says.
func (p *player) power(ctx context.Context, s *state) error {
	if s.vm == nil || s.vm.Spec.Template == nil {
		return nil
	}
	if s.vm.Spec.Running != nil && s.vm.Spec.RunStrategy != nil {
		s.failure = &failure{"FailedCreate", "running and runStrategy are mutually exclusive"}
		return nil
	}
	strategy, err := s.vm.RunStrategy()
	if err != nil {
		return err
	}
	switch wanted(s, strategy) {
	case start:
		return p.start(ctx, s)
	case stop:
		return p.stop(ctx, s, strategy)
	}
	return nil
}

// wanted decides between starting, stopping and leaving alone.
func wanted(s *state, strategy kubevirtv1.VirtualMachineRunStrategy) wish {
	if s.vm.DeletionTimestamp != nil {
		return stopIf(s.vmi != nil)
	}
	if s.vmi != nil {
		return wantedWithInstance(s, strategy)
	}
	switch strategy {
	case kubevirtv1.RunStrategyAlways, kubevirtv1.RunStrategyOnce:
		return start
	case kubevirtv1.RunStrategyManual:
		return startIf(hasStartRequest(s.vm.VirtualMachine))
	case kubevirtv1.RunStrategyRerunOnFailure:
		// Coming from another strategy the machine starts; with this one it has
		// succeeded, or somebody asks for it.
		return startIf(hasStartRequest(s.vm.VirtualMachine) || s.vm.Status.RunStrategy != strategy)
	}
	return leave
}

func wantedWithInstance(s *state, strategy kubevirtv1.VirtualMachineRunStrategy) wish {
	asked := hasStopRequest(s.vm.VirtualMachine, s.vmi.VirtualMachineInstance)
	switch strategy {
	case kubevirtv1.RunStrategyHalted:
		return stop
	case kubevirtv1.RunStrategyAlways, kubevirtv1.RunStrategyRerunOnFailure:
		return stopIf(asked || s.vmi.IsFinal())
	case kubevirtv1.RunStrategyManual:
		return stopIf(asked)
	}
	return leave
}

func startIf(yes bool) wish {
	if yes {
		return start
	}
	return leave
}

func stopIf(yes bool) wish {
	if yes {
		return stop
	}
	return leave
}

// hasStartRequest tells whether "virtctl start" asked for the machine.
func hasStartRequest(vm *kubevirtv1.VirtualMachine) bool {
	requests := vm.Status.StateChangeRequests
	return len(requests) > 0 && requests[0].Action == kubevirtv1.StartRequest
}

// hasStopRequest tells whether "virtctl stop" or "virtctl restart" asked for the end
// of this very instance.
func hasStopRequest(vm *kubevirtv1.VirtualMachine, vmi *kubevirtv1.VirtualMachineInstance) bool {
	requests := vm.Status.StateChangeRequests
	return len(requests) > 0 && requests[0].Action == kubevirtv1.StopRequest && requests[0].UID != nil && *requests[0].UID == vmi.UID
}

// start makes the instance, and the revision of the spec that it starts from.
func (p *player) start(ctx context.Context, s *state) error {
	if !s.store.templatesReady(s.vm.VirtualMachine) {
		return nil
	}
	vmi := compose(s.vm.VirtualMachine, p.Now())
	if noMemory(&vmi.Spec) {
		s.failure = &failure{"FailedCreate", "failure while starting VMI: admission webhook denied the request: no memory requested, " +
			"at least one of 'spec.domain.memory.guest', 'spec.domain.memory.hugepages.pageSize' or 'spec.domain.resources.requests.memory' must be set"}
		return nil
	}
	revision, err := p.remember(ctx, s.vm.VirtualMachine)
	if err != nil {
		return err
	}
	vmi.Status.VirtualMachineRevisionName = revision
	raw, err := content(vmi)
	if err != nil {
		return err
	}
	created, err := p.client.Resource(instances).Namespace(s.vm.Namespace).Create(ctx, object(raw), metav1.CreateOptions{FieldManager: FieldManager})
	if apierrors.IsAlreadyExists(err) {
		// Made in the meantime; the next pass looks at it.
		return apierrors.NewConflict(instances.GroupResource(), s.vm.Name, err)
	}
	if err != nil {
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			s.failure = &failure{"FailedCreate", fmt.Sprintf("failure while starting VMI: %v", err)}
			return nil
		}
		return err
	}
	typed, err := as[kubevirtv1.VirtualMachineInstance](created)
	if err != nil {
		return err
	}
	s.vmi = &instance{typed, created}
	// KubeVirt forgets about an awaited restart when it starts the machine.
	dropCondition(s.vm.VirtualMachine, kubevirtv1.VirtualMachineRestartRequired)
	p.Log.Info("instance made", "namespace", s.vm.Namespace, "machine", s.vm.Name)
	return p.readStorage(ctx, s)
}

// stop deletes the instance.
func (p *player) stop(ctx context.Context, s *state, strategy kubevirtv1.VirtualMachineRunStrategy) error {
	if s.vmi.DeletionTimestamp != nil {
		return nil
	}
	if strategy == kubevirtv1.RunStrategyRerunOnFailure && s.vmi.Status.Phase == kubevirtv1.Failed {
		s.vm.Status.StateChangeRequests = append(s.vm.Status.StateChangeRequests,
			kubevirtv1.VirtualMachineStateChangeRequest{Action: kubevirtv1.StartRequest})
	}
	uid := s.vmi.UID
	err := p.client.Resource(instances).Namespace(s.vmi.Namespace).Delete(ctx, s.vmi.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot delete instance %s/%s: %w", s.vmi.Namespace, s.vmi.Name, err)
	}
	p.Log.Info("instance deleted", "namespace", s.vmi.Namespace, "machine", s.vmi.Name)
	dropCondition(s.vm.VirtualMachine, kubevirtv1.VirtualMachineRestartRequired)
	s.vmi, err = p.getInstance(ctx, s.vm.Namespace, s.vm.Name)
	return err
}
