package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
)

// Management stands for the management cluster among clusters.
const Management = ""

// Settings are the parts of the environment that a decision depends on.
type Settings struct {
	// ConfigsNamespace is the namespace of KubevirtConfigs, where they have one,
	// and of their Secrets.
	ConfigsNamespace string
}

// DefaultSettings are those of an empty environment.
func DefaultSettings() Settings { return Settings{ConfigsNamespace: "default"} }

// Counts tells whether a KubevirtConfig is one of ours: where an older
// definition has them in namespaces, those of one namespace are.
func Counts(config *unstructured.Unstructured, settings Settings) bool {
	ns := config.GetNamespace()
	return ns == "" || ns == settings.ConfigsNamespace
}

// KubeconfigSecret is the Secret with a KubevirtConfig's kubeconfig.
func KubeconfigSecret(config *unstructured.Unstructured, settings Settings) (namespace, name string) {
	return firstOf(text(config.Object, "spec", "secretNamespace"), config.GetNamespace(), settings.ConfigsNamespace, "default"),
		text(config.Object, "spec", "kubeconfigSecretRef")
}

// Counted are the KubevirtConfigs that count, by name.
func Counted(configs []unstructured.Unstructured, settings Settings) []*unstructured.Unstructured {
	var counted []*unstructured.Unstructured
	for i := range configs {
		if Counts(&configs[i], settings) {
			counted = append(counted, &configs[i])
		}
	}
	slices.SortFunc(counted, func(a, b *unstructured.Unstructured) int {
		switch {
		case a.GetName() < b.GetName():
			return -1
		case a.GetName() > b.GetName():
			return 1
		}
		return 0
	})
	return counted
}

// Yardstick is the KubevirtConfig that others are compared with: the first by
// name whose versions could be read when it was last looked at. Nil if there is
// none.
func Yardstick(configs []unstructured.Unstructured, settings Settings) *unstructured.Unstructured {
	for _, config := range Counted(configs, settings) {
		if readable(config) {
			return config
		}
	}
	return nil
}

// YardstickFor is the KubevirtConfig that another is compared with; nil if that
// is the other itself. What is recorded of the other does not count: it is being
// looked at.
func YardstickFor(name string, configs []unstructured.Unstructured, settings Settings) *unstructured.Unstructured {
	if first := Yardstick(configs, settings); first != nil && first.GetName() < name {
		return first
	}
	return nil
}

// readable tells whether the versions of a cluster could be read when it was
// last looked at. One that nobody has looked at counts as readable.
func readable(config *unstructured.Unstructured) bool {
	if text(config.Object, "status", "status") == v1alpha1.StatusDisconnected {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(config.Object, "status", "conditions")
	for _, item := range conditions {
		if fields, ok := item.(map[string]any); ok && text(fields, "type") == v1alpha1.ConditionVersionsMatch {
			return text(fields, "status") != v1alpha1.ConditionUnknown || text(fields, "reason") == v1alpha1.ReasonWaiting
		}
	}
	return true
}

// Concerned are the names of the KubevirtConfigs to look at when one changed,
// appeared or went: itself, and all if they are, or were, compared with it.
func Concerned(name string, configs []unstructured.Unstructured, settings Settings) []string {
	names := []string{name}
	first := Yardstick(configs, settings)
	if first == nil || name > first.GetName() {
		return names
	}
	for _, config := range Counted(configs, settings) {
		if config.GetName() != name {
			names = append(names, config.GetName())
		}
	}
	return names
}

// text is a string in an object, or "".
func text(fields map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(fields, path...)
	return value
}

func firstOf(names ...string) string {
	for _, name := range names {
		if name != "" {
			return name
		}
	}
	return ""
}
