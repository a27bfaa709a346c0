package admission

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// Violation is one demand that a VirtualMachine does not meet.
type Violation struct {
	// Rule is the number of the rule in the package's documentation.
	Rule int
	// Field is the path of the field at fault, from the object's root.
	Field string
	// Reason says what is wrong with it.
	Reason string
}

// Error returns rule, field and reason in one line.
func (v *Violation) Error() string {
	return fmt.Sprintf("rule %d: %s: %s", v.Rule, v.Field, v.Reason)
}

// rule looks at a machine and reports what it finds.
type rule func(*kubevirtv1.VirtualMachine, *report)

// rules are those that look at the fields of a machine whose structure is right.
var rules = []rule{
	checkPower, checkDisks, checkVolumes, checkDeviceCounts, checkBuses, checkNetworks, checkInterfaces,
	checkModels, checkBootOrder, checkMachineType, checkFirmware, checkCloudInit, checkDataVolumeTemplates, checkMemory,
}

// Check returns all violations of a VirtualMachine, each a *Violation, in the order
// of their rules' functions and of the lists in the machine; nil for a machine that
// KubeVirt accepts.
func Check(vm *unstructured.Unstructured) []error {
	r := &report{}
	checkFeatures(vm, r)
	typed := &kubevirtv1.VirtualMachine{}
	if readable := r.read(vm, typed); !readable {
		return r.violations
	}
	if typed.Spec.Template == nil {
		r.add(2, "spec.template", "is missing")
		return r.violations
	}
	for _, check := range rules {
		check(typed, r)
	}
	return r.violations
}

// templateSpec is the spec of an instance without its own UnmarshalJSON, behind which
// the search for unknown fields would end.
type templateSpec kubevirtv1.VirtualMachineInstanceSpec

// read is rule 2. It fills in the machine and reports whether it can be read at all.
func (r *report) read(vm *unstructured.Unstructured, typed *kubevirtv1.VirtualMachine) bool {
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(vm.Object, typed, true)
	if err != nil {
		r.add(2, "", "%v", err)
		if !runtime.IsStrictDecodingError(err) {
			return false
		}
	}
	spec, found, err := unstructured.NestedMap(vm.Object, "spec", "template", "spec")
	if err != nil || !found {
		return true
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(spec, &templateSpec{}, true); err != nil {
		r.add(2, "spec.template.spec", "%v", err)
	}
	return true
}

// Warnings returns what KubeVirt would warn about while it accepts the machine.
func Warnings(vm *unstructured.Unstructured) []string {
	if _, found, _ := unstructured.NestedFieldNoCopy(vm.Object, "spec", "running"); found {
		return []string{"spec.running is deprecated, please use spec.runStrategy instead."}
	}
	return nil
}

// report collects violations.
type report struct {
	violations []error
}

func (r *report) add(rule int, field, format string, args ...any) {
	if field == "" {
		field = "the object"
	}
	r.violations = append(r.violations, &Violation{Rule: rule, Field: field, Reason: fmt.Sprintf(format, args...)})
}

// at gives the path of an entry of a list.
func at(list string, index int, fields string) string {
	return fmt.Sprintf("%s[%d]%s", list, index, fields)
}
