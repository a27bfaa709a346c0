package decide

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubevirtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// machineTemplate is a KubevirtMachineTemplate. CAPK's own types bring a client
// along, which no decision may reach; what lies in them is KubeVirt's.
type machineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              machineTemplateSpec `json:"spec"`
}

type machineTemplateSpec struct {
	Template struct {
		Spec machineSpec `json:"spec"`
	} `json:"template"`
}

type machineSpec struct {
	VirtualMachineTemplate struct {
		ObjectMeta metav1.ObjectMeta             `json:"metadata,omitzero"`
		Spec       kubevirtv1.VirtualMachineSpec `json:"spec"`
	} `json:"virtualMachineTemplate"`
	BootstrapCheck        bootstrapCheck          `json:"virtualMachineBootstrapCheck"`
	ProviderID            *string                 `json:"providerID,omitempty"`
	InfraClusterSecretRef *corev1.ObjectReference `json:"infraClusterSecretRef,omitempty"`
}

type bootstrapCheck struct {
	CheckStrategy string `json:"checkStrategy,omitempty"`
}

// spec is a machine as its template says it.
func (m *machine) spec() machineSpec {
	always, migrate := kubevirtv1.RunStrategyAlways, kubevirtv1.EvictionStrategyLiveMigrate
	memory := m.memory.DeepCopy()
	instance := kubevirtv1.VirtualMachineInstanceSpec{EvictionStrategy: &migrate}
	instance.Domain.CPU = &kubevirtv1.CPU{Cores: uint32(m.cores.Value())} //nolint:gosec // wantSize keeps it within bounds
	instance.Domain.Memory = &kubevirtv1.Memory{Guest: &memory}
	template := &kubevirtv1.VirtualMachineInstanceTemplateSpec{}
	if m.bridgeMigration {
		template.ObjectMeta.Annotations = map[string]string{kubevirtv1.AllowPodBridgeNetworkLiveMigrationAnnotation: ""}
	}
	spec := machineSpec{BootstrapCheck: bootstrapCheck{CheckStrategy: "none"}}
	vm := &spec.VirtualMachineTemplate.Spec
	for _, d := range m.disks {
		vm.DataVolumeTemplates = append(vm.DataVolumeTemplates, m.dataVolume(d))
		instance.Domain.Devices.Disks = append(instance.Domain.Devices.Disks, kubevirtv1.Disk{
			Name: d.name, DiskDevice: kubevirtv1.DiskDevice{Disk: &kubevirtv1.DiskTarget{Bus: kubevirtv1.DiskBusVirtio}},
		})
		instance.Volumes = append(instance.Volumes, kubevirtv1.Volume{
			Name: d.name, VolumeSource: kubevirtv1.VolumeSource{DataVolume: &kubevirtv1.DataVolumeSource{Name: d.name}},
		})
	}
	for _, n := range m.nics {
		instance.Domain.Devices.Interfaces = append(instance.Domain.Devices.Interfaces, kubevirtv1.Interface{
			Name: n.Name, InterfaceBindingMethod: kubevirtv1.InterfaceBindingMethod{Bridge: &kubevirtv1.InterfaceBridge{}},
		})
		instance.Networks = append(instance.Networks, n.network())
	}
	template.Spec = instance
	vm.RunStrategy, vm.Template = &always, template
	return spec
}

func (n nic) network() kubevirtv1.Network {
	if n.Definition == "" {
		return kubevirtv1.Network{Name: n.Name, NetworkSource: kubevirtv1.NetworkSource{Pod: &kubevirtv1.PodNetwork{}}}
	}
	return kubevirtv1.Network{Name: n.Name, NetworkSource: kubevirtv1.NetworkSource{
		Multus: &kubevirtv1.MultusNetwork{NetworkName: n.Definition, Default: n.Default},
	}}
}

