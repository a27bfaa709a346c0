package decide

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
)

// verdict on a condition. Unknown is one that cannot be judged now.
type verdict int

const (
	holds verdict = iota
	fails
	unknown
)

// context is what conditions are judged by.
type context struct {
	hco *unstructured.Unstructured
	// hardware are the detectors that are true; nil when no node could be seen.
	hardware map[string]string
}

// wanted reports whether all conditions of an asset hold, and else which does not.
func (c context) wanted(a catalog.Asset) (verdict, string) {
	if a.Install == catalog.OptIn && len(a.Conditions) == 0 {
		return fails, "nobody can ask for it"
	}
	for _, condition := range a.Conditions {
		if v := c.judge(condition); v != holds {
			return v, "it wants: " + condition.String()
		}
	}
	return holds, ""
}

func (c context) judge(condition catalog.Condition) verdict {
	switch condition.Type {
	case catalog.Annotation:
		value, present := c.hco.GetAnnotations()[condition.Key]
		return of(present && (condition.Value == "" || value == condition.Value))
	case catalog.AnnotationNot:
		value, present := c.hco.GetAnnotations()[condition.Key]
		return of(!present || value != condition.Value)
	case catalog.FeatureGate:
		return of(FeatureGate(c.hco, condition.Value))
	case catalog.Hardware:
		if c.hardware == nil {
			return unknown
		}
		_, present := c.hardware[condition.Detector]
		return of(present)
	case catalog.Unconfigured:
		value, _, _ := unstructured.NestedFieldNoCopy(c.hco.Object, strings.Split(condition.Path, ".")...)
		fields, isMap := value.(map[string]any)
		return of(value == nil || isMap && len(fields) == 0)
	}
	return c.anyOf(condition.Of)
}

func (c context) anyOf(conditions []catalog.Condition) verdict {
	best := fails
	for _, alternative := range conditions {
		switch c.judge(alternative) {
		case holds:
			return holds
		case unknown:
			best = unknown
		case fails:
		}
	}
	return best
}

func of(is bool) verdict {
	if is {
		return holds
	}
	return fails
}

// FeatureGate reports whether a gate is on, in the shape of either version: a map of
// booleans, or a list of names with a state.
func FeatureGate(hco *unstructured.Unstructured, gate string) bool {
	value, _, _ := unstructured.NestedFieldNoCopy(hco.Object, "spec", "featureGates")
	switch gates := value.(type) {
	case map[string]any:
		return gates[gate] == true
	case []any:
		for _, item := range gates {
			if entry, ok := item.(map[string]any); ok && entry["name"] == gate {
				return entry["state"] != "Disabled"
			}
		}
	}
	return false
}

// versionOf is the version that the HyperConverged is read in.
func versionOf(hco *unstructured.Unstructured) string { return hco.GroupVersionKind().Version }

// liveMigration is a number of the live migration settings, or what stands for it.
func liveMigration(hco *unstructured.Unstructured, field string, otherwise int64) int64 {
	path := []string{"spec", "liveMigrationConfig", field}
	if versionOf(hco) != "v1beta1" {
		path = []string{"spec", "virtualization", "liveMigrationConfig", field}
	}
	value, _, _ := unstructured.NestedFieldNoCopy(hco.Object, path...)
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return otherwise
}

// describe is "Kind namespace/name".
func describe(kindName, namespace, name string) string {
	if namespace == "" {
		return fmt.Sprintf("%s %s", kindName, name)
	}
	return fmt.Sprintf("%s %s/%s", kindName, namespace, name)
}
