package decide

import (
	"fmt"
	"path"

	"sigs.k8s.io/yaml"
)

// Rule excludes objects of a kind from the baseline, by globs.
type Rule struct {
	Kind      string  `json:"kind"`
	Name      string  `json:"name"`
	Namespace *string `json:"namespace,omitempty"`
}

// maxRules bounds what one annotation can ask for.
const maxRules = 1000

// Exclusions reads the rules of an annotation. A text that cannot be read is an
// error: what it meant to exclude is unknown, so nothing may be written. Rules with a
// glob that cannot be matched are left out, and named.
func Exclusions(text string) (rules []Rule, broken []string, err error) {
	if text == "" {
		return nil, nil, nil
	}
	var read []Rule
	if err := yaml.UnmarshalStrict([]byte(text), &read); err != nil {
		return nil, nil, fmt.Errorf("cannot read annotation %s: %w: write a YAML list of {kind, name, namespace}", AnnotationDisabled, err)
	}
	if len(read) > maxRules {
		return nil, nil, fmt.Errorf("cannot use annotation %s: it has %d rules, %d are allowed", AnnotationDisabled, len(read), maxRules)
	}
	for i, rule := range read {
		if rule.Kind == "" || rule.Name == "" {
			return nil, nil, fmt.Errorf("cannot use annotation %s: rule %d lacks kind or name", AnnotationDisabled, i+1)
		}
		if _, err := path.Match(rule.Name, ""); err != nil {
			broken = append(broken, fmt.Sprintf("rule %d: the name %q is no glob", i+1, rule.Name))
			continue
		}
		if rule.Namespace != nil {
			if _, err := path.Match(*rule.Namespace, ""); err != nil {
				broken = append(broken, fmt.Sprintf("rule %d: the namespace %q is no glob", i+1, *rule.Namespace))
				continue
			}
		}
		rules = append(rules, rule)
	}
	return rules, broken, nil
}

// excluded reports whether one of the rules is about an object.
func excluded(rules []Rule, kindName, namespace, name string) bool {
	for _, rule := range rules {
		if rule.Kind != kindName {
			continue
		}
		if is, _ := path.Match(rule.Name, name); !is {
			continue
		}
		if rule.Namespace == nil {
			return true
		}
		if is, _ := path.Match(*rule.Namespace, namespace); is {
			return true
		}
	}
	return false
}
