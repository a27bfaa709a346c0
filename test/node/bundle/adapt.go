package bundle

import (
	"bytes"
	"embed"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/kube"
)

//go:embed *.yaml
var files embed.FS

func own(name string) ([]*unstructured.Unstructured, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	objects, err := kube.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", name, err)
	}
	return objects, nil
}

// settings are changed values of Knative's ConfigMaps.
var settings = map[string]map[string]string{
	"config-network": {"ingress-class": "slipway-node.ingress.networking.knative.dev"},
	// 6 s is the shortest window there is.
	"config-autoscaler": {"stable-window": "6s", "scale-to-zero-grace-period": "6s"},
}

// adapt changes what a cluster for a few minutes wants different.
func adapt(obj *unstructured.Unstructured) error {
	switch obj.GetKind() {
	case "ConfigMap":
		for name, value := range settings[obj.GetName()] {
			if err := unstructured.SetNestedField(obj.Object, value, "data", name); err != nil {
				return err
			}
		}
	case "Deployment":
		return adaptDeployment(obj)
	}
	return nil
}

// adaptDeployment lets probes run every second, and lets everything fit two processors:
// nobody competes in here.
func adaptDeployment(obj *unstructured.Unstructured) error {
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(obj.Object, path...)
	if err != nil {
		return err
	}
	for _, item := range containers {
		container, ok := item.(map[string]any)
		if !ok {
			continue
		}
		for _, name := range []string{"readinessProbe", "livenessProbe", "startupProbe"} {
			if probe, ok := container[name].(map[string]any); ok {
				probe["initialDelaySeconds"] = int64(1)
				if name != "livenessProbe" {
					probe["periodSeconds"] = int64(1)
				}
			}
		}
		if _, found, _ := unstructured.NestedString(container, "resources", "requests", "cpu"); found {
			if err := unstructured.SetNestedField(container, "10m", "resources", "requests", "cpu"); err != nil {
				return err
			}
		}
	}
	return unstructured.SetNestedSlice(obj.Object, containers, path...)
}
