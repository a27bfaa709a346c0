package decide

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
)

// podInterface is the name of the interface that is bridged to the pod network.
const podInterface = "default"

// nic is one interface of a machine, with the network that it is bridged to.
type nic struct {
	// Name is the interface's.
	Name string `json:"name"`
	// Definition is "namespace/name" of the network; empty for the pod network.
	Definition string `json:"definition,omitempty"`
	// Default makes the network the machine's default one.
	Default bool `json:"default,omitempty"`
}

// nics are the interfaces of the pool's machines: one for each definition of its
// namespace, in the order of their names, behind the pod network unless one of them
// takes its place.
func (v *view) nics() ([]nic, *problem) {
	if !v.in.Settings.Multus {
		return []nic{{Name: podInterface}}, nil
	}
	definitions := byName(v.in.Networks)
	var defaults []string
	for _, definition := range definitions {
		if isDefault(definition) {
			defaults = append(defaults, definition.GetName())
		}
	}
	if len(defaults) > 1 {
		return nil, &problem{
			reason: v1alpha3.ReasonAmbiguousDefaultNetwork, terminal: true,
			message: "label " + v1alpha3.LabelNetworkAsDefault + " is on " + quoted(defaults) + ": keep it on one of them",
		}
	}
	var nics []nic
	if len(defaults) == 0 {
		nics = append(nics, nic{Name: podInterface})
	}
	for _, definition := range definitions {
		nics = append(nics, nic{
			Name:       interfaceName(definition.GetName(), definitions, len(defaults) == 0),
			Definition: definition.GetNamespace() + "/" + definition.GetName(), Default: isDefault(definition),
		})
	}
	return nics, nil
}

func isDefault(definition *unstructured.Unstructured) bool {
	_, marked := definition.GetLabels()[v1alpha3.LabelNetworkAsDefault]
	return marked
}

// interfaceName makes an interface's name of a definition's. The name of an
// interface holds no dots, and no two are the same.
func interfaceName(name string, all []*unstructured.Unstructured, pod bool) string {
	plain := undotted(name)
	taken := pod && plain == podInterface
	if plain != name {
		taken = taken || slices.ContainsFunc(all, func(other *unstructured.Unstructured) bool {
			return other.GetName() != name && undotted(other.GetName()) == plain
		})
	}
	if taken {
		return plain + "-" + digest(name)[:6]
	}
	return plain
}

func undotted(name string) string { return strings.ReplaceAll(name, ".", "-") }
