package decide

import (
	"encoding/json"
	"fmt"
	"math/bits"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
)

// Capacity is what the template of a KubevirtMachine gives to it: cpu, memory and
// storage, each only if the template says it.
func Capacity(machine *unstructured.Unstructured) map[string]resource.Quantity {
	vm := object(machine.Object, "spec", "virtualMachineTemplate", "spec")
	domain := object(vm, "template", "spec", "domain")
	out := map[string]resource.Quantity{}
	if cpus, ok := processors(object(domain, "cpu")); ok {
		out[v1alpha3.ResourceCPU] = *resource.NewQuantity(cpus, resource.DecimalSI)
	}
	if memory, ok := positive(object(domain, "memory")["guest"]); ok {
		out[v1alpha3.ResourceMemory] = memory
	}
	templates, _ := vm["dataVolumeTemplates"].([]any)
	var sum resource.Quantity
	for _, item := range templates {
		template, _ := item.(map[string]any)
		if size, ok := positive(requested(template)); ok {
			sum.Add(size)
		}
	}
	if !sum.IsZero() {
		out[v1alpha3.ResourceStorage] = sum
	}
	return out
}

// requested is the size that a disk asks for: by pvc, or by storage where there is
// no pvc.
func requested(template map[string]any) any {
	spec := object(template, "spec")
	if claim := object(spec, "pvc"); claim != nil {
		return object(claim, "resources", "requests")["storage"]
	}
	return object(spec, "storage", "resources", "requests")["storage"]
}

// processors is cores × sockets × threads. What is not set counts as one, as it
// does for KubeVirt, unless nothing is set.
func processors(cpu map[string]any) (int64, bool) {
	product, set := uint64(1), false
	for _, field := range []string{"cores", "sockets", "threads"} {
		n, ok := cpu[field].(int64)
		if !ok || n <= 0 {
			continue
		}
		set = true
		high, low := bits.Mul64(product, uint64(n))
		if high != 0 || low > 1<<32 {
			return 0, false // no machine has so many
		}
		product = low
	}
	return int64(product), set //nolint:gosec // bounded above
}

// object is a map below another, nil where there is none.
func object(in map[string]any, path ...string) map[string]any {
	for _, field := range path {
		in, _ = in[field].(map[string]any)
	}
	return in
}

func positive(value any) (resource.Quantity, bool) {
	q, ok := quantity(value)
	return q, ok && q.Sign() > 0
}

// quantity reads a quantity as it may stand in an object: text, or a number.
func quantity(value any) (resource.Quantity, bool) {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case int64, float64, json.Number:
		text = fmt.Sprint(v)
	default:
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}
