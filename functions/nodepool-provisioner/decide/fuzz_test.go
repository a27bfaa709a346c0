package decide

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/plan"
)

// FuzzPool: whatever a pool's spec says, a decision is made, the same one each time,
// and a machine that has no size is not made.
func FuzzPool(f *testing.F) {
	for _, seed := range []string{
		`{"replicas":3,"resources":{"cpu":"2500m","memory":"4096Mi","storage":"20Gi"}}`,
		`{"replicas":-1,"resources":{"cpu":"-1","memory":"0","storage":"1e400"}}`,
		`{"replicas":9223372036854775807,"controlPlane":true,"resources":{"cpu":"9E","memory":"1m"},"storageResources":[{"name":"a","type":"x","quantity":"1"}]}`,
		`{"resources":[],"releaseRef":{"name":"../x"},"loadBalancer":7}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, spec []byte, controlPlane bool) {
		with := &unstructured.Unstructured{}
		if len(spec) > 1<<16 || with.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"X","spec":`+string(spec)+`}`)) != nil {
			return
		}
		fields, isMap := with.Object["spec"].(map[string]any)
		if !isMap {
			return
		}
		w := newWorld(t, controlPlane)
		w.in.Pool.Object["spec"] = fields
		told := func() string {
			decision, answers := w.decide()
			conclusion := Conclude(now, w.in, answers, nil)
			var writes []plan.Entry
			for _, stage := range decision.Plan.Stages {
				writes = append(writes, stage.Entries...)
			}
			return fmt.Sprint(writes, conclusion.Status)
		}
		if first, second := told(), told(); first != second {
			t.Errorf("the same pool is decided about in two ways:\n%s\n%s", first, second)
		}
	})
}
