package decide

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
)

// Part is what of a pool a read was for, or a problem lies in. Each has a condition
// of its own, but that a control plane has no config template.
type Part int

// The parts, in the order in which the pool's condition Ready looks at them.
const (
	PartTemplate Part = iota
	PartConfig
	PartMachines
	// PartReference is the control plane's place in the Cluster of Cluster API. It
	// shares the condition of the control plane.
	PartReference
)

// Input is all that one decision is made from. Lists may come in any order.
type Input struct {
	Settings dockyards.Settings
	// Pool is the reconciled object.
	Pool *unstructured.Unstructured
	// Cluster is the pool's; nil if there is none. CAPICluster is that of Cluster API
	// of the same name.
	Cluster, CAPICluster *unstructured.Unstructured
	// Config is the shared config map.
	Config dockyards.Config
	// Blocked is a read that brought no answer and without which nothing can be
	// decided: the Cluster's or the config map's.
	Blocked *fault.Fault
	// Release is what the machines boot from. Several tells that it was chosen among
	// several defaults.
	Release *unstructured.Unstructured
	Several bool
	// DataSource is the Release's, Image the DataVolume that it names.
	DataSource, Image *unstructured.Unstructured
	// Networks are the definitions of the pool's namespace. NetworksNotServed tells
	// that the API server does not know such definitions.
	Networks          []unstructured.Unstructured
	NetworksNotServed bool
	// MachineTemplates and ConfigTemplates are those that may be the pool's.
	MachineTemplates, ConfigTemplates []unstructured.Unstructured
	// Machines is the TalosControlPlane or MachineDeployment of the pool's name.
	Machines *unstructured.Unstructured
	// MachinesVersion and ConfigVersion are the versions in which the API server
	// serves MachineDeployments and TalosConfigTemplates; empty for none.
	MachinesVersion, ConfigVersion string
	// Refused are the reads that the server refused.
	Refused []Refusal
}

// Refusal is one read that the server refused, and what it was for.
type Refusal struct {
	Part  Part
	Fault fault.Fault
}

// find is the object of a name among objects of one namespace, or nil.
func find(objects []unstructured.Unstructured, name string) *unstructured.Unstructured {
	i := slices.IndexFunc(objects, func(obj unstructured.Unstructured) bool { return obj.GetName() == name })
	if i < 0 || name == "" {
		return nil
	}
	return &objects[i]
}

// byName are pointers to objects, sorted.
func byName(objects []unstructured.Unstructured) []*unstructured.Unstructured {
	list := make([]*unstructured.Unstructured, 0, len(objects))
	for i := range objects {
		list = append(list, &objects[i])
	}
	slices.SortFunc(list, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list
}
