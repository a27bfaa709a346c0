package decide

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
)

// expected are the properties without which the functions cannot do their work.
var expected = []struct {
	resource   kind.Resource
	properties []string
}{
	{kinds.Machines, []string{"spec.instanceType", "spec.kubevirtConfigRef", "status.phase", "status.conditions"}},
	{kinds.NetworkConfigurations, []string{"spec.networks", "status.phase"}},
	{kinds.KubevirtConfigs, []string{"spec.kubeconfigSecretRef", "status.phase"}},
}

// Expected are the resources that the management cluster has to serve.
func Expected() []kind.Resource {
	var list []kind.Resource
	for _, e := range expected {
		list = append(list, e.resource)
	}
	return list
}

// Definitions are the management cluster's own, by resource.
type Definitions struct {
	// Found are those that exist.
	Found map[string]*unstructured.Unstructured
	// Refused is set when one of them could not be read.
	Refused *fault.Fault
}

// Of is the definition of a resource; nil if there is none.
func (d Definitions) Of(res kind.Resource) *unstructured.Unstructured { return d.Found[res.String()] }

// Schemas checks that the definitions have all properties that are needed.
// Those that nobody asks for may be left out.
func (d Definitions) Schemas(without ...kind.Resource) Verdict {
	if d.Refused != nil {
		return Verdict{Result: Warning, Reason: v1alpha1.ReasonUnauthorized, Message: lacking(d.Refused), Blind: true}
	}
	var gaps []string
	for _, e := range expected {
		if slices.ContainsFunc(without, func(res kind.Resource) bool { return res.String() == e.resource.String() }) {
			continue
		}
		definition := d.Of(e.resource)
		if definition == nil {
			gaps = append(gaps, e.resource.String()+" does not exist")
			continue
		}
		var missing []string
		for _, path := range e.properties {
			if !hasProperty(definition, e.resource.Versions[0], path) {
				missing = append(missing, path)
			}
		}
		if len(missing) > 0 {
			gaps = append(gaps, e.resource.String()+" lacks "+strings.Join(missing, ", "))
		}
	}
	if len(gaps) > 0 {
		return Verdict{
			Result: Warning, Reason: v1alpha1.ReasonSchemaIncomplete,
			Message: "definitions of the management cluster: " + strings.Join(gaps, "; ") + ": apply those of api/vitistack/crds",
		}
	}
	return Verdict{Result: OK, Reason: v1alpha1.ReasonVersionsMatch, Message: "the definitions have every property that is needed"}
}

// hasProperty tells whether a definition's version has a property, by dotted
// path. Where a schema keeps unknown fields, it has any.
func hasProperty(definition *unstructured.Unstructured, version, path string) bool {
	field, _, _ := unstructured.NestedFieldNoCopy(definition.Object, "spec", "versions")
	versions, _ := field.([]any)
	for _, item := range versions {
		fields, ok := item.(map[string]any)
		if !ok || text(fields, "name") != version {
			continue
		}
		schema, _, _ := unstructured.NestedFieldNoCopy(fields, "schema", "openAPIV3Schema")
		return leadsTo(schema, strings.Split(path, "."))
	}
	return false
}

func leadsTo(schema any, path []string) bool {
	for _, name := range path {
		fields, _ := schema.(map[string]any)
		if fields["x-kubernetes-preserve-unknown-fields"] == true {
			return true
		}
		properties, _ := fields["properties"].(map[string]any)
		next, ok := properties[name]
		if !ok {
			return false
		}
		schema = next
	}
	return true
}
