package decide

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FuzzCapacity: whatever a KubevirtMachine says, its capacity is told in quantities
// above zero, or not at all.
func FuzzCapacity(f *testing.F) {
	for _, seed := range []string{
		`{"virtualMachineTemplate":{"spec":{"template":{"spec":{"domain":{"cpu":{"cores":2,"sockets":2},"memory":{"guest":"4Gi"}}}}}}}`,
		`{"virtualMachineTemplate":{"spec":{"template":{"spec":{"domain":{"cpu":{"cores":9223372036854775807,"threads":9},"memory":{"guest":-1.5e300}}}}}}}`,
		`{"virtualMachineTemplate":{"spec":{"dataVolumeTemplates":[{"spec":{"pvc":{"resources":{"requests":{"storage":"9E"}}}}},{"spec":{"storage":{"resources":{"requests":{"storage":"9E"}}}}}, 7]}}}`,
		`{"virtualMachineTemplate":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, spec []byte) {
		obj := &unstructured.Unstructured{}
		if obj.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"X","spec":`+string(spec)+`}`)) != nil {
			return
		}
		for name, quantity := range Capacity(obj) {
			if quantity.Sign() <= 0 {
				t.Errorf("%s is %s", name, quantity.String())
			}
			if _, err := quantity.MarshalJSON(); err != nil {
				t.Errorf("%s cannot be told: %v", name, err)
			}
		}
	})
}
