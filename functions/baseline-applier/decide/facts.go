package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

// facts are what all templates can see.
func (l *looker) facts() catalog.Facts {
	hardware := map[string]any{}
	for _, detector := range Detectors() {
		_, present := l.in.Hardware[detector]
		hardware[detector] = present
	}
	s := l.in.Settings
	return catalog.Facts{
		"hcoNamespace": s.HCONamespace, "hcoVersion": versionOf(l.in.HCO), "opinions": s.Opinions, "runbooks": s.Runbooks,
		"managementCPUs": s.ManagementCPUs, "hardware": hardware,
	}
}

// The rule by which it is known how the descheduler can see actual load.
const (
	descheduler   = "openshift-kube-descheduler-operator"
	RuleNamespace = descheduler
	RuleName      = "descheduler-rules"
	loadRecord    = "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m"
)

// profiles of the descheduler, the best first.
var profiles = []string{"KubeVirtRelieveAndMigrate", "DevKubeVirtRelieveAndMigrate", "LongLifecycle"}

// descheduler are the facts of its own template. Not ok: the finding is complete, or
// waits.
func (l *looker) descheduler(f *Finding, schema *unstructured.Unstructured) (map[string]any, bool) {
	answer, known := l.need(plan.Need{Resource: kinds.PrometheusRules, Namespace: RuleNamespace, Name: RuleName})
	switch {
	case !known:
		f.waits = true
		return nil, false
	case answer.Fault != nil && answer.Fault.Class != fault.NotServed:
		// It must not change the profile: nothing is rendered.
		*f, f.RenderFailed = l.faulty(*f, answer.Fault), true
		return nil, false
	}
	profile := profiles[1]
	enum := Enum(schema, "spec", "profiles")
	if i := slices.IndexFunc(profiles, func(p string) bool { return slices.Contains(enum, p) }); i >= 0 {
		profile = profiles[i]
	}
	utilization := ""
	if answer.Object != nil {
		utilization = "PrometheusCPUCombined"
		if records(answer.Object, loadRecord) {
			utilization = "PrometheusCPUMemoryCombinedProfile"
		}
	}
	return map[string]any{
		"profile": profile, "background": profile == profiles[2], "utilization": utilization,
		"total": liveMigration(l.in.HCO, "parallelMigrationsPerCluster", 5),
		"node":  liveMigration(l.in.HCO, "parallelOutboundMigrationsPerNode", 2),
	}, true
}

// records reports whether a PrometheusRule has a recording rule of a name.
func records(rule *unstructured.Unstructured, name string) bool {
	return slices.ContainsFunc(items(rule, "spec", "groups"), func(group map[string]any) bool {
		return slices.ContainsFunc(items(&unstructured.Unstructured{Object: group}, "rules"), func(r map[string]any) bool { return r["record"] == name })
	})
}

// Enum are the values that a definition allows for a field, or for the items of a
// list, in the stored version.
func Enum(crd *unstructured.Unstructured, path ...string) []string {
	var node map[string]any
	for _, version := range items(crd, "spec", "versions") {
		if version["storage"] == true {
			node = schemaAt(version, path)
		}
	}
	if inner, ok := node["items"].(map[string]any); ok && node["enum"] == nil {
		node = inner
	}
	values, _ := node["enum"].([]any)
	var out []string
	for _, value := range values {
		if text, ok := value.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// Declared reports whether a version of a definition has a field.
func Declared(crd *unstructured.Unstructured, name string, path []string) bool {
	for _, version := range items(crd, "spec", "versions") {
		if version["name"] == name {
			return schemaAt(version, path) != nil
		}
	}
	return false
}

func schemaAt(version map[string]any, path []string) map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema")
	node, _ := value.(map[string]any)
	for _, field := range path {
		if node["x-kubernetes-preserve-unknown-fields"] == true && node["properties"] == nil {
			return node
		}
		if inner, ok := node["items"].(map[string]any); ok {
			node = inner
		}
		properties, _ := node["properties"].(map[string]any)
		node, _ = properties[field].(map[string]any)
	}
	return node
}
