package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// state is what one pass works on.
type state struct {
	vm  *machine
	vmi *instance
	// store is what is known of the claims behind the volumes.
	store storage
	// failure is why the machine could not be brought to what it asks for; it becomes
	// the condition Failure.
	failure *failure
}

// failure is a reason that the user of a machine is told.
type failure struct{ reason, message string }

// reconcileMachine brings the machine and the instance of one name one step further.
func (p *player) reconcileMachine(ctx context.Context, k key) error {
	s := &state{}
	var err error
	if s.vm, err = p.getMachine(ctx, k.namespace, k.name); err != nil {
		return err
	}
	if s.vmi, err = p.getInstance(ctx, k.namespace, k.name); err != nil {
		return err
	}
	if s.vmi != nil && s.vm != nil && !metav1.IsControlledBy(s.vmi, s.vm) {
		// An instance that somebody made by hand keeps the name; the machine waits.
		s.vm = nil
	}
	steps := []func(context.Context, *state) error{
		p.admit, p.readStorage, p.makeDataVolumes, p.power, p.advance, p.liveUpdate, p.report, p.release,
	}
	for _, step := range steps {
		if s.vm == nil && s.vmi == nil {
			return nil
		}
		if err := step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// admit writes what KubeVirt adds to each machine: the defaults of its webhooks, the
// annotations and the finalizer of its controller.
func (p *player) admit(ctx context.Context, s *state) error {
	if s.vm == nil || s.vm.DeletionTimestamp != nil || s.vm.Spec.Template == nil {
		return nil
	}
	fields := map[string]any{}
	if metadata := missingMetadata(s.vm.VirtualMachine); len(metadata) > 0 {
		fields["metadata"] = metadata
	}
	if template := missingDefaults(s.vm.VirtualMachine); len(template) > 0 {
		fields["spec"] = map[string]any{"template": template}
	}
	if len(fields) == 0 {
		return nil
	}
	raw, err := p.patch(ctx, machines, s.vm, fields)
	if err != nil {
		return err
	}
	typed, err := as[kubevirtv1.VirtualMachine](raw)
	if err != nil {
		return err
	}
	s.vm = &machine{typed, raw}
	p.Log.Info("machine admitted", "namespace", s.vm.Namespace, "machine", s.vm.Name)
	return nil
}

// missingMetadata is what virt-controller writes when it sees a machine first.
func missingMetadata(vm *kubevirtv1.VirtualMachine) map[string]any {
	metadata := map[string]any{}
	annotations := map[string]any{}
	for _, name := range []string{kubevirtv1.ControllerAPILatestVersionObservedAnnotation, kubevirtv1.ControllerAPIStorageVersionObservedAnnotation} {
		if vm.Annotations[name] != kubevirtv1.ApiLatestVersion {
			annotations[name] = kubevirtv1.ApiLatestVersion
		}
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if !slices.Contains(vm.Finalizers, kubevirtv1.VirtualMachineControllerFinalizer) {
		metadata["finalizers"] = append(slices.Clone(vm.Finalizers), kubevirtv1.VirtualMachineControllerFinalizer)
	}
	return metadata
}

// missingDefaults is what virt-api's mutating webhook writes into the template.
func missingDefaults(vm *kubevirtv1.VirtualMachine) map[string]any {
	spec := vm.Spec.Template.Spec
	domain := map[string]any{}
	firmware := map[string]any{}
	if spec.Domain.Firmware == nil || spec.Domain.Firmware.UUID == "" {
		firmware["uuid"] = derivedUUID(vm, "firmware")
	}
	if spec.Domain.Firmware == nil || spec.Domain.Firmware.Serial == "" {
		firmware["serial"] = derivedUUID(vm, "serial")
	}
	if len(firmware) > 0 {
		domain["firmware"] = firmware
	}
	fields := map[string]any{}
	arch := spec.Architecture
	if arch == "" {
		arch = "amd64"
		fields["architecture"] = arch
	}
	machineType := "q35"
	if arch == "arm64" {
		machineType = "virt"
	}
	if spec.Domain.Machine == nil || spec.Domain.Machine.Type == "" {
		domain["machine"] = map[string]any{"type": machineType}
	} else {
		machineType = spec.Domain.Machine.Type
	}
	if len(domain) > 0 {
		fields["domain"] = domain
	}
	template := map[string]any{}
	if len(fields) > 0 {
		template["spec"] = fields
	}
	pcie := strings.Contains(machineType, "q35") || strings.HasPrefix(machineType, "virt")
	if pcie && vm.Spec.Template.ObjectMeta.Annotations[kubevirtv1.PciTopologyVersionAnnotation] == "" {
		template["metadata"] = map[string]any{"annotations": map[string]any{
			kubevirtv1.PciTopologyVersionAnnotation: kubevirtv1.PciTopologyVersionV3,
		}}
	}
	return template
}

// release takes the finalizers off what is done: off an instance that is final, whose
// end the machine's status has by now, and off a machine without instance.
func (p *player) release(ctx context.Context, s *state) error {
	if s.vmi != nil {
		return p.releaseInstance(ctx, s)
	}
	if s.vm == nil || s.vm.DeletionTimestamp == nil || !slices.Contains(s.vm.Finalizers, kubevirtv1.VirtualMachineControllerFinalizer) {
		return nil
	}
	_, err := p.patch(ctx, machines, s.vm, map[string]any{"metadata": map[string]any{
		"finalizers": without(s.vm.Finalizers, kubevirtv1.VirtualMachineControllerFinalizer),
	}})
	if err != nil {
		return err
	}
	p.Log.Info("machine gone", "namespace", s.vm.Namespace, "machine", s.vm.Name)
	return nil
}

func (p *player) releaseInstance(ctx context.Context, s *state) error {
	if !s.vmi.IsFinal() {
		return nil
	}
	left := without(s.vmi.Finalizers, kubevirtv1.VirtualMachineInstanceFinalizer,
		kubevirtv1.DeprecatedVirtualMachineInstanceFinalizer, kubevirtv1.VirtualMachineControllerFinalizer)
	if len(left) == len(s.vmi.Finalizers) {
		return nil
	}
	if _, err := p.patch(ctx, instances, s.vmi, map[string]any{"metadata": map[string]any{"finalizers": left}}); err != nil {
		return fmt.Errorf("cannot release instance %s/%s: %w", s.vmi.Namespace, s.vmi.Name, err)
	}
	return nil
}

// without returns the names that are left, never nil, so that a patch empties the list.
func without(names []string, gone ...string) []string {
	left := make([]string, 0, len(names))
	for _, name := range names {
		if !slices.Contains(gone, name) {
			left = append(left, name)
		}
	}
	return left
}
