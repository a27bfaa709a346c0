package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// maxHotplugRatio is how much more memory and how many more sockets an instance can
// get while it runs.
const maxHotplugRatio = 4

// compose makes the instance of a machine: the template's metadata and spec, and what
// KubeVirt adds.
func compose(vm *kubevirtv1.VirtualMachine, now time.Time) *kubevirtv1.VirtualMachineInstance {
	annotations := maps.Clone(vm.Spec.Template.ObjectMeta.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kubevirtv1.VirtualMachineGenerationAnnotation] = strconv.FormatInt(vm.Generation, 10)
	vmi := &kubevirtv1.VirtualMachineInstance{
		TypeMeta: metav1.TypeMeta{APIVersion: machines.GroupVersion().String(), Kind: "VirtualMachineInstance"},
		ObjectMeta: metav1.ObjectMeta{
			Name:            vm.Name,
			Namespace:       vm.Namespace,
			Labels:          maps.Clone(vm.Spec.Template.ObjectMeta.Labels),
			Annotations:     annotations,
			Finalizers:      []string{kubevirtv1.VirtualMachineControllerFinalizer, kubevirtv1.VirtualMachineInstanceFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vm, kubevirtv1.VirtualMachineGroupVersionKind)},
		},
		Spec: *vm.Spec.Template.Spec.DeepCopy(),
	}
	setSpecDefaults(&vmi.Spec)
	kubevirtv1.SetObjectDefaults_VirtualMachineInstance(vmi)
	setStatus(vmi, now)
	return vmi
}

// setSpecDefaults fills in what an instance needs and its machine may leave out.
func setSpecDefaults(spec *kubevirtv1.VirtualMachineInstanceSpec) {
	attach := spec.Domain.Devices.AutoattachPodInterface
	if len(spec.Networks) == 0 && len(spec.Domain.Devices.Interfaces) == 0 && (attach == nil || *attach) {
		spec.Domain.Devices.Interfaces = []kubevirtv1.Interface{*kubevirtv1.DefaultMasqueradeNetworkInterface()}
		spec.Networks = []kubevirtv1.Network{*kubevirtv1.DefaultPodNetwork()}
	}
	disks := map[string]bool{}
	for _, disk := range spec.Domain.Devices.Disks {
		disks[disk.Name] = true
	}
	for _, volume := range spec.Volumes {
		if !disks[volume.Name] {
			spec.Domain.Devices.Disks = append(spec.Domain.Devices.Disks, kubevirtv1.Disk{Name: volume.Name})
		}
	}
	setProcessor(spec)
	setMemory(spec)
}

func setProcessor(spec *kubevirtv1.VirtualMachineInstanceSpec) {
	if spec.Domain.CPU == nil {
		spec.Domain.CPU = &kubevirtv1.CPU{}
	}
	cpu := spec.Domain.CPU
	if cpu.Cores == 0 && cpu.Sockets == 0 && cpu.Threads == 0 {
		cpu.Cores, cpu.Sockets, cpu.Threads = 1, 1, 1
	}
	if cpu.Model == "" {
		cpu.Model = kubevirtv1.DefaultCPUModel
	}
	if cpu.MaxSockets == 0 && spec.Architecture != "arm64" {
		cpu.MaxSockets = cpu.Sockets * maxHotplugRatio
	}
}

func setMemory(spec *kubevirtv1.VirtualMachineInstanceSpec) {
	if spec.Domain.Memory == nil {
		spec.Domain.Memory = &kubevirtv1.Memory{}
	}
	memory := spec.Domain.Memory
	requests := spec.Domain.Resources.Requests.Memory()
	if memory.Guest == nil && !requests.IsZero() {
		memory.Guest = requests
	}
	if memory.Guest == nil || memory.MaxGuest != nil || spec.Architecture == "arm64" {
		return
	}
	// Memory grows in blocks of 2Mi, and only that of guests with 1Gi and more.
	if guest := memory.Guest.Value(); guest >= 1<<30 && guest%(2<<20) == 0 {
		memory.MaxGuest = resource.NewQuantity(guest*maxHotplugRatio, resource.BinarySI)
	}
}

// noMemory tells whether KubeVirt would refuse the instance for want of memory.
func noMemory(spec *kubevirtv1.VirtualMachineInstanceSpec) bool {
	return spec.Domain.Resources.Requests.Memory().IsZero() && spec.Domain.Memory.Guest == nil && spec.Domain.Memory.Hugepages == nil
}

// setStatus is the status that an instance is born with.
func setStatus(vmi *kubevirtv1.VirtualMachineInstance, now time.Time) {
	if guest := vmi.Spec.Domain.Memory.Guest; guest != nil {
		vmi.Status.Memory = &kubevirtv1.MemoryStatus{GuestAtBoot: guest, GuestCurrent: guest, GuestRequested: guest}
	}
	cpu := vmi.Spec.Domain.CPU
	vmi.Status.CurrentCPUTopology = &kubevirtv1.CPUTopology{Cores: cpu.Cores, Sockets: cpu.Sockets, Threads: cpu.Threads}
	vmi.Status.RuntimeUser = 107
	setPhase(vmi, kubevirtv1.Pending, now)
	setReady(vmi, "PodNotExists", "virt-launcher pod has not yet been scheduled", now)
}

// setPhase moves an instance to a phase and notes the time.
func setPhase(vmi *kubevirtv1.VirtualMachineInstance, phase kubevirtv1.VirtualMachineInstancePhase, now time.Time) {
	if vmi.Status.Phase == phase {
		return
	}
	vmi.Status.Phase = phase
	vmi.Status.PhaseTransitionTimestamps = append(vmi.Status.PhaseTransitionTimestamps,
		kubevirtv1.VirtualMachineInstancePhaseTransitionTimestamp{Phase: phase, PhaseTransitionTimestamp: metav1.NewTime(now)})
}

// derivedUUID is a UUID that a machine keeps for its life. KubeVirt draws one; here
// two runs with the same objects give the same.
func derivedUUID(vm *kubevirtv1.VirtualMachine, purpose string) string {
	sum := sha256.Sum256([]byte(string(vm.UID) + "/" + purpose))
	// The marks of a random UUID: version 4, variant 1.
	sum[6] = sum[6]&0x0f | 0x40
	sum[8] = sum[8]&0x3f | 0x80
	text := hex.EncodeToString(sum[:16])
	return fmt.Sprintf("%s-%s-%s-%s-%s", text[:8], text[8:12], text[12:16], text[16:20], text[20:])
}

func object(fields map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: fields}
}
