package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
)

// chooseTemplates names the templates that the pool's machines are made from.
func (v *view) chooseTemplates() {
	v.machineShelf = v.machineTemplates()
	if !v.controlPlane() {
		v.configShelf = v.configTemplates()
	}
	if v.refused(PartMachines) {
		return // which templates are in use cannot be seen
	}
	move := v.phase == phaseCreate || v.phase == phaseRoll
	v.infrastructure = v.choose(v.machineShelf, move)
	v.machineShelf.chosen = v.infrastructure
	if v.configShelf != nil {
		v.bootstrap = v.choose(v.configShelf, move)
		v.configShelf.chosen = v.bootstrap
	}
}

func (v *view) shelves() []*shelf {
	if v.configShelf == nil {
		return []*shelf{v.machineShelf}
	}
	return []*shelf{v.machineShelf, v.configShelf}
}

// fill sorts out which templates are the pool's.
func (v *view) fill(s *shelf) *shelf {
	says := s.says
	if says == nil {
		says = func(*unstructured.Unstructured) bool { return false }
	}
	for _, obj := range byName(s.all) {
		if v.owns(obj, says) {
			s.own = append(s.own, obj)
		}
	}
	return s
}

func (v *view) machineTemplates() *shelf {
	s := &shelf{
		res: dockyards.KubevirtMachineTemplates, all: v.in.MachineTemplates, verdict: v.template,
		current: v.infrastructureOf(v.live), clones: []kind.Resource{dockyards.KubevirtMachines},
	}
	if m := v.machine; m != nil {
		s.says, s.content = m.says, m.content()
		s.make = func() (*unstructured.Unstructured, *problem) {
			if broken := v.imageBroken(); broken != nil {
				return nil, broken
			}
			spec := machineTemplateSpec{}
			spec.Template.Spec = m.spec()
			return objectOf(s.res, "", &spec)
		}
	}
	return v.fill(s)
}

func (v *view) configTemplates() *shelf {
	s := &shelf{
		res: dockyards.TalosConfigTemplates, all: v.in.ConfigTemplates, verdict: v.config,
		current: v.bootstrapOf(v.live), clones: []kind.Resource{dockyards.TalosConfigs},
	}
	if t := v.talos; t != nil {
		s.says, s.content = t.says, t.content()
		s.make = func() (*unstructured.Unstructured, *problem) {
			if v.in.ConfigVersion == "" {
				p := notServed(s.res)
				return nil, &p
			}
			return objectOf(s.res, v.in.ConfigVersion, t.template(v.storedPatches()))
		}
	}
	return v.fill(s)
}

func notServed(res kind.Resource) problem {
	return waiting(v1alpha3.ReasonErrorReconciling, "the API server does not know %s: install their provider", res.String())
}

// configTemplateSpec is the spec of a TalosConfigTemplate.
type configTemplateSpec struct {
	Template struct {
		Spec configSpec `json:"spec"`
	} `json:"template"`
}

type configSpec struct {
	GenerateType     string   `json:"generateType"`
	TalosVersion     string   `json:"talosVersion,omitempty"`
	StrategicPatches []string `json:"strategicPatches,omitempty"`
}

func (t *talos) template(stored []string) *configTemplateSpec {
	spec := &configTemplateSpec{}
	spec.Template.Spec = configSpec{
		GenerateType: t.generateType, TalosVersion: t.version, StrategicPatches: carried(t.documents, stored),
	}
	return spec
}

// says tells whether a live config template says this: the documents as data, absent
// like empty, and nothing besides.
func (t *talos) says(obj *unstructured.Unstructured) bool {
	spec, _ := at(obj.Object, "spec", "template", "spec").(map[string]any)
	return t.sameAs(spec) && !hasMore(spec)
}

// sameAs compares the fields that are stated.
func (t *talos) sameAs(spec map[string]any) bool {
	stored := texts(spec, "strategicPatches")
	return text(spec, "generateType") == t.generateType && text(spec, "talosVersion") == t.version &&
		slices.Equal(carried(t.documents, stored), stored)
}

// hasMore tells whether a config states anything besides.
func hasMore(spec map[string]any) bool {
	for key, value := range spec {
		if key != "generateType" && key != "talosVersion" && key != "strategicPatches" && !blank(value) {
			return true
		}
	}
	return false
}

// storedPatches are the Talos patches that the pool's machines boot with now.
func (v *view) storedPatches() []string {
	if v.controlPlane() {
		if v.live == nil {
			return nil
		}
		return texts(v.live.Object, "spec", "controlPlaneConfig", "controlplane", "strategicPatches")
	}
	template := find(v.in.ConfigTemplates, v.bootstrapOf(v.live))
	if template == nil {
		template = find(v.in.ConfigTemplates, v.name)
	}
	if template == nil {
		return nil
	}
	return StoredPatches(template)
}

// StoredPatches are the Talos patches in a TalosControlPlane or TalosConfigTemplate.
func StoredPatches(obj *unstructured.Unstructured) []string {
	if obj == nil {
		return nil
	}
	return append(texts(obj.Object, "spec", "controlPlaneConfig", "controlplane", "strategicPatches"),
		texts(obj.Object, "spec", "template", "spec", "strategicPatches")...)
}
