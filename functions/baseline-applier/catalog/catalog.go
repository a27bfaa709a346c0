package catalog

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
)

//go:embed metadata.yaml assets
var files embed.FS

// HCO is the name of the asset that the others depend on.
const HCO = "hco-golden-config"

// Labels and annotations of the baseline.
const (
	// Prefix is that of all annotations that people steer the baseline with.
	Prefix = "platform.kubevirt.io/"
	// LabelManaged, on every object of the baseline, has the value Manager.
	LabelManaged = Prefix + "managed-by"
	// Manager is the value of LabelManaged, and the field manager.
	Manager = "virt-platform-autopilot"
)

// Install says whether an asset is wanted without anybody asking for it.
type Install string

// What metadata.yaml may say of an asset's installation.
const (
	// Always: unless a condition says otherwise.
	Always Install = "always"
	// OptIn: only when all conditions hold, and there has to be one.
	OptIn Install = "opt-in"
)

// Leave says what becomes of an object whose asset is not wanted any more.
type Leave string

// What metadata.yaml may say of an asset that is not wanted any more.
const (
	// Release takes label and ownership off the object and leaves its values.
	Release Leave = "release"
	// Delete deletes an object that the function made itself, and releases others.
	Delete Leave = "delete"
	// Stay leaves the object as it is; the report names it.
	Stay Leave = "leave"
)

// Tiers of the catalog.
const (
	TierAlways   = "always"
	TierContext  = "context-aware"
	TierAdvanced = "advanced"
)

// Condition types.
const (
	Annotation    = "annotation"
	AnnotationNot = "annotation-not"
	FeatureGate   = "feature-gate"
	Hardware      = "hardware-detection"
	Unconfigured  = "hco-field-unconfigured"
	Any           = "any"
)

// Condition is one thing that must hold.
type Condition struct {
	Type     string `json:"type"`
	Key      string `json:"key,omitempty"`
	Value    string `json:"value,omitempty"`
	Detector string `json:"detector,omitempty"`
	Path     string `json:"path,omitempty"`
	// Of are the conditions of which one has to hold; for type any.
	Of []Condition `json:"of,omitempty"`
}