// dataVolume is the template of the volume behind a disk. An empty storage class or
// volume mode is left to the cluster.
func (m *machine) dataVolume(d disk) kubevirtv1.DataVolumeTemplateSpec {
	claim := &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.PersistentVolumeAccessMode(m.accessMode)},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: d.size.DeepCopy()}},
	}
	if m.storageClass != "" {
		class := m.storageClass
		claim.StorageClassName = &class
	}
	if m.volumeMode != "" {
		mode := corev1.PersistentVolumeMode(m.volumeMode)
		claim.VolumeMode = &mode
	}
	dv := kubevirtv1.DataVolumeTemplateSpec{ObjectMeta: metav1.ObjectMeta{Name: d.name}, Spec: cdiv1.DataVolumeSpec{PVC: claim}}
	if d.source == "" {
		dv.Spec.Source = &cdiv1.DataVolumeSource{Blank: &cdiv1.DataVolumeBlankImage{}}
		return dv
	}
	namespace := d.sourceNamespace
	dv.Spec.SourceRef = &cdiv1.DataVolumeSourceRef{Kind: dockyards.DataSources.Kind, Name: d.source, Namespace: &namespace}
	return dv
}

// readSpec is what a live template says, in the same order of interfaces as any
// other that says the same. Not ok: it cannot be read.
func readSpec(obj *unstructured.Unstructured) (machineSpec, bool) {
	if obj == nil {
		return machineSpec{}, false
	}
	template, err := plan.Typed[machineTemplate](obj)
	if err != nil {
		return machineSpec{}, false
	}
	return ordered(template.Spec.Template.Spec), true
}

// ordered sorts what has no order of its own.
func ordered(spec machineSpec) machineSpec {
	template := spec.VirtualMachineTemplate.Spec.Template
	if template == nil {
		return spec
	}
	interfaces, networks := template.Spec.Domain.Devices.Interfaces, template.Spec.Networks
	slices.SortStableFunc(interfaces, func(a, b kubevirtv1.Interface) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(networks, func(a, b kubevirtv1.Network) int { return strings.Compare(a.Name, b.Name) })
	return spec
}

// says tells whether a live template says that machines shall be like this:
// quantities by value, absent like empty, interfaces in any order.
func (m *machine) says(obj *unstructured.Unstructured) bool {
	have, ok := readSpec(obj)
	return ok && equality.Semantic.DeepEqual(have, ordered(m.spec()))
}

// differences names what a live template says otherwise. It is empty if and only if
// the template says the same.
func (m *machine) differences(obj *unstructured.Unstructured) []string {
	have, ok := readSpec(obj)
	if !ok {
		return []string{"machine template"}
	}
	want := ordered(m.spec())
	if equality.Semantic.DeepEqual(have, want) {
		return nil
	}
	var names []string
	a, b := have.instance(), want.instance()
	for _, part := range []struct {
		name      string
		have, now any
	}{
		{"cpu", a.Domain.CPU, b.Domain.CPU},
		{"memory", a.Domain.Memory, b.Domain.Memory},
		{"release", have.image(), want.image()},
		{"disks", have.volumes(), want.volumes()},
		{"networks", []any{a.Domain.Devices.Interfaces, a.Networks}, []any{b.Domain.Devices.Interfaces, b.Networks}},
	} {
		if !equality.Semantic.DeepEqual(part.have, part.now) {
			names = append(names, part.name)
		}
	}
	if len(names) == 0 {
		return []string{"machine template"}
	}
	return names
}

func (s machineSpec) instance() kubevirtv1.VirtualMachineInstanceSpec {
	if template := s.VirtualMachineTemplate.Spec.Template; template != nil {
		return template.Spec
	}
	return kubevirtv1.VirtualMachineInstanceSpec{}
}

// image is where the disks with an image get it from.
func (s machineSpec) image() []*cdiv1.DataVolumeSourceRef {
	var refs []*cdiv1.DataVolumeSourceRef
	for _, dv := range s.VirtualMachineTemplate.Spec.DataVolumeTemplates {
		if dv.Spec.SourceRef != nil {
			refs = append(refs, dv.Spec.SourceRef)
		}
	}
	return refs
}

// volumes are the disks but for where their image comes from.
func (s machineSpec) volumes() []any {
	instance := s.instance()
	all := []any{instance.Domain.Devices.Disks, instance.Volumes}
	for _, dv := range s.VirtualMachineTemplate.Spec.DataVolumeTemplates {
		dv.Spec.SourceRef = nil
		all = append(all, dv)
	}
	return all
}
