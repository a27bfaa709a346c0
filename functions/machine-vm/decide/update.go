package decide

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
)

// merge is a live virtual machine while it is changed, field by field and
// entry by entry: what others wrote stays.
type merge struct {
	vm *unstructured.Unstructured
	// was and now are what the function wrote before and what it states now.
	was, now words
	// keep: nothing is ever taken out of lists, since others made the machine.
	keep bool
	// changed names what was changed.
	changed []string
	// extraDisks and extraNics are devices beyond those of the Machine.
	extraDisks, extraNics []string
}

// changeVM plans what a live virtual machine needs: the Machine's marks at all
// times, its statements once they are enforced, and the ejection of its image.
func (v *view) changeVM() {
	hadISO := named(volumes(v.vm), v1alpha1.ISODiskName) != nil
	m := v.merged()
	v.extraDisks, v.extraNics = m.extraDisks, m.extraNics
	wanted := v.vm.DeepCopy()
	if v.enforced {
		wanted = m.vm
		v.note(wanted, annotationWritten, m.now.String())
	} else {
		v.differences = m.changed
	}
	why := slices.Clone(m.changed)
	if !v.enforced {
		why = nil
	}
	if v.ejected() && hadISO {
		ejectISO(wanted)
		why = append(why, v1alpha1.ISODiskName)
	}
	v.mark(wanted)
	if !sameObject(v.vm, wanted) {
		reason := "the virtual machine's marks are not those of the Machine"
		if len(why) > 0 {
			reason = "the virtual machine differs in " + strings.Join(why, ", ")
		}
		v.patch(v.in.Target.Cluster, kinds.VirtualMachines, v.vm, wanted, &v.vms, reason)
	}
	v.planEjection(hadISO)
}

func (v *view) note(obj *unstructured.Unstructured, key, value string) {
	if obj.GetAnnotations()[key] != value {
		obj.SetAnnotations(with(obj.GetAnnotations(), map[string]string{key: value}))
	}
}

// merged is the live virtual machine with everything that the Machine states.
func (v *view) merged() *merge {
	m := &merge{
		vm: v.vm.DeepCopy(), was: parseWords(v.vm.GetAnnotations()[annotationWritten]), now: v.statements(), keep: v.adopted(),
	}
	m.sizes(v)
	m.domain(v)
	m.firmware(v)
	m.power(v)
	m.disks(v)
	m.networks(v)
	m.cloudInit(v)
	m.bootOrder(v)
	return m
}

func (m *merge) spec() map[string]any {
	spec, ok := at(m.vm.Object, "spec", "template", "spec").(map[string]any)
	if !ok {
		spec = map[string]any{}
		put(m.vm.Object, spec, "spec", "template", "spec")
	}
	return spec
}

func (m *merge) note(what string) { m.changed = appendNew(m.changed, what) }

// removed tells that a statement was written and is not made any more.
func (m *merge) removed(word string) bool { return m.was.has(word) && !m.now.has(word) }

// set writes a value that is stated, or removes one that was.
func (m *merge) set(word string, value any, path ...string) {
	spec := m.spec()
	switch {
	case m.now.has(word):
		if at(spec, path...) != value {
			put(spec, value, path...)
			m.note(word)
		}
	case m.removed(word):
		if at(spec, path...) != nil {
			drop(spec, path...)
			m.note(word)
		}
	}
}

// sizes: a statement that is removed falls back to the next source, which may
// be the default.
func (m *merge) sizes(v *view) {
	spec := m.spec()
	for _, c := range []struct {
		word  string
		count count
	}{{wordCores, v.size.cores}, {wordThreads, v.size.threads}, {wordSockets, v.size.sockets}} {
		have, ok := number(spec, "domain", "cpu", c.word)
		if !ok || have == 0 {
			have = 1 // as KubeVirt counts what is absent
		}
		if (m.now.has(c.word) || m.removed(c.word)) && have != c.count.value {
			put(spec, c.count.value, "domain", "cpu", c.word)
			m.note(c.word)
		}
	}
	have, ok := quantity(spec, "domain", "memory", "guest")
	if (m.now.has(wordMemory) || m.removed(wordMemory)) && (!ok || have.Cmp(v.size.memory) != 0) {
		put(spec, v.size.memory.String(), "domain", "memory", "guest")
		m.note(wordMemory)
	}
}

func (m *merge) domain(v *view) {
	domain := v.machine.Spec.Domain
	m.set(wordMachineType, domain.Machine.Type, "domain", "machine", "type")
	m.set(wordACPI, value(domain.Features.ACPI), "domain", "features", "acpi", "enabled")
	m.set(wordAPIC, value(domain.Features.APIC), "domain", "features", "apic", "enabled")
	off := domain.Features.HyperV != nil && !*domain.Features.HyperV
	for _, feature := range []string{"relaxed", "vapic", "spinlocks"} {
		m.set(wordHyperV, true, "domain", "features", "hyperv", feature, "enabled")
		if off && at(m.spec(), "domain", "features", "hyperv", feature) != nil {
			drop(m.spec(), "domain", "features", "hyperv", feature)
			m.note(wordHyperV)
		}
	}
	m.set(wordHyperV, int64(spinlockRetries), "domain", "features", "hyperv", "spinlocks", "spinlocks")
	m.set(wordSMM, true, "domain", "features", "smm", "enabled")
}

func value(b *bool) bool { return b != nil && *b }

