package decide

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
)

// Parts of the baseline that one event can concern. The whole has none.
const (
	// PartHCO is the whole, unless nothing of the HyperConverged has changed that
	// assets depend on.
	PartHCO = "hco"
	// PartNodes are the assets that depend on hardware.
	PartNodes = "nodes"
	// prefixes of the parts that name something.
	partAsset      = "asset:"
	partDefinition = "crd:"
)

// PartAsset is one asset.
func PartAsset(name string) string { return partAsset + name }

// PartDefinition are the assets that need a definition.
func PartDefinition(name string) string { return partDefinition + name }

// Input is all that one decision is made from, but for what it asks for itself.
type Input struct {
	Settings Settings
	Catalog  catalog.Catalog
	// HCO is the HyperConverged as it is now.
	HCO *unstructured.Unstructured
	// Part is what the event concerns; empty for everything.
	Part string
	// Memory is the ConfigMap with the record; nil if there is none.
	Memory *unstructured.Unstructured
	// Hardware names a node for each detector; nil when it cannot be told. Listed
	// tells that the nodes were looked at just now.
	Hardware map[string]string
	Listed   bool
	// HardwareProblem is why nodes cannot be seen.
	HardwareProblem string
	// Preview looks at everything, as if the HyperConverged had been brought in line
	// already; nothing is meant to be written.
	Preview bool
}

// Counts reports whether a HyperConverged is the one that the baseline is for.
func Counts(hco *unstructured.Unstructured, s Settings) bool {
	return hco != nil && hco.GetName() == HCOName && hco.GetNamespace() == s.HCONamespace
}

// Whole reports whether everything is looked at.
func (in Input) Whole() bool { return in.Part == "" }

// Selected are the assets that a part consists of, in order.
func Selected(c catalog.Catalog, part string) []catalog.Asset {
	var out []catalog.Asset
	for _, a := range c.Assets {
		definition, ofDefinition := strings.CutPrefix(part, partDefinition)
		name, ofAsset := strings.CutPrefix(part, partAsset)
		switch {
		case part == "" || part == PartHCO,
			part == PartNodes && a.UsesHardware(),
			ofDefinition && a.Definition() == definition && a.Name != catalog.HCO,
			ofAsset && a.Name == name:
			out = append(out, a)
		}
	}
	return out
}
