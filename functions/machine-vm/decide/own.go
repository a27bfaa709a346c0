package decide

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
)

// relation is what an object is to a Machine.
type relation int

const (
	// unmarked: nothing ties the object to any Machine.
	unmarked relation = iota
	// own: it was made for this Machine.
	own
	// foreign: it carries marks, and they are not this Machine's.
	foreign
)

// identity is a Machine as its objects know it.
type identity struct {
	name, uid, label string
	// adopt: a person accepts objects that record another UID.
	adopt     bool
	managedBy []string
}

func identify(machine *unstructured.Unstructured, settings Settings) identity {
	return identity{
		name: machine.GetName(), uid: string(machine.GetUID()),
		label:     v1alpha1.LabelValue(machine.GetName()),
		adopt:     machine.GetAnnotations()[v1alpha1.AnnotationAdopt] == v1alpha1.True,
		managedBy: []string{settings.ManagedBy, v1alpha1.DefaultManagedBy},
	}
}

// machineLabels name the Machine of an object, today's key first.
var machineLabels = []string{v1alpha1.LabelMachine, v1alpha1.LabelSourceMachine, v1alpha1.LabelLegacySourceMachine}

// relate tells whose an object of the Machine's namespace is. The first mark
// that is there decides: the recorded UID, an owner reference, a label.
func (id identity) relate(obj *unstructured.Unstructured) relation {
	uid, recorded := obj.GetAnnotations()[v1alpha1.AnnotationMachineUID]
	if recorded && uid == id.uid {
		return own
	}
	if recorded && !id.adopt {
		return foreign
	}
	if !recorded {
		switch id.owner(obj) {
		case own:
			return own
		case foreign:
			return foreign
		case unmarked:
		}
	}
	return id.labelled(obj, recorded)
}

// owner judges by owner references alone.
func (id identity) owner(obj *unstructured.Unstructured) relation {
	found := unmarked
	for _, ref := range obj.GetOwnerReferences() {
		if !kinds.Machines.Is(ref.APIVersion, ref.Kind) {
			continue
		}
		if string(ref.UID) == id.uid {
			return own
		}
		found = foreign
	}
	return found
}

// IsRecord tells the record of a Machine's interfaces, which is called like its owner,
// from a network.
func IsRecord(network *unstructured.Unstructured) bool {
	return slices.ContainsFunc(network.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return kinds.Machines.Is(ref.APIVersion, ref.Kind) && v1alpha1.RecordName(ref.Name) == network.GetName()
	})
}

// labelled judges by labels alone. Labels are easily written by anybody, so an
// object other than a virtual machine also has to be marked as managed.
func (id identity) labelled(obj *unstructured.Unstructured, marked bool) relation {
	labels := obj.GetLabels()
	for _, key := range machineLabels {
		value, ok := labels[key]
		marked = marked || ok
		if ok && value == id.label && (isVM(obj) || id.managed(labels)) {
			return own
		}
	}
	if marked {
		return foreign
	}
	return unmarked
}

func (id identity) managed(labels map[string]string) bool {
	return slices.Contains(id.managedBy, labels[v1alpha1.LabelManagedBy]) ||
		slices.Contains(id.managedBy, labels[v1alpha1.LabelLegacyManagedBy])
}

func isVM(obj *unstructured.Unstructured) bool {
	return kinds.VirtualMachines.Is(obj.GetAPIVersion(), obj.GetKind()) ||
		kinds.VirtualMachineInstances.Is(obj.GetAPIVersion(), obj.GetKind())
}

// whose names the Machine that an object is marked for, for a message.
func whose(obj *unstructured.Unstructured) string {
	if name := obj.GetAnnotations()[v1alpha1.AnnotationMachineName]; name != "" {
		return `Machine "` + name + `"`
	}
	for _, ref := range obj.GetOwnerReferences() {
		if kinds.Machines.Is(ref.APIVersion, ref.Kind) {
			return `Machine "` + ref.Name + `"`
		}
	}
	for _, key := range machineLabels {
		if value := obj.GetLabels()[key]; value != "" {
			return `Machine "` + value + `"`
		}
	}
	return "no Machine"
}

// labels are those of an object made for the Machine.
func (v *view) labels() map[string]string {
	return map[string]string{
		v1alpha1.LabelManagedBy:     v.in.Settings.ManagedBy,
		v1alpha1.LabelMachine:       v.id.label,
		v1alpha1.LabelSourceMachine: v.id.label,
	}
}

// marks are the annotations that tie an object to the Machine.
func (v *view) marks() map[string]string {
	return map[string]string{
		v1alpha1.AnnotationMachineUID:  v.id.uid,
		v1alpha1.AnnotationMachineName: v.id.name,
	}
}

// annotations are those of an object that is made for the Machine: its marks,
// and the installation, by which orphans are known.
func (v *view) annotations() map[string]string {
	marks := v.marks()
	if v.in.Installation != "" {
		marks[kind.AnnotationInstallation] = v.in.Installation
	}
	return marks
}

// remarked is a copy of an own object that records another UID, with the
// Machine's own: the supervisor was restored. Nil if nothing is to be done.
func (v *view) remarked(obj *unstructured.Unstructured) *unstructured.Unstructured {
	uid, recorded := obj.GetAnnotations()[v1alpha1.AnnotationMachineUID]
	if !recorded || uid == v.id.uid || v.id.relate(obj) != own {
		return nil
	}
	marked := obj.DeepCopy()
	marked.SetAnnotations(with(obj.GetAnnotations(), map[string]string{v1alpha1.AnnotationMachineUID: v.id.uid}))
	return marked
}
