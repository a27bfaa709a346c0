package decide

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
)

// Difference is one value that is not as the baseline wants it.
type Difference struct {
	Path string `json:"path"`
	Want string `json:"want,omitempty"`
	Have string `json:"have,omitempty"`

	owner fieldpath.Path
}

// maxDifferences are told of one object.
const maxDifferences = 20

// reduced is what counts of an object: its name, labels, annotations and everything
// but the status.
func reduced(obj *unstructured.Unstructured) map[string]any {
	out := maps.Clone(obj.Object)
	delete(out, "status")
	metadata, _ := obj.Object["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, field := range []string{"name", "namespace", "labels", "annotations"} {
		if value, found := metadata[field]; found {
			kept[field] = value
		}
	}
	out["metadata"] = kept
	return out
}

// Differences are those between what an apply would make of an object and what it is.
func Differences(would, live *unstructured.Unstructured, a catalog.Asset) []Difference {
	d := differ{listKeys: a.ListKeys, atomic: a.Atomic}
	d.value(reduced(would), reduced(live), nil, fieldpath.Path{}, "")
	slices.SortFunc(d.found, func(a, b Difference) int { return compareText(a.Path, b.Path) })
	return d.found
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

type differ struct {
	listKeys map[string][]string
	atomic   []string
	found    []Difference
}

func (d *differ) value(want, have any, tokens []string, owner fieldpath.Path, dotted string) {
	a, isMap := want.(map[string]any)
	b, bothMaps := have.(map[string]any)
	if isMap && (bothMaps || have == nil) && len(a)+len(b) > 0 && !slices.Contains(d.atomic, dotted) {
		names := slices.Sorted(maps.Keys(a))
		for name := range b {
			if _, found := a[name]; !found {
				names = append(names, name)
			}
		}
		for _, name := range names {
			next := name
			if dotted != "" {
				next = dotted + "." + name
			}
			d.value(a[name], b[name], append(slices.Clone(tokens), name), append(owner.Copy(), fieldpath.PathElement{FieldName: &name}), next)
		}
		return
	}
	if keys := d.listKeys[dotted]; keys != nil {
		d.keyed(want, have, keys, tokens, owner, dotted)
		return
	}
	if same(want, have) {
		return
	}
	d.found = append(d.found, Difference{Path: Pointer(tokens), Want: show(want), Have: show(have), owner: owner})
}

func (d *differ) keyed(want, have any, keys, tokens []string, owner fieldpath.Path, dotted string) {
	a, _ := want.([]any)
	b, _ := have.([]any)
	element := func(item any) (map[string]any, fieldpath.Path, []string) {
		fields, _ := item.(map[string]any)
		name := ""
		for i, key := range keys {
			if i > 0 {
				name += ";"
			}
			name += fmt.Sprintf("%s=%v", key, fields[key])
		}
		path := append(owner.Copy(), fieldpath.PathElement{Key: fieldpath.KeyByFields(pairs(fields, keys)...)})
		return fields, path, append(slices.Clone(tokens), name)
	}
	for _, item := range a {
		fields, path, at := element(item)
		var other any
		if i := findKeyed(b, fields, keys); i >= 0 {
			other = b[i]
		}
		d.value(item, other, at, path, dotted+"[]")
	}
	for _, item := range b {
		fields, path, at := element(item)
		if findKeyed(a, fields, keys) < 0 {
			d.found = append(d.found, Difference{Path: Pointer(at), Have: show(item), owner: path})
		}
	}
}

// same compares two values; what is not there is the same as null.
func same(a, b any) bool {
	return reflect.DeepEqual(normal(a), normal(b))
}

// normal brings the numbers that JSON and Go spell differently to one type.
func normal(value any) any {
	switch v := value.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			out[key] = normal(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = normal(child)
		}
		return out
	}
	return value
}

func show(value any) string {
	if value == nil {
		return ""
	}
	if text, ok := value.(string); ok {
		return shorten(text)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return shorten(string(text))
}

// hash names a value, by its JSON.
func hash(value any) string {
	// Objects that were read or built from JSON encode, with sorted keys.
	text, _ := json.Marshal(normal(value))
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:10])
}

// Projection names what counts of an object.
func Projection(obj *unstructured.Unstructured) string { return hash(reduced(obj)) }
