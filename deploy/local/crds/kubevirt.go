package crds

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// kind is what KubeVirt's operator adds in code to the schema of a kind.
type kind struct {
	kind, singular, plural string
	shortNames             []any
	label                  string
	columns                []any
	// status says that the kind has the subresource status. An instance has none:
	// whoever changes its status changes the object.
	status bool
}

// kubevirtKinds are the kinds of KubeVirt that Slipway or its tests touch. A test
// compares them with the code of KubeVirt's operator.
var kubevirtKinds = []kind{
	{
		kind: "KubeVirt", singular: "kubevirt", plural: "kubevirts",
		shortNames: []any{"kv", "kvs"},
		label:      "operator.kubevirt.io",
		columns: []any{
			column("Age", "date", ".metadata.creationTimestamp"),
			column("Phase", "string", ".status.phase"),
		},
		status: true,
	},
	{
		kind: "VirtualMachine", singular: "virtualmachine", plural: "virtualmachines",
		shortNames: []any{"vm", "vms"},
		label:      "kubevirt.io",
		columns: []any{
			column("Age", "date", ".metadata.creationTimestamp"),
			described(column("Status", "string", ".status.printableStatus"), "Human Readable Status"),
			column("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
		},
		status: true,
	},
	{
		kind: "VirtualMachineInstance", singular: "virtualmachineinstance", plural: "virtualmachineinstances",
		shortNames: []any{"vmi", "vmis"},
		label:      "kubevirt.io",
		columns: []any{
			column("Age", "date", ".metadata.creationTimestamp"),
			column("Phase", "string", ".status.phase"),
			column("IP", "string", ".status.interfaces[0].ipAddress"),
			column("NodeName", "string", ".status.nodeName"),
			column("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
			wide(column("Live-Migratable", "string", ".status.conditions[?(@.type=='LiveMigratable')].status")),
			wide(column("Paused", "string", ".status.conditions[?(@.type=='Paused')].status")),
		},
	},
	{
		kind: "VirtualMachineInstanceMigration", singular: "virtualmachineinstancemigration", plural: "virtualmachineinstancemigrations",
		shortNames: []any{"vmim", "vmims"},
		label:      "kubevirt.io",
		columns: []any{
			described(column("Phase", "string", ".status.phase"), "The current phase of VM instance migration"),
			described(column("VMI", "string", ".spec.vmiName"), "The name of the VMI to perform the migration on"),
		},
		status: true,
	},
}

// compose makes the definition from the schema, which comes as
// {"openAPIV3Schema": …}. Both versions have the same schema, v1 is stored.
func (k kind) compose(schema map[string]any) *unstructured.Unstructured {
	stored := k.version("v1", schema)
	stored["storage"] = true
	deprecated := k.version("v1alpha3", schema)
	deprecated["storage"] = false
	deprecated["deprecated"] = true
	deprecated["deprecationWarning"] = "kubevirt.io/v1alpha3 is now deprecated and will be removed in a future release."
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata": map[string]any{
			"name":   k.plural + ".kubevirt.io",
			"labels": map[string]any{k.label: ""},
		},
		"spec": map[string]any{
			"group": "kubevirt.io",
			"names": map[string]any{
				"kind":       k.kind,
				"listKind":   k.kind + "List",
				"plural":     k.plural,
				"singular":   k.singular,
				"shortNames": k.shortNames,
				"categories": []any{"all"},
			},
			"scope":    "Namespaced",
			"versions": []any{stored, deprecated},
		},
	}}
}

func (k kind) version(name string, schema map[string]any) map[string]any {
	version := map[string]any{
		"name":                     name,
		"served":                   true,
		"schema":                   schema,
		"additionalPrinterColumns": k.columns,
	}
	if k.status {
		version["subresources"] = map[string]any{"status": map[string]any{}}
	}
	return version
}

func column(name, kind, path string) map[string]any {
	return map[string]any{"name": name, "type": kind, "jsonPath": path}
}

// described gives a column a description.
func described(column map[string]any, description string) map[string]any {
	column["description"] = description
	return column
}

// wide shows a column in wide output only.
func wide(column map[string]any) map[string]any {
	column["priority"] = int64(1)
	return column
}
