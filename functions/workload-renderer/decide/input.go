package decide

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/render"
)

// Names on a Workload that are the function's own.
const (
	// Finalizer holds a Workload until what was applied for it is gone.
	Finalizer = "slipway.dev/workload-renderer"
	// AnnotationInventory is what was applied; see inventory.go.
	AnnotationInventory = "slipway.dev/inventory"
	// AnnotationQuarantine is the hash of a render that was stopped. A person may
	// remove it to have the render tried again.
	AnnotationQuarantine = "slipway.dev/render-quarantine"
	// AnnotationPruneOrphans is set by a person, to "true": objects that carry the
	// Workload's marks and stand in no inventory are deleted.
	AnnotationPruneOrphans = "slipway.dev/prune-orphans"
)

// Settings are the parts of the environment that a decision depends on.
type Settings struct {
	Rules  render.Rules
	Limits render.Limits
	// PublicNamespaces are those that templates may be used from, besides the
	// Workload's own and the one in the config map.
	PublicNamespaces []string
	// MaxPrune is how many objects one run deletes at most.
	MaxPrune int
}

// DefaultSettings are those of an empty environment.
func DefaultSettings() Settings {
	return Settings{
		Rules: render.DefaultRules(), Limits: render.DefaultLimits(),
		PublicNamespaces: []string{"dockyards-public"}, MaxPrune: 20,
	}
}

// Input is all that one decision is made from, but for renders and for objects that
// are not labelled.
type Input struct {
	Settings Settings
	// Workload is the reconciled object.
	Workload *unstructured.Unstructured
	// Objects are those of allowed kinds in the Workload's namespace that carry its
	// name as a label; of a settled Workload, those that its inventory names, and the
	// sources that are made of its Worktrees.
	Objects []Found
	// Cluster is the one that the Workload names; nil if there is none.
	Cluster *unstructured.Unstructured
	// Config is the config map that all Dockyards controllers share; it is empty if
	// the template may be used without asking it.
	Config dockyards.Config
	// Template is the one that the Workload names; nil if there is none, or if it may
	// not be used.
	Template *unstructured.Unstructured
}

// Found is an object together with its resource.
type Found struct {
	Resource kind.Resource
	Object   *unstructured.Unstructured
}

// Reference names a WorkloadTemplate. Kind and group of a reference say nothing:
// live objects hold anything there.
type Reference struct{ Namespace, Name string }

// TemplateOf is the template that a Workload names; ok is false if it names none.
func TemplateOf(workload *unstructured.Unstructured) (ref Reference, ok bool) {
	value, found, _ := unstructured.NestedMap(workload.Object, "spec", "workloadTemplateRef")
	if !found || value == nil {
		return Reference{}, false
	}
	name, _ := value["name"].(string)
	namespace, _ := value["namespace"].(string)
	return Reference{Namespace: cmp.Or(namespace, workload.GetNamespace()), Name: name}, true
}