// Asset is one object of the baseline.
type Asset struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Summary string `json:"summary"`
	// Tier groups assets for people: always, context-aware, advanced.
	Tier    string  `json:"tier"`
	Phase   int     `json:"phase"`
	Install Install `json:"install"`
	// Component, APIVersion, Namespace and Object identify the object; the namespace
	// $hco is the one of the HyperConverged.
	Component  string `json:"component"`
	APIVersion string `json:"apiVersion"`
	Namespace  string `json:"namespace,omitempty"`
	Object     string `json:"object"`
	// Order is ascending; 0 is the HyperConverged's alone.
	Order      int         `json:"reconcile_order"`
	Group      string      `json:"group,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	// RestartsNodes tells that a change of the object restarts nodes.
	RestartsNodes bool `json:"restarts_nodes,omitempty"`
	// HardwareSpecific tells that the values fit certain hardware only.
	HardwareSpecific bool `json:"hardware_specific,omitempty"`
	// NeedsSchema tells that the kind's definition is looked into.
	NeedsSchema bool `json:"needs_schema,omitempty"`
	// OptionalFields are left out where the kind's definition does not have them.
	OptionalFields []string `json:"optional_fields,omitempty"`
	// ListKeys are the lists that the definition declares to be maps, with their
	// keys; Atomic are the maps that it declares to be atomic.
	ListKeys map[string][]string `json:"list_keys,omitempty"`
	Atomic   []string            `json:"atomic,omitempty"`
	OnLeave  Leave               `json:"on_leave,omitempty"`
	Params   map[string]any      `json:"template_params,omitempty"`

	resource kind.Resource
	template *template.Template
}

// Resource is the kind of the asset's object.
func (a Asset) Resource() kind.Resource { return a.resource }

// NamespaceIn is the namespace of the asset's object, given the HyperConverged's.
func (a Asset) NamespaceIn(hco string) string {
	if a.Namespace == "$hco" {
		return hco
	}
	return a.Namespace
}

// Definition is the name of the definition that the asset needs.
func (a Asset) Definition() string { return a.resource.String() }

// UsesHardware tells whether the asset depends on what nodes have.
func (a Asset) UsesHardware() bool {
	return a.HardwareSpecific || usesHardware(a.Conditions)
}

func usesHardware(conditions []Condition) bool {
	return slices.ContainsFunc(conditions, func(c Condition) bool { return c.Type == Hardware || usesHardware(c.Of) })
}

// Catalog is the whole description.
type Catalog struct {
	Assets []Asset `json:"assets"`
	// Tombstones are objects that older catalogs made and that must go.
	Tombstones []map[string]any `json:"tombstones,omitempty"`
}

// Find is the asset of a name.
func (c Catalog) Find(name string) (Asset, bool) {
	i := slices.IndexFunc(c.Assets, func(a Asset) bool { return a.Name == name })
	if i < 0 {
		return Asset{}, false
	}
	return c.Assets[i], true
}

// Buried are the tombstones as objects.
func (c Catalog) Buried() []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, 0, len(c.Tombstones))
	for _, content := range c.Tombstones {
		out = append(out, &unstructured.Unstructured{Object: content})
	}
	return out
}

// builtIn is the catalog that is compiled in. It always parses, which a test shows.
var builtIn = func() Catalog {
	text, err := files.ReadFile("metadata.yaml")
	if err != nil {
		panic(err)
	}
	c, err := Parse(text, files.ReadFile)
	if err != nil {
		panic(err)
	}
	return c
}()

// BuiltIn is the catalog that is compiled in, in the order in which it is applied.
func BuiltIn() Catalog { return builtIn }

// Parse reads a catalog; open reads the files that it names.
func Parse(text []byte, open func(path string) ([]byte, error)) (Catalog, error) {
	var c Catalog
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return Catalog{}, fmt.Errorf("cannot read the catalog: %w", err)
	}
	names := map[string]bool{}
	for i := range c.Assets {
		a := &c.Assets[i]
		if names[a.Name] {
			return Catalog{}, fmt.Errorf("cannot use the catalog: asset %q comes twice", a.Name)
		}
		names[a.Name] = true
		if err := a.complete(open); err != nil {
			return Catalog{}, fmt.Errorf("cannot use asset %q: %w", a.Name, err)
		}
	}
	for _, obj := range c.Buried() {
		if obj.GetAPIVersion() == "" || obj.GetKind() == "" || obj.GetName() == "" || obj.GetLabels()[LabelManaged] != Manager {
			return Catalog{}, fmt.Errorf("cannot use tombstone %q: give apiVersion, kind, metadata.name and the label %s=%s", obj.GetName(), LabelManaged, Manager)
		}
		if _, ok := kinds.Of(obj.GetAPIVersion(), obj.GetKind()); !ok {
			return Catalog{}, fmt.Errorf("cannot use tombstone %q: package kinds has no %s", obj.GetName(), obj.GetKind())
		}
	}
	slices.SortStableFunc(c.Assets, func(a, b Asset) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), strings.Compare(a.Name, b.Name))
	})
	return c, nil
}

// complete checks an asset and reads its template.
func (a *Asset) complete(open func(string) ([]byte, error)) error {
	a.OnLeave = cmp.Or(a.OnLeave, Release)
	if err := a.check(); err != nil {
		return err
	}
	var ok bool
	if a.resource, ok = kinds.Of(a.APIVersion, a.Component); !ok {
		return fmt.Errorf("package kinds has no %s %s", a.APIVersion, a.Component)
	}
	if a.resource.Namespaced != (a.Namespace != "") {
		return fmt.Errorf("namespace is %q, which does not fit the scope of %s", a.Namespace, a.Component)
	}
	text, err := open(a.Path)
	if err != nil {
		return fmt.Errorf("cannot read the template: %w", err)
	}
	a.template, err = parseTemplate(a.Name, text)
	return err
}

// check refuses what cannot be meant.
func (a *Asset) check() error {
	switch {
	case a.Name == "" || a.Object == "" || a.Summary == "":
		return fmt.Errorf("name, object and summary have to be given")
	case a.Install != Always && a.Install != OptIn:
		return fmt.Errorf("install is %q: use always or opt-in", a.Install)
	case a.Install == OptIn && len(a.Conditions) == 0:
		return fmt.Errorf("an opt-in without conditions can never be chosen")
	case !slices.Contains([]string{TierAlways, TierContext, TierAdvanced}, a.Tier):
		return fmt.Errorf("tier is %q: use always, context-aware or advanced", a.Tier)
	case !slices.Contains([]Leave{Release, Delete, Stay}, a.OnLeave):
		return fmt.Errorf("on_leave is %q: use release, delete or leave", a.OnLeave)
	case (a.Order == 0) != (a.Name == HCO):
		return fmt.Errorf("reconcile_order 0 is for %s alone", HCO)
	}
	for _, c := range a.Conditions {
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}

func (c Condition) check() error {
	given := map[string]bool{
		"key": c.Key != "", "value": c.Value != "", "detector": c.Detector != "", "path": c.Path != "", "of": len(c.Of) > 0,
	}
	needed := map[string][]string{
		Annotation: {"key"}, AnnotationNot: {"key", "value"}, FeatureGate: {"value"}, Hardware: {"detector"}, Unconfigured: {"path"}, Any: {"of"},
	}
	fields, known := needed[c.Type]
	if !known {
		return fmt.Errorf("condition type %q is unknown", c.Type)
	}
	for _, field := range fields {
		if !given[field] {
			return fmt.Errorf("a condition of type %q needs the field %q", c.Type, field)
		}
	}
	for _, alternative := range c.Of {
		if err := alternative.check(); err != nil {
			return err
		}
	}
	return nil
}

// String says what a condition wants.
func (c Condition) String() string {
	switch c.Type {
	case Annotation:
		if c.Value == "" {
			return "annotation " + c.Key
		}
		return fmt.Sprintf("annotation %s=%q", c.Key, c.Value)
	case AnnotationNot:
		return fmt.Sprintf("no annotation %s=%q", c.Key, c.Value)
	case FeatureGate:
		return "feature gate " + c.Value
	case Hardware:
		return "hardware " + c.Detector
	case Unconfigured:
		return "HyperConverged leaves " + c.Path + " open"
	}
	texts := make([]string, 0, len(c.Of))
	for _, alternative := range c.Of {
		texts = append(texts, alternative.String())
	}
	return strings.Join(texts, " or ")
}

// documents splits a YAML stream.
func documents(text []byte) [][]byte {
	var out [][]byte
	for _, document := range bytes.Split(append([]byte("\n"), text...), []byte("\n---")) {
		if len(bytes.TrimSpace(document)) > 0 {
			out = append(out, document)
		}
	}
	return out
}
