package crds

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

type schema = apiextensionsv1.JSONSchemaProps

// definitions are the embedded definitions by kind.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	paths, err := fs.Glob(FS, "*")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, path := range paths {
		content, err := FS.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			t.Fatalf("cannot read %s: %v", path, err)
		}
		out[crd.Spec.Names.Kind] = crd
	}
	return out
}

const (
	ready  = `Ready string .status.conditions[?(@.type=="Ready")].status 0`
	reason = `Reason string .status.conditions[?(@.type=="Ready")].reason 0`
	age    = `Age date .metadata.creationTimestamp 0`
)

func TestNamesScopeSubresourcesAndColumns(t *testing.T) {
	cases := map[string]struct {
		plural   string
		cluster  bool
		noStatus bool
		columns  []string
	}{
		"Cluster": {plural: "clusters", columns: []string{
			ready, reason, "Version string .status.version 1", age, "Duration string .spec.duration 1",
		}},
		"NodePool": {plural: "nodepools", columns: []string{ready, reason, age}},
		"Node": {plural: "nodes", columns: []string{
			ready, reason, "ProviderID string .spec.providerID 0", "CPU string .status.resources.cpu 1",
			"Memory string .status.resources.memory 1", "Storage string .status.resources.storage 1", age,
		}},
		"Release": {plural: "releases", columns: []string{"Latest string .status.latestVersion 0"}},
		// Upstream has no column that says why there is no ingress.
		"Workload": {plural: "workloads", columns: []string{
			ready, reason, `Ingress string .status.conditions[?(@.type=="WorkloadIngressReconciled")].reason 0`,
			"WorkloadTemplate string .spec.workloadTemplateRef.name 1",
			`Message string .status.conditions[?(@.type=="Ready")].message 1`,
			`IngressMessage string .status.conditions[?(@.type=="WorkloadIngressReconciled")].message 1`, age,
		}},
		"WorkloadTemplate":  {plural: "workloadtemplates", columns: []string{"Type string .spec.type 0", age}},
		"Worktree":          {plural: "worktrees"},
		"WorkloadInventory": {plural: "workloadinventories", noStatus: true},
		"Organization": {plural: "organizations", cluster: true, columns: []string{
			ready, reason, "NamespaceReference string .spec.namespaceRef.name 1", age, "Duration string .spec.duration 1",
		}},
		"DNSZone": {plural: "dnszones", columns: []string{
			ready, reason, "ZoneName string .spec.name 0", "ProviderID string .spec.providerID 0", age,
		}},
	}
	crds := definitions(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(cases)), slices.Sorted(maps.Keys(crds))); diff != "" {
		t.Fatalf("other kinds than these:\n%s", diff)
	}
	for kind, want := range cases {
		t.Run(kind, func(t *testing.T) {
			crd := crds[kind]
			if (crd.Spec.Scope == apiextensionsv1.ClusterScoped) != want.cluster {
				t.Errorf("scope is %s: it can never be changed once installed", crd.Spec.Scope)
			}
			names := apiextensionsv1.CustomResourceDefinitionNames{
				Plural: want.plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List",
			}
			if diff := cmp.Diff(names, crd.Spec.Names); diff != "" {
				t.Errorf("names:\n%s", diff)
			}
			if crd.Name != want.plural+".dockyards.io" || crd.Spec.Group != "dockyards.io" || len(crd.Spec.Versions) != 1 ||
				crd.Spec.PreserveUnknownFields || crd.Spec.Conversion != nil {
				t.Fatalf("not dockyards.io, or not one version, or not pruned, or converted")
			}
			version := crd.Spec.Versions[0]
			if version.Name != "v1alpha3" || !version.Served || !version.Storage {
				t.Errorf("v1alpha3 must be served and stored")
			}
			if has := version.Subresources != nil && version.Subresources.Status != nil; has == want.noStatus {
				t.Errorf("the subresource status is there: %v", has)
			}
			if version.Subresources != nil && version.Subresources.Scale != nil {
				t.Errorf("there is a subresource scale")
			}
			var columns []string
			for _, c := range version.AdditionalPrinterColumns {
				columns = append(columns, fmt.Sprintf("%s %s %s %d", c.Name, c.Type, c.JSONPath, c.Priority))
			}
			if diff := cmp.Diff(want.columns, columns); diff != "" {
				t.Errorf("columns:\n%s", diff)
			}
		})
	}
}

func TestSchemasSayWhatTheSpecificationSays(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/tables.txtar")
	if err != nil {
		t.Fatal(err)
	}
	crds := definitions(t)
	for _, file := range archive.Files {
		t.Run(file.Name, func(t *testing.T) {
			var want []string
			for _, line := range strings.Split(strings.TrimSpace(string(file.Data)), "\n") {
				want = append(want, strings.TrimSuffix(line, ", r2"))
			}
			slices.Sort(want)
			root := *crds[file.Name].Spec.Versions[0].Schema.OpenAPIV3Schema
			var got []string
			for _, line := range lines("", root) {
				switch line {
				case "apiVersion: string", "kind: string", "metadata: object":
				default:
					got = append(got, line)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-specification +schema):\n%s", diff)
			}
		})
		delete(crds, file.Name)
	}
	if len(crds) > 0 {
		t.Errorf("no table for %v", slices.Sorted(maps.Keys(crds)))
	}
}

