package decide

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
)

// choice is which virtual machine is a Machine's.
type choice struct {
	// vm is nil when there is none yet.
	vm *unstructured.Unstructured
	// name is the virtual machine's, also of one that is to be created.
	name    string
	problem *Problem
}

// Candidates are the names that a Machine's virtual machine may have, the one
// of a new virtual machine first. The default prefix is among them under any
// setting: until November 2025 upstream gave it to all, and an installation with
// its later names, which have none, may hold both.
func Candidates(machine *unstructured.Unstructured, settings Settings) []string {
	var names []string
	for _, name := range append(VMNames(machine.GetName(), settings), machine.GetName(), text(machine.Object, "status", "vmName")) {
		if name != "" {
			names = appendNew(names, name)
		}
	}
	return names
}

// VMNames are the names with a prefix that the virtual machine of a Machine may have.
func VMNames(machine string, settings Settings) []string {
	return appendNew([]string{v1alpha1.VirtualMachineName(settings.VMNamePrefix, machine)}, v1alpha1.VirtualMachineName(v1alpha1.DefaultVMNamePrefix, machine))
}

// Chosen is the name of the Machine's virtual machine among those that were
// read, or of the one that would be created.
func Chosen(machine *unstructured.Unstructured, settings Settings, vms []unstructured.Unstructured) string {
	return choose(machine, settings, vms).name
}

func choose(machine *unstructured.Unstructured, settings Settings, vms []unstructured.Unstructured) choice {
	id := identify(machine, settings)
	names := Candidates(machine, settings)
	made := choice{name: names[0]}

	var owned []*unstructured.Unstructured
	for _, name := range names {
		if vm := find(vms, name); vm != nil && id.relate(vm) == own {
			owned = append(owned, vm)
		}
	}
	if len(owned) == 1 {
		return choice{vm: owned[0], name: owned[0].GetName()}
	}
	if len(owned) > 1 {
		made.problem = conflict(fmt.Sprintf("VirtualMachines %q and %q both belong to this Machine: delete one of them, or take its marks away",
			owned[0].GetName(), owned[1].GetName()))
		return made
	}
	inTheWay := find(vms, names[0])
	if inTheWay == nil {
		return made
	}
	if id.relate(inTheWay) == unmarked && settings.VMNamePrefix != "" {
		return choice{vm: inTheWay, name: inTheWay.GetName()}
	}
	made.problem = conflict(fmt.Sprintf("VirtualMachine %q exists and belongs to %s: rename or delete one of the two", names[0], whose(inTheWay)))
	return made
}

func conflict(message string) *Problem {
	return &Problem{Part: PartVM, Reason: v1alpha1.ReasonVirtualMachineConflict, Message: message}
}
