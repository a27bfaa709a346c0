package decide

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
)

// capiOld is the version of Cluster API whose references carry an apiVersion. Later
// ones carry an apiGroup.
const capiOld = "v1beta1"

// reference names an object of the same namespace in a given version of Cluster API.
func reference(capiVersion string, res kind.Resource, name string) map[string]any {
	if capiVersion == capiOld {
		return map[string]any{"apiVersion": res.APIVersion(), "kind": res.Kind, "name": name}
	}
	return map[string]any{"apiGroup": res.Group, "kind": res.Kind, "name": name}
}

// named is the name in a reference to a kind, whatever its version; empty if it
// names another kind, or nothing.
func named(value any, res kind.Resource) string {
	ref, _ := value.(map[string]any)
	group := text(ref, "apiGroup")
	if group == "" {
		group, _, _ = strings.Cut(text(ref, "apiVersion"), "/")
	}
	if group != res.Group || text(ref, "kind") != res.Kind {
		return ""
	}
	return text(ref, "name")
}

// versionOf is the API version of an object without its group.
func versionOf(obj *unstructured.Unstructured) string { return obj.GroupVersionKind().Version }

// roller is what keeps a pool's machines: where its rolling fields lie.
type roller struct {
	res                                kind.Resource
	version, infrastructure, bootstrap []string
}

var (
	controlPlaneRoller = roller{
		res: dockyards.TalosControlPlanes, version: []string{"spec", "version"},
		infrastructure: []string{"spec", "infrastructureTemplate"},
	}
	deploymentRoller = roller{
		res: dockyards.MachineDeployments, version: []string{"spec", "template", "spec", "version"},
		infrastructure: []string{"spec", "template", "spec", "infrastructureRef"},
		bootstrap:      []string{"spec", "template", "spec", "bootstrap", "configRef"},
	}
)

func (v *view) roller() roller {
	if v.controlPlane() {
		return controlPlaneRoller
	}
	return deploymentRoller
}

// infrastructureOf names the machine template that an object keeps machines by.
func (v *view) infrastructureOf(obj *unstructured.Unstructured) string {
	if obj == nil {
		return ""
	}
	return named(at(obj.Object, v.roller().infrastructure...), dockyards.KubevirtMachineTemplates)
}

// bootstrapOf names the config template that an object keeps machines by.
func (v *view) bootstrapOf(obj *unstructured.Unstructured) string {
	if obj == nil || v.controlPlane() {
		return ""
	}
	return named(at(obj.Object, v.roller().bootstrap...), dockyards.TalosConfigTemplates)
}

// References are the templates that an object keeps machines by, as far as they are
// named.
func References(machines *unstructured.Unstructured) (infrastructure, bootstrap string) {
	if machines == nil {
		return "", ""
	}
	for _, r := range []roller{controlPlaneRoller, deploymentRoller} {
		if !r.res.Is(machines.GetAPIVersion(), machines.GetKind()) {
			continue
		}
		infrastructure = named(at(machines.Object, r.infrastructure...), dockyards.KubevirtMachineTemplates)
		if r.bootstrap != nil {
			bootstrap = named(at(machines.Object, r.bootstrap...), dockyards.TalosConfigTemplates)
		}
	}
	return infrastructure, bootstrap
}
