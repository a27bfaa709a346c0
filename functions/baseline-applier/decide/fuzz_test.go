package decide

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FuzzState: whatever somebody has written into the function's config map, reading it
// ends, what was read can be written, and is read as the same.
func FuzzState(f *testing.F) {
	f.Add("descheduler-loadaware", `{"outcome":"InSync"}`, `{}`)
	f.Add("_platform", `{"hco":7}`, `{"a":{"status":1e9}}`)
	f.Add("_tombstones", `null`, `null`)
	f.Add("x", `{"history":[null,{}],"seen":"yesterday"}`, `[]`)
	f.Fuzz(func(t *testing.T, key, value, tombstones string) {
		obj := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{key: value, keyTombstones: tombstones}}}
		state := ReadState(obj)
		written := state.clone().configMap("here", obj)
		again := ReadState(written)
		if again.Lost != "" {
			t.Fatalf("what was written cannot be read: %s", again.Lost)
		}
		for name, record := range state.Assets {
			if !record.equal(again.Assets[name]) {
				t.Errorf("the record %q was %+v and is %+v", name, record, again.Assets[name])
			}
		}
	})
}