// firmware changes what the Machine states and nothing else: the firmware's
// UUID, say, is KubeVirt's.
func (m *merge) firmware(v *view) {
	stated, _ := v.firmwareStated()
	spec := m.spec()
	switch stated {
	case firmwareUnset:
		if m.removed(wordFirmware) && at(spec, "domain", "firmware", "bootloader") != nil {
			drop(spec, "domain", "firmware", "bootloader")
			m.note(wordFirmware)
		}
	case firmwareBIOS:
		m.bootloader("efi", "bios")
	case firmwareEFI, firmwareSecure:
		m.bootloader("bios", "efi")
		m.set(wordFirmware, stated == firmwareSecure, "domain", "firmware", "bootloader", "efi", "secureBoot")
	}
}

func (m *merge) bootloader(not, wanted string) {
	spec := m.spec()
	if at(spec, "domain", "firmware", "bootloader", not) != nil {
		drop(spec, "domain", "firmware", "bootloader", not)
		m.note(wordFirmware)
	}
	if at(spec, "domain", "firmware", "bootloader", wanted) == nil {
		put(spec, map[string]any{}, "domain", "firmware", "bootloader", wanted)
		m.note(wordFirmware)
	}
}

// Run strategies of KubeVirt that the function writes.
const (
	strategyAlways = "Always"
	strategyHalted = "Halted"
)

// power enforces a stated power state in the field that the virtual machine
// uses already.
func (m *merge) power(v *view) {
	if v.machine.Spec.Running == nil {
		return
	}
	wanted := *v.machine.Spec.Running
	if running, ok := boolean(m.vm.Object, "spec", "running"); ok {
		if running != wanted {
			put(m.vm.Object, wanted, "spec", "running")
			m.note("running")
		}
		return
	}
	strategy := text(m.vm.Object, "spec", "runStrategy")
	halted := strategy == strategyHalted
	switch {
	case wanted && (halted || strategy == ""):
		put(m.vm.Object, strategyAlways, "spec", "runStrategy")
	case !wanted && !halted:
		put(m.vm.Object, strategyHalted, "spec", "runStrategy")
	default:
		return
	}
	m.note("running")
}

// ejectISO takes the boot image out of a virtual machine.
func ejectISO(vm *unstructured.Unstructured) {
	iso := v1alpha1.ISODiskName
	source := volumeClaim(named(volumes(vm), iso))
	removeNamed(vm.Object, iso, "spec", "template", "spec", "volumes")
	removeNamed(vm.Object, iso, "spec", "template", "spec", "domain", "devices", "disks")
	templates, _ := at(vm.Object, "spec", "dataVolumeTemplates").([]any)
	templates = slices.DeleteFunc(slices.Clone(templates), func(item any) bool {
		entry, _ := item.(map[string]any)
		return source != "" && text(entry, "metadata", "name") == source
	})
	if len(templates) == 0 {
		drop(vm.Object, "spec", "dataVolumeTemplates")
		return
	}
	put(vm.Object, templates, "spec", "dataVolumeTemplates")
}

// removeNamed takes the entry of a name out of a list, and tells whether it
// was there.
func removeNamed(content map[string]any, name string, path ...string) bool {
	items, _ := at(content, path...).([]any)
	left := slices.DeleteFunc(slices.Clone(items), func(item any) bool {
		entry, _ := item.(map[string]any)
		return text(entry, "name") == name
	})
	if len(left) == len(items) {
		return false
	}
	put(content, left, path...)
	return true
}

// mark puts the Machine's marks on a live virtual machine. They are metadata,
// so KubeVirt asks for no restart because of them.
func (v *view) mark(vm *unstructured.Unstructured) {
	marks := v.marks()
	if v.adopted() {
		marks[v1alpha1.AnnotationAdopted] = strconv.FormatInt(v.adoptedAt(), 10)
	}
	vm.SetAnnotations(with(vm.GetAnnotations(), marks))
	vm.SetLabels(v.labelled(vm.GetLabels()))
	have := map[string]string{}
	if labels, ok := at(vm.Object, "spec", "template", "metadata", "labels").(map[string]any); ok {
		for key, value := range labels {
			have[key], _ = value.(string)
		}
	}
	put(vm.Object, anyMap(v.labelled(have)), "spec", "template", "metadata", "labels")
	v.own(vm)
}

// labelled are the labels of an object with the Machine's. One that is managed
// already keeps its word for it.
func (v *view) labelled(have map[string]string) map[string]string {
	labels := v.labels()
	if slices.Contains(v.id.managedBy, have[v1alpha1.LabelManagedBy]) {
		delete(labels, v1alpha1.LabelManagedBy)
	}
	return with(have, labels)
}

// own sets the owner reference to the Machine where both are on one cluster,
// and removes it where they are not: that cluster's garbage collector would
// look for the Machine there, and delete the virtual machine.
func (v *view) own(vm *unstructured.Unstructured) {
	have := vm.GetOwnerReferences()
	found := false
	refs := slices.DeleteFunc(slices.Clone(have), func(ref metav1.OwnerReference) bool {
		ours := kinds.Machines.Is(ref.APIVersion, ref.Kind) && ref.Name == v.id.name
		keep := v.in.Target.Same && string(ref.UID) == v.id.uid
		found = found || (ours && keep)
		return ours && !keep
	})
	if v.in.Target.Same && !found {
		refs = append(refs, v.ownerReference())
	}
	if len(refs) != len(have) || (v.in.Target.Same && !found) {
		vm.SetOwnerReferences(refs)
	}
	if len(refs) == 0 {
		drop(vm.Object, "metadata", "ownerReferences")
	}
}
