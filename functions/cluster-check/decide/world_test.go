package decide

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/api/vitistack/crds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func object(t testing.TB, manifest string) unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	obj := unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		t.Fatalf("%v in %s", err, manifest)
	}
	return obj
}

func config(t testing.TB, name string, more ...string) *unstructured.Unstructured {
	t.Helper()
	manifest := "{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: " + name + ", generation: 3}, spec: {kubeconfigSecretRef: " + name + "}"
	for _, field := range more {
		manifest += ", " + field
	}
	obj := object(t, manifest+"}")
	return &obj
}

func kubeVirt(t testing.TB, namespace, available, message string) unstructured.Unstructured {
	t.Helper()
	return object(t, "{apiVersion: kubevirt.io/v1, kind: KubeVirt, metadata: {name: kubevirt, namespace: "+namespace+`},
		status: {observedKubeVirtVersion: v1.9.0, conditions: [{type: Created, status: "True"}, {type: Available, status: "`+available+`", message: `+message+`}]}}`)
}

// healthy is what a cluster shows that Machines can run on.
func healthy(t testing.TB, name string) Sight {
	t.Helper()
	return Sight{
		Cluster: name, Connection: plan.Connection{Server: "https://" + name + ":6443"},
		KubeVirts: []unstructured.Unstructured{kubeVirt(t, "kubevirt", "True", "fine")},
		Stored:    map[string]string{"virtualmachines": "v1", "virtualmachineinstances": "v1"},
	}
}

// definitions are the management cluster's own, as this repository ships them.
func definitions(t testing.TB) Definitions {
	t.Helper()
	d := Definitions{Found: map[string]*unstructured.Unstructured{}}
	entries, err := crds.FS.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		raw, err := crds.FS.ReadFile(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		obj := object(t, string(raw))
		d.Found[obj.GetName()] = &obj
	}
	return d
}

func gone(message string) *fault.Fault {
	return &fault.Fault{Class: fault.Unavailable, Cluster: "east", Call: "list namespaces", Message: message}
}

func forbidden(call string) *fault.Fault {
	return &fault.Fault{Class: fault.Refused, Code: 403, Cluster: "east", Call: call, Message: "no"}
}