// lines describes all fields below a node of a schema.
func lines(path string, s schema) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below := s.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		line := at + ": " + describe(below)
		if slices.Contains(s.Required, name) {
			line += ", req"
		}
		out = append(out, line)
		if !shared(below) {
			out = append(out, inside(at, below)...)
		}
	}
	return out
}

func inside(path string, s schema) []string {
	if s.Items != nil && s.Items.Schema != nil {
		if shared(*s.Items.Schema) {
			return nil
		}
		return lines(path+"[]", *s.Items.Schema)
	}
	return lines(path, s)
}

func shared(s schema) bool {
	_, known := sharedType(s)
	return known
}

// describe is a field's type in the words of the specification.
func describe(s schema) string {
	if name, known := sharedType(s); known {
		return name
	}
	var text string
	switch {
	case s.XIntOrString:
		text = quantity(s)
	case s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields:
		text = strings.TrimSpace("any JSON " + s.Type)
	case s.Type == "array":
		text = "[]" + describe(*s.Items.Schema)
	case s.AdditionalProperties != nil:
		text = "map of " + describe(*s.AdditionalProperties.Schema)
	default:
		text = strings.TrimSpace(s.Type + " " + s.Format)
	}
	var words []string
	for _, word := range s.Enum {
		words = append(words, strings.Trim(string(word.Raw), `"`))
	}
	text = strings.TrimSpace(text + " " + strings.Join(words, "|"))
	if s.XListType != nil {
		text += " " + *s.XListType
	}
	if s.XMapType != nil {
		text += " " + *s.XMapType
	}
	return text + limits(s)
}

const quantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

func quantity(s schema) string {
	if s.Pattern == quantityPattern && len(s.AnyOf) == 2 && s.AnyOf[0].Type == "integer" && s.AnyOf[1].Type == "string" {
		return "quantity"
	}
	return "int or string, which is no quantity"
}

// limits are those that no table has, outside of the shared types.
func limits(s schema) string {
	var out string
	note := func(is bool, what string) {
		if is {
			out += ", " + what
		}
	}
	note(s.Minimum != nil || s.Maximum != nil, "range")
	note(s.MinLength != nil || s.MaxLength != nil, "length")
	note(s.Pattern != "" && !s.XIntOrString, "pattern")
	note(s.MinItems != nil || s.MaxItems != nil, "items")
	note(s.Default != nil, "default")
	note(s.Nullable, "nullable")
	note(len(s.XValidations) > 0, "rules")
	return out
}

// sharedType names a schema that several fields have in common.
func sharedType(s schema) (string, bool) {
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil &&
		quantityOrNot(*s.AdditionalProperties.Schema) && s.XMapType == nil {
		return "ResourceList", true
	}
	bare := *s.DeepCopy()
	bare.Description = ""
	for name, below := range bare.Properties {
		below.Description = ""
		bare.Properties[name] = below
	}
	for name, want := range sharedTypes() {
		if cmp.Equal(want, bare) {
			return name, true
		}
	}
	return "", false
}

func quantityOrNot(s schema) bool { return s.XIntOrString && quantity(s) == "quantity" }

func sharedTypes() map[string]schema {
	text := func() schema { return schema{Type: "string"} }
	limited := func(from, to int64, pattern string) schema {
		s := schema{Type: "string", MaxLength: &to, Pattern: pattern}
		if from > 0 {
			s.MinLength = &from
		}
		return s
	}
	atomic, zero := "atomic", 0.0
	empty := apiextensionsv1.JSON{Raw: []byte(`""`)}
	const conditionType = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	status := text()
	for _, word := range []string{"True", "False", "Unknown"} {
		status.Enum = append(status.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + word + `"`)})
	}
	return map[string]schema{
		"Condition": {
			Type:     "object",
			Required: []string{"lastTransitionTime", "message", "reason", "status", "type"},
			Properties: map[string]schema{
				"type":               limited(0, 316, conditionType),
				"status":             status,
				"reason":             limited(1, 1024, `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`),
				"message":            limited(0, 32768, ""),
				"lastTransitionTime": {Type: "string", Format: "date-time"},
				"observedGeneration": {Type: "integer", Format: "int64", Minimum: &zero},
			},
		},
		"TypedObjectReference": {
			Type: "object", Required: []string{"kind", "name"},
			Properties: map[string]schema{"apiGroup": text(), "kind": text(), "name": text(), "namespace": text()},
		},
		"TypedLocalObjectReference": {
			Type: "object", Required: []string{"kind", "name"}, XMapType: &atomic,
			Properties: map[string]schema{"apiGroup": text(), "kind": text(), "name": text()},
		},
		"LocalObjectReference": {
			Type: "object", XMapType: &atomic,
			Properties: map[string]schema{"name": {Type: "string", Default: &empty}},
		},
	}
}
