package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestWhatIsComparedOfTwoWorlds: what is history must not show, and what a function is
// responsible for must.
func TestWhatIsComparedOfTwoWorlds(t *testing.T) {
	const service = `{kind: Service, metadata: {name: far, namespace: a}, spec: {ports: [{port: 80, nodePort: %}]}}`
	for name, c := range map[string]struct {
		peace, faults string
		same          bool
	}{
		"conditions in another order": {
			`{kind: Workload, status: {conditions: [{type: A, status: "True"}, {type: B}]}}`,
			`{kind: Workload, status: {conditions: [{type: B}, {type: A, status: "True"}]}}`, true,
		},
		"a condition that says another thing": {
			`{kind: Workload, status: {conditions: [{type: A, status: "True"}]}}`,
			`{kind: Workload, status: {conditions: [{type: A, status: "False"}]}}`, false,
		},
		"a present generation, and another one": {
			`{kind: Machine, metadata: {generation: 3}, status: {observedGeneration: 3}}`,
			`{kind: Machine, metadata: {generation: 2}, status: {observedGeneration: 2}}`, true,
		},
		"an old generation": {
			`{kind: Machine, metadata: {generation: 3}, status: {observedGeneration: 3}}`,
			`{kind: Machine, metadata: {generation: 3}, status: {observedGeneration: 2}}`, false,
		},
		"an Organization that became ready earlier": {
			`{kind: Organization, metadata: {generation: 2}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`,
			`{kind: Organization, metadata: {generation: 2}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`, true,
		},
		"an Organization that is not ready": {
			`{kind: Organization, status: {conditions: [{type: Ready, status: "True"}]}}`,
			`{kind: Organization, status: {conditions: [{type: Ready, status: "False"}]}}`, false,
		},
		"a port that leads to the node port of the same Service": {
			`{kind: Service, spec: {ports: [{targetPort: 30001}]}}` + "\n---\n" + strings.ReplaceAll(service, "%", "30001"),
			`{kind: Service, spec: {ports: [{targetPort: 30002}]}}` + "\n---\n" + strings.ReplaceAll(service, "%", "30002"), true,
		},
		"a port that leads nowhere": {
			`{kind: Service, spec: {ports: [{targetPort: 30001}]}}` + "\n---\n" + strings.ReplaceAll(service, "%", "30001"),
			`{kind: Service, spec: {ports: [{targetPort: 30003}]}}` + "\n---\n" + strings.ReplaceAll(service, "%", "30002"), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := differing(normal(objects(t, c.peace)), normal(objects(t, c.faults))); (len(got) == 0) != c.same {
				t.Errorf("the differences are %v", got)
			}
		})
	}
}

func objects(t *testing.T, text string) map[string]*unstructured.Unstructured {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for _, part := range strings.Split(text, "\n---\n") {
		raw, err := yaml.YAMLToJSON([]byte(strings.Replace(part, "{", "{apiVersion: v1, ", 1)))
		if err != nil {
			t.Fatal(err)
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		all[obj.GetKind()+" "+obj.GetNamespace()+"/"+obj.GetName()] = obj
	}
	return all
}
