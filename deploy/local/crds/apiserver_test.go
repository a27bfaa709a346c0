package crds_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
)

// TestAPIServerServesThemAll gives every definition to a real API server, which checks
// them strictly, and reads every version that they serve.
func TestAPIServerServesThemAll(t *testing.T) {
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := build.Binaries(t.Context(), build.Options{Root: root, Out: os.Stderr}, "kube"); err != nil {
		t.Fatal(err)
	}
	cluster, err := kube.Start(t.Context(), kube.Options{Binary: filepath.Join(root, build.DefaultBin, "kube"), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	config := *cluster.Config
	config.QPS = -1
	// That older versions are deprecated is no news here.
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(&config)
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Load(t.Context(), crds.Names()...)
	if err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	kind := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	names := make([]string, len(definitions))
	var group sync.WaitGroup
	for i, definition := range definitions {
		names[i] = definition.GetName()
		group.Go(func() {
			if _, err := client.Resource(kind).Create(t.Context(), definition, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	if err := kube.WaitEstablished(t.Context(), cluster.Config, names...); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d definitions are established after %s", len(names), time.Since(began).Round(time.Millisecond))

	for _, name := range names {
		stored, err := client.Resource(kind).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, condition := range slice(stored, "status", "conditions") {
			if condition["type"] == "NonStructuralSchema" && condition["status"] == "True" {
				t.Errorf("definition %q: %v", name, condition["message"])
			}
		}
		for _, resource := range served(stored) {
			if _, err := client.Resource(resource).List(t.Context(), metav1.ListOptions{Limit: 1}); err != nil {
				t.Errorf("cannot list %s: %v", resource, err)
			}
		}
	}
}

// served returns what a definition makes the API server serve.
func served(definition *unstructured.Unstructured) []schema.GroupVersionResource {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	var resources []schema.GroupVersionResource
	for _, version := range slice(definition, "spec", "versions") {
		if version["served"] == true {
			resources = append(resources, schema.GroupVersionResource{Group: group, Version: version["name"].(string), Resource: plural})
		}
	}
	return resources
}

func slice(object *unstructured.Unstructured, fields ...string) []map[string]any {
	values, _, _ := unstructured.NestedSlice(object.Object, fields...)
	entries := make([]map[string]any, 0, len(values))
	for _, value := range values {
		entries = append(entries, value.(map[string]any))
	}
	return entries
}
