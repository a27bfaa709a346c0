package api

import (
	"fmt"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
)

// Definitions are those of the group, in its second revision.
func Definitions() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	err := fs.WalkDir(crds.FS, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(crds.FS, path)
		if err != nil {
			return fmt.Errorf("cannot read definition %q: %w", path, err)
		}
		objs, err := kube.Decode(strings.NewReader(string(content)))
		out = append(out, objs...)
		return err
	})
	return out, err
}

// added are the fields that the second revision of the group has added, by plural
// and path below the schema.
var added = map[string][]string{
	"clusters":  {"spec.authenticationConfig", "spec.advanced"},
	"nodepools": {"spec.nodeLabels"},
	"nodes":     {"status.systemInfo.swap"},
}

// FirstRevision are the definitions of the group in its first revision: without
// the fields that were added, without defaults, and with the lists of label
// selectors not yet declared.
func FirstRevision() ([]*unstructured.Unstructured, error) {
	definitions, err := Definitions()
	if err != nil {
		return nil, err
	}
	for _, crd := range definitions {
		plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		if err != nil || len(versions) != 1 {
			return nil, fmt.Errorf("definition %q has %d versions: %w", crd.GetName(), len(versions), err)
		}
		version, _ := versions[0].(map[string]any)
		schema, _, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		if err != nil {
			return nil, fmt.Errorf("cannot read the schema of definition %q: %w", crd.GetName(), err)
		}
		for _, path := range added[plural] {
			at := []string{"properties"}
			at = append(at, strings.Split(strings.ReplaceAll(path, ".", ".properties."), ".")...)
			if _, found, _ := unstructured.NestedMap(schema, at...); !found {
				return nil, fmt.Errorf("definition %q has no field %q", crd.GetName(), path)
			}
			unstructured.RemoveNestedField(schema, at...)
		}
		undeclare(schema)
		if err := unstructured.SetNestedMap(version, schema, "schema", "openAPIV3Schema"); err != nil {
			return nil, fmt.Errorf("cannot change the schema of definition %q: %w", crd.GetName(), err)
		}
		if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
			return nil, fmt.Errorf("cannot change definition %q: %w", crd.GetName(), err)
		}
	}
	return definitions, nil
}

// undeclare takes out defaults and the kinds of lists.
func undeclare(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "default")
		delete(v, "x-kubernetes-list-type")
		for _, below := range v {
			undeclare(below)
		}
	case []any:
		for _, below := range v {
			undeclare(below)
		}
	}
}
