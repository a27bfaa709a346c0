package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/render"
)

// readTemplate reads a source, and tells what to call the place of its lines.
func readTemplate(path string) (source, where string, err error) {
	if filepath.Ext(path) == ".cue" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return "", "", fmt.Errorf("cannot read the template: %w", err)
		}
		return string(raw), path, nil
	}
	template, err := readObject(path, v1alpha3.KindWorkloadTemplate)
	if err != nil {
		return "", "", err
	}
	source, err = render.SourceOf(template)
	return source, "WorkloadTemplate/" + template.GetName() + " spec.source", err
}

func (o *options) readWorkload() (*unstructured.Unstructured, error) {
	workload, err := readObject(o.workload, v1alpha3.KindWorkload)
	if err != nil {
		return nil, err
	}
	if workload.GetNamespace() == "" {
		workload.SetNamespace("default")
	}
	if o.input == "" {
		return workload, nil
	}
	raw, err := os.ReadFile(o.input)
	if err != nil {
		return nil, fmt.Errorf("cannot read the input: %w", err)
	}
	input := map[string]any{}
	if err := yaml.Unmarshal(raw, &input); err != nil {
		return nil, fmt.Errorf("cannot read the input %q: %w", o.input, err)
	}
	if err := unstructured.SetNestedField(workload.Object, input, "spec", "input"); err != nil {
		return nil, fmt.Errorf("cannot use the input %q: %w", o.input, err)
	}
	return workload, nil
}

// readObject is the first object of a kind among the manifests of a file.
func readObject(path, kindName string) (*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the %s: %w", kindName, err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := documents.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("cannot find a %s of %s in %q", kindName, v1alpha3.GroupName, path)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", path, err)
		}
		if gvk := obj.GroupVersionKind(); gvk.Group == v1alpha3.GroupName && gvk.Kind == kindName {
			return obj, nil
		}
	}
}
