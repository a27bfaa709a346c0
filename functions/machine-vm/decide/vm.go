package decide

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
)

// planVM creates the virtual machine, or changes the live one.
func (v *view) planVM() {
	if v.vm != nil {
		v.changeVM()
		return
	}
	obj := v.object(kinds.VirtualMachines, v.newVM())
	if obj == nil {
		return
	}
	// What Go types write although nothing was said of it.
	for _, path := range [][]string{{"resources"}, {"features", "acpi"}} {
		full := append([]string{"spec", "template", "spec", "domain"}, path...)
		if empty, ok := at(obj.Object, full...).(map[string]any); ok && len(empty) == 0 {
			drop(obj.Object, full...)
		}
	}
	if v.cloudInit != nil {
		items, _ := at(obj.Object, "spec", "template", "spec", "volumes").([]any)
		put(obj.Object, append(items, v.cloudInitVolume()), "spec", "template", "spec", "volumes")
	}
	v.createObject(kinds.VirtualMachines, obj, &v.vms, "the Machine has no virtual machine")
}

// newVM is a new virtual machine, but for the volume of cloud-init.
func (v *view) newVM() *kubevirtv1.VirtualMachine {
	strategy := kubevirtv1.RunStrategyAlways
	if v.machine.Spec.Running != nil && !*v.machine.Spec.Running {
		strategy = kubevirtv1.RunStrategyHalted
	}
	vm := &kubevirtv1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{
			Name: v.vmName, Namespace: v.namespace, Labels: v.labels(),
			Annotations: with(v.annotations(), map[string]string{annotationWritten: v.statements().String()}),
		},
		Spec: kubevirtv1.VirtualMachineSpec{
			RunStrategy: &strategy,
			Template: &kubevirtv1.VirtualMachineInstanceTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: v.labels()},
				Spec:       v.newSpec(),
			},
		},
	}
	if v.in.Target.Same {
		vm.OwnerReferences = []metav1.OwnerReference{v.ownerReference()}
	}
	if v.iso != nil {
		vm.Spec.DataVolumeTemplates = []kubevirtv1.DataVolumeTemplateSpec{v.isoTemplate()}
	}
	return vm
}

func (v *view) newSpec() kubevirtv1.VirtualMachineInstanceSpec {
	domain := v.machine.Spec.Domain
	memory := v.size.memory.DeepCopy()
	no := false
	spec := kubevirtv1.VirtualMachineInstanceSpec{
		Domain: kubevirtv1.DomainSpec{
			CPU: &kubevirtv1.CPU{
				Cores: processors(v.size.cores), Threads: processors(v.size.threads), Sockets: processors(v.size.sockets),
				Model: v.in.Settings.CPUModel,
			},
			Memory:   &kubevirtv1.Memory{Guest: &memory},
			Features: v.newFeatures(),
			Firmware: v.newFirmware(),
			Devices:  kubevirtv1.Devices{AutoattachPodInterface: &no},
		},
	}
	if domain.Machine.Type != "" {
		spec.Domain.Machine = &kubevirtv1.Machine{Type: domain.Machine.Type}
	}
	if v.machine.Spec.OS.Architecture == archARM64 {
		spec.Architecture = archARM64
	}
	if v.multiqueue() {
		yes := true
		spec.Domain.Devices.NetworkInterfaceMultiQueue = &yes
	}
	v.newDevices(&spec)
	return spec
}

// processors is a checked count.
func processors(c count) uint32 { return uint32(c.value) } //nolint:gosec // checkSize bounds it

// multiqueue: several queues are of use to several processors only.
func (v *view) multiqueue() bool {
	s := v.size
	several := s.cores.value > 1 || s.threads.value > 1 || s.sockets.value > 1
	return several && slices.ContainsFunc(v.nics, func(n nic) bool { return n.model == modelVirtio })
}

func (v *view) newDevices(spec *kubevirtv1.VirtualMachineInstanceSpec) {
	order := v.bootOrder()
	devices := &spec.Domain.Devices
	for _, d := range v.disks {
		devices.Disks = append(devices.Disks, kubevirtv1.Disk{
			Name: d.name, BootOrder: ordinal(order, diskWord(d.name)),
			DiskDevice: kubevirtv1.DiskDevice{Disk: &kubevirtv1.DiskTarget{Bus: kubevirtv1.DiskBus(d.bus)}},
		})
		spec.Volumes = append(spec.Volumes, kubevirtv1.Volume{Name: d.name, VolumeSource: kubevirtv1.VolumeSource{
			PersistentVolumeClaim: &kubevirtv1.PersistentVolumeClaimVolumeSource{
				PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: d.claim},
			},
		}})
	}
	if v.iso != nil {
		devices.Disks = append(devices.Disks, kubevirtv1.Disk{
			Name: v1alpha1.ISODiskName, BootOrder: ordinal(order, diskWord(v1alpha1.ISODiskName)),
			DiskDevice: kubevirtv1.DiskDevice{CDRom: &kubevirtv1.CDRomTarget{Bus: v.iso.bus}},
		})
		spec.Volumes = append(spec.Volumes, kubevirtv1.Volume{Name: v1alpha1.ISODiskName, VolumeSource: kubevirtv1.VolumeSource{
			DataVolume: &kubevirtv1.DataVolumeSource{Name: v.iso.name},
		}})
	}
	if v.cloudInit != nil {
		devices.Disks = append(devices.Disks, kubevirtv1.Disk{
			Name:       cloudInitDisk,
			DiskDevice: kubevirtv1.DiskDevice{Disk: &kubevirtv1.DiskTarget{Bus: kubevirtv1.DiskBusVirtio}},
		})
	}
	for _, n := range v.nics {
		face, network := newInterface(n)
		face.BootOrder = ordinal(order, nicWord(n.name))
		devices.Interfaces = append(devices.Interfaces, face)
		spec.Networks = append(spec.Networks, network)
	}
}

func (v *view) bootOrder() map[string]uint {
	return bootOrder(v.machine.Spec.BootOrder, v.disks, v.nics, v.hasISO(), v.machine.Spec.OS.ImageID == "")
}

// hasISO tells whether the virtual machine has, or gets, the boot image.
func (v *view) hasISO() bool {
	return v.iso != nil || (named(volumes(v.vm), v1alpha1.ISODiskName) != nil && !v.ejected())
}

func ordinal(order map[string]uint, word string) *uint {
	if n, ok := order[word]; ok {
		return &n
	}
	return nil
}

func newInterface(n nic) (kubevirtv1.Interface, kubevirtv1.Network) {
	face := kubevirtv1.Interface{Name: n.name, Model: n.model, MacAddress: n.mac}
	network := kubevirtv1.Network{Name: n.name}
	if n.attachment == "" {
		face.Masquerade = &kubevirtv1.InterfaceMasquerade{}
		network.Pod = &kubevirtv1.PodNetwork{}
		return face, network
	}
	face.Bridge = &kubevirtv1.InterfaceBridge{}
	network.Multus = &kubevirtv1.MultusNetwork{NetworkName: n.attachment}
	return face, network
}

// cloudInitVolume is the volume of cloud-init, as plain fields: typed ones
// would not take tokens for what they are.
func (v *view) cloudInitVolume() map[string]any {
	fields := make(map[string]any, len(v.cloudInit.fields))
	for key, value := range v.cloudInit.fields {
		fields[key] = value
	}
	return map[string]any{"name": cloudInitDisk, v.cloudInit.source: fields}
}
