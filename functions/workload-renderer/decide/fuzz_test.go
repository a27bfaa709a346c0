package decide

import (
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/shared/render"
)

// FuzzInventory: deletions follow from the annotation, so only the very text that was
// written is believed, and it never names a kind that is not allowed.
func FuzzInventory(f *testing.F) {
	for _, seed := range []string{
		"", "[]", `[{"g":"","k":"ConfigMap","n":"a","u":""}]`, `[{"g":"","k":"ConfigMap","n":"a","u":"-"},{"g":"","k":"ConfigMap","n":"b","u":"x"}]`,
		`[{"g":"","k":"Node","n":"a","u":"","c":true}]`, `[{"g":"","k":"ConfigMap","n":"a","u":"","x":1}]`, `[{"g":"","k":"ConfigMap","n":"a","u":""}] []`,
		`[{"g":"","k":"ConfigMap","n":"a<","u":""}]`,
	} {
		f.Add(seed)
	}
	allowed := render.DefaultAllowed()
	f.Fuzz(func(t *testing.T, text string) {
		i, problem := parseInventory(text, allowed)
		if problem != "" {
			if len(i) > 0 {
				t.Errorf("%q is no inventory, and %v was read from it", text, i)
			}
			if len(problem) > 200 || strings.ContainsAny(problem, "\n\x00") {
				t.Errorf("the problem is told as %q", problem)
			}
			return
		}
		if text != "" && i.text() != text {
			t.Errorf("%q was read as %q", text, i.text())
		}
		for _, entry := range i {
			if res, known := render.Find(allowed, entry.Group, entry.Kind); !known || entry.Cluster == res.Namespaced {
				t.Errorf("%q names %v", text, entry)
			}
		}
	})
}
