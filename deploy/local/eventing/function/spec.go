package function

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// AnnotationDisabled keeps a function from being started.
const AnnotationDisabled = "slipway.dev/disabled"

// Spec is what is needed of a Service to run it.
type Spec struct {
	types.NamespacedName
	Generation int64
	// Binary is the file to run.
	Binary string
	// Args are the container's arguments.
	Args []string
	// Env are the container's variables.
	Env []corev1.EnvVar
	// ServiceAccount is whom the process acts as.
	ServiceAccount string
	// Concurrency is how many requests may be in flight; 0 for any number.
	Concurrency int
	// Disabled functions are not started.
	Disabled bool
}

// revisionSpec is the part of a Service's spec.template.spec that counts here.
type revisionSpec struct {
	corev1.PodSpec       `json:",inline"`
	ContainerConcurrency int `json:"containerConcurrency,omitempty"`
}

// Read understands a Service. Its binary is looked for in dir.
func Read(service *unstructured.Unstructured, dir string) (Spec, error) {
	spec := Spec{
		NamespacedName: types.NamespacedName{Namespace: service.GetNamespace(), Name: service.GetName()},
		Generation:     service.GetGeneration(),
		Disabled:       service.GetAnnotations()[AnnotationDisabled] == "true",
	}
	template, _, err := unstructured.NestedMap(service.Object, "spec", "template", "spec")
	if err != nil {
		return Spec{}, fmt.Errorf("cannot read spec.template.spec: %w", err)
	}
	var revision revisionSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &revision); err != nil {
		return Spec{}, fmt.Errorf("cannot read spec.template.spec: %w", err)
	}
	if len(revision.Containers) != 1 {
		return Spec{}, fmt.Errorf("spec.template.spec.containers has %d entries: one is needed", len(revision.Containers))
	}
	container := revision.Containers[0]
	name := BinaryName(container.Image)
	if name == "" {
		return Spec{}, fmt.Errorf("spec.template.spec.containers[0].image %q names no binary", container.Image)
	}
	spec.Binary = filepath.Join(dir, name)
	spec.Args = container.Args
	spec.Env = container.Env
	spec.Concurrency = revision.ContainerConcurrency
	spec.ServiceAccount = revision.ServiceAccountName
	if spec.ServiceAccount == "" {
		spec.ServiceAccount = "default"
	}
	return spec, nil
}

// BinaryName is the name of the binary that an image holds: the last element of
// its path, or the one before it if that is "cmd".
func BinaryName(image string) string {
	image = strings.TrimPrefix(image, "ko://")
	image, _, _ = strings.Cut(image, "@")
	elements := strings.Split(image, "/")
	last := len(elements) - 1
	// A colon in the last element is a tag; in the first it would be a port.
	elements[last], _, _ = strings.Cut(elements[last], ":")
	if elements[last] == "cmd" && last > 0 {
		last--
	}
	name := elements[last]
	if name == "." || name == ".." {
		return ""
	}
	return name
}

// fingerprint changes with everything that a running process cannot follow.
func (s Spec) fingerprint() string {
	s.Generation = 0
	s.Disabled = false
	// Specs are plain data that always encodes.
	text, _ := json.Marshal(s)
	return string(text)
}
