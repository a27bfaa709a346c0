package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
)

// Fields that a template sees, by dotted path, besides apiVersion, kind and those of
// metadata. Everything else would make outputs change with every event, or is part of
// a later revision of the API, which closed schemas refuse.
var (
	clusterFields = []string{
		"spec.version", "spec.noDefaultIngressProvider", "spec.noDefaultNetworkPlugin", "spec.podSubnets", "spec.serviceSubnets",
		"spec.upgrades", "spec.blockDeletion", "spec.allocateInternalIP", "spec.ipPoolRef", "spec.duration",
		"status.clusterServiceID", "status.version", "status.dnsZones", "status.apiEndpoint",
	}
	workloadFields = []string{
		"spec.clusterComponent", "spec.targetNamespace", "spec.provenience", "spec.workloadTemplateRef", "spec.input",
	}
)

// Annotations that are no business of a template.
const (
	lastApplied   = "kubectl.kubernetes.io/last-applied-configuration"
	slipwayDomain = "slipway.dev" //nolint:gosec // the domain of annotations, no credential
)

// ProjectCluster is what a template sees of a Cluster, as canonical JSON.
func ProjectCluster(cluster *unstructured.Unstructured) string {
	out := project(cluster, v1alpha3.KindCluster, clusterFields)
	endpoint, _, _ := unstructured.NestedMap(out, "status", "apiEndpoint")
	if host, _ := endpoint["host"].(string); endpoint != nil && host == "" {
		unstructured.RemoveNestedField(out, "status", "apiEndpoint") // a typed client's empty struct
	}
	return canonical(dropEmpty(out))
}

// ProjectWorkload is what a template sees of a Workload, as canonical JSON.
func ProjectWorkload(workload *unstructured.Unstructured) string {
	out := project(workload, v1alpha3.KindWorkload, workloadFields)
	if group, found, _ := unstructured.NestedString(out, "spec", "workloadTemplateRef", "apiGroup"); found && group == "" {
		unstructured.RemoveNestedField(out, "spec", "workloadTemplateRef", "apiGroup")
	}
	return canonical(dropEmpty(out))
}

// StandIn is a Cluster of which nothing but its name is known.
func StandIn(namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

func project(obj *unstructured.Unstructured, kindName string, fields []string) map[string]any {
	metadata := map[string]any{"name": obj.GetName(), "namespace": obj.GetNamespace()}
	if uid := obj.GetUID(); uid != "" {
		metadata["uid"] = string(uid)
	}
	if labels := obj.GetLabels(); len(labels) > 0 {
		metadata["labels"] = texts(labels)
	}
	annotations := maps.Clone(obj.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool { return key == lastApplied || InDomain(key, slipwayDomain) })
	if len(annotations) > 0 {
		metadata["annotations"] = texts(annotations)
	}
	out := map[string]any{"apiVersion": v1alpha3.SchemeGroupVersion.String(), "kind": kindName, "metadata": metadata}
	for _, field := range fields {
		path := strings.Split(field, ".")
		value, found, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
		if err != nil || !found || value == nil {
			continue
		}
		parent, ok := out[path[0]].(map[string]any)
		if !ok {
			parent = map[string]any{}
			out[path[0]] = parent
		}
		parent[path[1]] = runtime.DeepCopyJSONValue(value)
	}
	return out
}

// dropEmpty leaves out spec and status when nothing is in them.
func dropEmpty(out map[string]any) map[string]any {
	for _, name := range []string{"spec", "status"} {
		if fields, ok := out[name].(map[string]any); ok && len(fields) == 0 {
			delete(out, name)
		}
	}
	return out
}

func texts(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = value
	}
	return out
}

// canonical is JSON with sorted keys. A byte order mark inside a string is
// escaped: CUE's reader takes one only at the beginning of a text.
func canonical(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("an object as read from an API server is no JSON: %v", err))
	}
	return strings.ReplaceAll(string(raw), "\uFEFF", `\ufeff`)
}

// Canonical is JSON text with sorted keys, as it stands in a Request.
func Canonical(text []byte) (string, error) {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", fmt.Errorf("cannot read JSON: %w", err)
	}
	return canonical(value), nil
}

// InDomain tells whether the key of a label or an annotation belongs to a domain or
// one below it.
func InDomain(key, domain string) bool {
	prefix, _, slash := strings.Cut(key, "/")
	return slash && (prefix == domain || strings.HasSuffix(prefix, "."+domain))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// JSON is a value as read from an API server, as it stands in a Request.
func JSON(value any) string { return canonical(value) }
