package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/deploy/local/kube"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

const objects = `
apiVersion: vitistack.io/v1alpha1
kind: Machine
metadata: {name: ours, namespace: NS, finalizers: [machine.vitistack.io/cleanup, machine.vitistack.io/finalizer]}
spec: {template: small}
---
apiVersion: vitistack.io/v1alpha1
kind: Machine
metadata: {name: new, namespace: NS}
spec: {template: small}
---
apiVersion: dockyards.io/v1alpha3
kind: Workload
metadata:
  name: ours
  namespace: NS
  finalizers: [example.com/theirs, slipway.dev/workload-renderer]
  annotations: {slipway.dev/inventory: "[]", example.com/theirs: kept}
spec: {targetNamespace: apps, provenience: User}
---
apiVersion: dockyards.io/v1alpha3
kind: Workload
metadata: {name: new, namespace: NS}
spec: {targetNamespace: apps, provenience: User}
`

// TestTheWayBackTakesOurMarksAway runs the lines that the guides give for it.
func TestTheWayBackTakesOurMarksAway(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not installed: the lines for the way back are not run")
	}
	h := open(t)
	env := kubetest.Start(t, kubetest.Options{Files: []string{"api/dockyards/crds", "api/vitistack/crds"}})
	ns := env.Namespace(t)
	objs, err := kube.Decode(strings.NewReader(strings.ReplaceAll(objects, "NS", ns)))
	if err != nil {
		t.Fatal(err)
	}
	if err := kube.Apply(t.Context(), env.Config, objs...); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, document := range []string{"docs/takeover.md", "functions/workload-renderer/takeover.md"} {
		text, err := os.ReadFile(filepath.Join(h.root, document))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commands(string(text)) {
			if !strings.Contains(line, "jq ") {
				continue
			}
			ran++
			// Twice: the second time there is nothing to take away.
			for range 2 {
				if _, err := h.run(line, "KUBECONFIG="+env.Cluster.Kubeconfig); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if ran != 2 {
		t.Errorf("%d lines were run, want one for Machines and one for Workloads", ran)
	}
	for resource, want := range map[string][]string{"machines.vitistack.io": {"machine.vitistack.io/finalizer"}, "workloads.dockyards.io": {"example.com/theirs"}} {
		plural, group, _ := strings.Cut(resource, ".")
		version := map[string]string{"vitistack.io": "v1alpha1", "dockyards.io": "v1alpha3"}[group]
		client := env.Client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural}).Namespace(ns)
		for name, finalizers := range map[string][]string{"ours": want, "new": nil} {
			live, err := client.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := live.GetFinalizers(); !slices.Equal(got, finalizers) {
				t.Errorf("%s %s has the finalizers %v, want %v", resource, name, got, finalizers)
			}
			if _, left := live.GetAnnotations()["slipway.dev/inventory"]; left {
				t.Errorf("%s %s keeps its inventory", resource, name)
			}
			if name == "ours" && plural == "workloads" && live.GetAnnotations()["example.com/theirs"] != "kept" {
				t.Errorf("what others annotated is gone: %v", live.GetAnnotations())
			}
			if spec, _, _ := unstructured.NestedMap(live.Object, "spec"); len(spec) == 0 {
				t.Errorf("%s %s has lost its spec", resource, name)
			}
		}
	}
}
