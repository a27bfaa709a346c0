package inventory

import (
	"crypto/sha256"
	"encoding/hex"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/render"
)

// Inventories are what the functions keep.
var Inventories = kind.Resource{
	Group: "dockyards.io", Versions: []string{"v1alpha3"}, Kind: "WorkloadInventory", Plural: "workloadinventories", Namespaced: true,
}

// Upstream is the field manager of dockyards-flux2.
const Upstream = "dockyards-flux2"

// Flavor is what differs between the kinds.
type Flavor struct {
	Resource kind.Resource
	// suffix ends the name of an inventory.
	suffix string
	// revision is what is applied.
	revision func(obj *unstructured.Unstructured) string
	// letGo changes the object so that Flux drops its finalizer; nil: there is nothing
	// that it would wait for.
	letGo func(obj *unstructured.Unstructured) *unstructured.Unstructured
}

// Kustomization and HelmRelease are the two flavors.
var (
	Kustomization = Flavor{Resource: render.Kustomizations, suffix: "-4l8sj", revision: appliedRevision, letGo: unpruned}
	HelmRelease   = Flavor{Resource: render.HelmReleases, suffix: "-lpfhh", revision: chartVersion, letGo: suspended}
)

// Name is the name of the inventory of an object.
func (f Flavor) Name(object string) string {
	name := object + f.suffix
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(object))
	end := "-" + hex.EncodeToString(sum[:5]) + f.suffix
	return object[:validation.DNS1123SubdomainMaxLength-len(end)] + end
}

// selector are the labels that Flux puts on everything that it applies for an object.
func (f Flavor) selector(obj *unstructured.Unstructured) map[string]string {
	return map[string]string{f.Resource.Group + "/name": obj.GetName(), f.Resource.Group + "/namespace": obj.GetNamespace()}
}

func appliedRevision(obj *unstructured.Unstructured) string {
	revision, _, _ := unstructured.NestedString(obj.Object, "status", "lastAppliedRevision")
	return revision
}

func chartVersion(obj *unstructured.Unstructured) string {
	history, _, _ := unstructured.NestedSlice(obj.Object, "status", "history")
	if len(history) == 0 {
		return ""
	}
	latest, _ := history[0].(map[string]any)
	version, _ := latest["chartVersion"].(string)
	return version
}

// unpruned keeps kustomize-controller from looking for what it has applied.
func unpruned(obj *unstructured.Unstructured) *unstructured.Unstructured {
	prune, _, _ := unstructured.NestedBool(obj.Object, "spec", "prune")
	policy, _, _ := unstructured.NestedString(obj.Object, "spec", "deletionPolicy")
	deletes := policy == "Delete" || policy == "WaitForTermination"
	if !deletes && (!prune || (policy != "" && policy != "MirrorPrune")) {
		return nil
	}
	free := obj.DeepCopy()
	if set(free, false, "spec", "prune") != nil || (deletes && set(free, "Orphan", "spec", "deletionPolicy") != nil) {
		return nil
	}
	return free
}

// suspended lets helm-controller drop its finalizer without uninstalling anything.
func suspended(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if already, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); already {
		return nil
	}
	free := obj.DeepCopy()
	if set(free, true, "spec", "suspend") != nil {
		return nil
	}
	return free
}

func set(obj *unstructured.Unstructured, value any, path ...string) error {
	return unstructured.SetNestedField(obj.Object, value, path...)
}
