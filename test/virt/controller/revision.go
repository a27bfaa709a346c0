package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// remembered is what a revision holds.
type remembered struct {
	Spec kubevirtv1.VirtualMachineSpec `json:"spec"`
}

// remember stores the spec that a machine starts from, and returns the name of the
// revision, which is KubeVirt's.
func (p *player) remember(ctx context.Context, vm *kubevirtv1.VirtualMachine) (string, error) {
	data, err := json.Marshal(remembered{vm.Spec})
	if err != nil {
		return "", err
	}
	revision := &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ControllerRevision"},
		ObjectMeta: metav1.ObjectMeta{
			Name:            fmt.Sprintf("revision-start-vm-%s-%d", vm.UID, vm.Generation),
			Namespace:       vm.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vm, kubevirtv1.VirtualMachineGroupVersionKind)},
		},
		Revision: vm.Generation,
	}
	raw, err := content(revision)
	if err != nil {
		return "", err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return "", err
	}
	raw["data"] = fields
	_, err = p.client.Resource(revisions).Namespace(vm.Namespace).Create(ctx, object(raw), metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("cannot store the revision of machine %s/%s: %w", vm.Namespace, vm.Name, err)
	}
	return revision.Name, nil
}

// recall reads the spec that an instance was started from; nil if it is not known.
func (p *player) recall(ctx context.Context, vmi *instance) (*kubevirtv1.VirtualMachineSpec, error) {
	name := vmi.Status.VirtualMachineRevisionName
	if name == "" {
		return nil, nil
	}
	raw, err := p.client.Resource(revisions).Namespace(vmi.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, _ := raw.Object["data"].(map[string]any)
	spec := &remembered{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(data, spec); err != nil {
		return nil, fmt.Errorf("cannot read revision %s/%s: %w", vmi.Namespace, name, err)
	}
	return &spec.Spec, nil
}

// liveUpdate compares a machine with the spec its instance was started from. What
// KubeVirt can change while the guest runs it changes; anything else awaits a restart.
func (p *player) liveUpdate(ctx context.Context, s *state) error {
	if s.vm == nil || s.vmi == nil || s.vm.DeletionTimestamp != nil || s.vmi.DeletionTimestamp != nil || s.vm.Spec.Template == nil {
		return nil
	}
	started, err := p.recall(ctx, s.vmi)
	if err != nil || started == nil || started.Template == nil {
		return err
	}
	if reason := restartReason(s, started); reason != "" {
		requireRestart(s.vm.VirtualMachine, reason, metav1.NewTime(p.Now()))
		return nil
	}
	dropCondition(s.vm.VirtualMachine, kubevirtv1.VirtualMachineRestartRequired)
	return p.hotplug(ctx, s)
}

// restartReason says why a machine needs a restart; "" if it needs none.
func restartReason(s *state, started *kubevirtv1.VirtualMachineSpec) string {
	old, current := started.Template.Spec.DeepCopy(), s.vm.Spec.Template.Spec.DeepCopy()
	if reason := socketsReason(s, current); reason != "" {
		return reason
	}
	if reason := memoryReason(s, current); reason != "" {
		return reason
	}
	// What changes live is made equal, so that only the rest is compared.
	if old.Domain.CPU != nil && current.Domain.CPU != nil {
		old.Domain.CPU.Sockets = current.Domain.CPU.Sockets
	}
	if old.Domain.Memory != nil && current.Domain.Memory != nil && current.Domain.Memory.Guest != nil {
		old.Domain.Memory.Guest = current.Domain.Memory.Guest
	}
	old.NodeSelector, old.Affinity, old.Tolerations = current.NodeSelector, current.Affinity, current.Tolerations
	if onlyAdded(old, current) {
		old.Domain.Devices.Interfaces, old.Networks = current.Domain.Devices.Interfaces, current.Networks
	}
	if !equality.Semantic.DeepEqual(old, current) {
		return "a non-live-updatable field was changed in the template spec"
	}
	return ""
}

// onlyAdded tells whether interfaces were added and none changed: those are plugged in
// by a migration.
func onlyAdded(old, current *kubevirtv1.VirtualMachineInstanceSpec) bool {
	interfaces := map[string]kubevirtv1.Interface{}
	for _, iface := range current.Domain.Devices.Interfaces {
		interfaces[iface.Name] = iface
	}
	for _, iface := range old.Domain.Devices.Interfaces {
		if now, ok := interfaces[iface.Name]; !ok || !reflect.DeepEqual(now, iface) {
			return false
		}
	}
	networks := map[string]kubevirtv1.Network{}
	for _, network := range current.Networks {
		networks[network.Name] = network
	}
	for _, network := range old.Networks {
		if now, ok := networks[network.Name]; !ok || !reflect.DeepEqual(now, network) {
			return false
		}
	}
	return true
}

func socketsReason(s *state, current *kubevirtv1.VirtualMachineInstanceSpec) string {
	was := s.vmi.Spec.Domain.CPU
	if current.Domain.CPU == nil || was == nil || current.Domain.CPU.Sockets == 0 || current.Domain.CPU.Sockets == was.Sockets {
		return ""
	}
	switch {
	case current.Domain.CPU.Sockets > was.MaxSockets:
		return "CPU sockets updated in template spec to a value higher than what's available"
	case current.Domain.CPU.Sockets < was.Sockets:
		return "Reduction of CPU socket count requires a restart"
	}
	return ""
}

func memoryReason(s *state, current *kubevirtv1.VirtualMachineInstanceSpec) string {
	was := s.vmi.Spec.Domain.Memory
	if current.Domain.Memory == nil || current.Domain.Memory.Guest == nil || was == nil || was.Guest == nil || current.Domain.Memory.Guest.Equal(*was.Guest) {
		return ""
	}
	const changed = "memory updated in template spec"
	guest := current.Domain.Memory.Guest
	switch {
	case !migratable(s.vmi.VirtualMachineInstance):
		return changed + ". Memory-hotplug is only available for migratable VMs"
	case was.MaxGuest == nil:
		return changed + ". Memory-hotplug is not available for this VM configuration"
	case s.vmi.Status.Memory != nil && s.vmi.Status.Memory.GuestAtBoot != nil && guest.Cmp(*s.vmi.Status.Memory.GuestAtBoot) < 0:
		return changed + " to a value lower than what the VM started with"
	case guest.Cmp(*was.MaxGuest) > 0:
		return changed + " to a value higher than what's available"
	}
	return ""
}

func migratable(vmi *kubevirtv1.VirtualMachineInstance) bool {
	for _, condition := range vmi.Status.Conditions {
		if condition.Type == kubevirtv1.VirtualMachineInstanceIsMigratable {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// hotplug gives the instance the sockets and the memory that its machine has got.
func (p *player) hotplug(ctx context.Context, s *state) error {
	vmi := s.vmi.DeepCopy()
	template := s.vm.Spec.Template.Spec
	if cpu := template.Domain.CPU; cpu != nil && cpu.Sockets != 0 && vmi.Spec.Domain.CPU != nil {
		vmi.Spec.Domain.CPU.Sockets = cpu.Sockets
		if vmi.Status.CurrentCPUTopology != nil {
			vmi.Status.CurrentCPUTopology.Sockets = cpu.Sockets
		}
	}
	if memory := template.Domain.Memory; memory != nil && memory.Guest != nil && vmi.Spec.Domain.Memory != nil {
		vmi.Spec.Domain.Memory.Guest = memory.Guest
		if vmi.Status.Memory != nil {
			vmi.Status.Memory.GuestCurrent, vmi.Status.Memory.GuestRequested = memory.Guest, memory.Guest
		}
	}
	return p.writeInstance(ctx, s, vmi)
}

// requireRestart sets the condition RestartRequired.
func requireRestart(vm *kubevirtv1.VirtualMachine, message string, now metav1.Time) {
	for _, condition := range vm.Status.Conditions {
		if condition.Type == kubevirtv1.VirtualMachineRestartRequired && condition.Message == message {
			return
		}
	}
	dropCondition(vm, kubevirtv1.VirtualMachineRestartRequired)
	vm.Status.Conditions = append(vm.Status.Conditions, kubevirtv1.VirtualMachineCondition{
		Type: kubevirtv1.VirtualMachineRestartRequired, Status: corev1.ConditionTrue, Message: message, LastTransitionTime: now,
	})
}
