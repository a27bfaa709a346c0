package decide

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
)

// maxIgnored bounds the pointers of one object.
const maxIgnored = 200

// Masked is a desired object without what its user keeps to himself.
type Masked struct {
	Object *unstructured.Unstructured
	// Pointers are those in force, Problems what is wrong with the others.
	Pointers, Problems []string
	// released are the paths that the function must not own.
	released []fieldpath.Path
}

// unmaskable are the pointers that identify an object, or mark it as ours.
var unmaskable = [][]string{
	{"apiVersion"},
	{"kind"},
	{"status"},
	{"metadata", "name"},
	{"metadata", "namespace"},
	{"metadata", "managedFields"},
	{"metadata", "labels", catalog.LabelManaged},
}

// Mask leaves the fields that an annotation lists out of a desired object: live's
// values stay, whatever they are, and become nobody's or somebody else's. Inside of
// lists and maps that are atomic that cannot be; there live's value is copied, so that
// an apply changes nothing of it. A pointer that cannot be used is left aside.
func Mask(desired, live *unstructured.Unstructured, text string, a catalog.Asset) Masked {
	m := Masked{Object: desired.DeepCopy()}
	count := 0
	for _, item := range strings.Split(text, ",") {
		pointer := strings.TrimSpace(item)
		if pointer == "" {
			continue
		}
		if count++; count > maxIgnored {
			m.Problems = append(m.Problems, fmt.Sprintf("only the first %d pointers count", maxIgnored))
			break
		}
		tokens, err := maskable(pointer)
		if err != nil {
			m.Problems = append(m.Problems, err.Error())
			continue
		}
		w := masking{asset: a}
		value, keep, err := w.walk(runtime.DeepCopyJSONValue(m.Object.Object), live.Object, tokens, fieldpath.Path{}, "", false)
		if err == nil && keep {
			m.Object.Object, _ = value.(map[string]any)
			m.Pointers = append(m.Pointers, pointer)
			if w.released != nil {
				m.released = append(m.released, w.released)
			}
			continue
		}
		if err == nil {
			err = fmt.Errorf("cannot ignore %q: nothing would be left of the object", shorten(pointer))
		}
		m.Problems = append(m.Problems, err.Error())
	}
	slices.Sort(m.Pointers)
	return m
}

func maskable(pointer string) ([]string, error) {
	tokens, err := Tokens(pointer)
	if err != nil {
		return nil, err
	}
	if slices.Equal(tokens, []string{""}) || slices.Equal(tokens, []string{"metadata"}) || slices.Equal(tokens, []string{"metadata", "labels"}) {
		return nil, fmt.Errorf("cannot ignore %q as a whole: point to the fields in it", pointer)
	}
	for _, path := range unmaskable {
		if len(tokens) >= len(path) && slices.Equal(tokens[:len(path)], path) {
			return nil, fmt.Errorf("cannot ignore %q: it identifies the object or is not the baseline's", shorten(pointer))
		}
	}
	return tokens, nil
}

// masking is the way of one pointer through an object.
type masking struct {
	asset    catalog.Asset
	released fieldpath.Path
}

func nowhere(path fieldpath.Path, token string) error {
	return fmt.Errorf("cannot ignore %q below %q: the baseline sets nothing there", shorten(token), path.String())
}

// walk returns what is left of desired once the rest of a pointer is masked in it, and
// whether anything is. Within what is atomic, live's value takes its place.
func (m *masking) walk(desired, live any, tokens []string, path fieldpath.Path, dotted string, atomic bool) (any, bool, error) {
	if len(tokens) == 0 {
		if !atomic {
			m.released = path
			return nil, false, nil
		}
		if live == nil {
			return nil, false, nil
		}
		return runtime.DeepCopyJSONValue(live), true, nil
	}
	switch d := desired.(type) {
	case map[string]any:
		return m.field(d, live, tokens, path, dotted, atomic || slices.Contains(m.asset.Atomic, dotted))
	case []any:
		if keys := m.asset.ListKeys[dotted]; keys != nil && !atomic {
			return m.keyed(d, live, keys, tokens, path, dotted)
		}
		return m.item(d, live, tokens, path, dotted)
	}
	return nil, false, nowhere(path, tokens[0])
}

func (m *masking) field(desired map[string]any, live any, tokens []string, path fieldpath.Path, dotted string, atomic bool) (any, bool, error) {
	name := tokens[0]
	child, found := desired[name]
	if !found {
		return nil, false, nowhere(path, name)
	}
	theirs, _ := live.(map[string]any)
	next := name
	if dotted != "" {
		next = dotted + "." + name
	}
	value, keep, err := m.walk(child, theirs[name], tokens[1:], append(path.Copy(), fieldpath.PathElement{FieldName: &name}), next, atomic)
	if err != nil {
		return nil, false, err
	}
	if keep {
		desired[name] = value
		return desired, true, nil
	}
	delete(desired, name)
	if len(desired) > 0 || len(path) == 0 || atomic {
		return desired, true, nil
	}
	// A map of which nothing is left is not the baseline's either: applied empty it
	// would be made where it is absent.
	m.released = path
	return nil, false, nil
}

// keyed masks within a list that is a map by certain keys.
func (m *masking) keyed(desired []any, live any, keys, tokens []string, path fieldpath.Path, dotted string) (any, bool, error) {
	theirs, _ := live.([]any)
	like, err := m.chosen(tokens[0], keys, theirs, desired, path)
	if err != nil {
		return nil, false, err
	}
	at := findKeyed(desired, like, keys)
	if at < 0 {
		return nil, false, nowhere(path, tokens[0])
	}
	if len(tokens) > 1 && slices.Contains(keys, tokens[1]) {
		return nil, false, fmt.Errorf("cannot ignore the key %q of the list %s", tokens[1], path.String())
	}
	var other any
	if i := findKeyed(theirs, like, keys); i >= 0 {
		other = theirs[i]
	}
	element := fieldpath.PathElement{Key: fieldpath.KeyByFields(pairs(like, keys)...)}
	value, keep, err := m.walk(desired[at], other, tokens[1:], append(path.Copy(), element), dotted+"[]", false)
	if err != nil {
		return nil, false, err
	}
	if keep {
		desired[at] = value
		return desired, true, nil
	}
	if desired = slices.Delete(desired, at, at+1); len(desired) > 0 {
		return desired, true, nil
	}
	m.released = path
	return nil, false, nil
}

// chosen is the element of a keyed list that a token means: the n-th of live, or
// key=value, several of them with semicolons.
func (m *masking) chosen(token string, keys []string, live, desired []any, path fieldpath.Path) (map[string]any, error) {
	if i, ok := index(token); ok {
		if len(live) == 0 {
			live = desired
		}
		if i >= len(live) {
			return nil, nowhere(path, token)
		}
		element, ok := live[i].(map[string]any)
		if !ok {
			return nil, nowhere(path, token)
		}
		return element, nil
	}
	like := map[string]any{}
	for _, pair := range strings.Split(token, ";") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || !slices.Contains(keys, key) {
			return nil, fmt.Errorf("cannot ignore %q in the list %s: use an index, or %s=VALUE", shorten(token), path.String(), strings.Join(keys, "=VALUE;"))
		}
		like[key] = value
	}
	if len(like) != len(keys) {
		return nil, fmt.Errorf("cannot ignore %q in the list %s: give all keys, %s=VALUE", shorten(token), path.String(), strings.Join(keys, "=VALUE;"))
	}
	return like, nil
}

// item copies one element of an atomic list, or a part of it, from live.
func (m *masking) item(desired []any, live any, tokens []string, path fieldpath.Path, dotted string) (any, bool, error) {
	i, ok := index(tokens[0])
	if !ok {
		return nil, false, fmt.Errorf("cannot ignore %q in the list %s: use an index", shorten(tokens[0]), path.String())
	}
	theirs, _ := live.([]any)
	var other any
	if i < len(theirs) {
		other = theirs[i]
	}
	switch {
	case i < len(desired):
	case i == len(desired) && other != nil && len(tokens) == 1:
		return append(desired, runtime.DeepCopyJSONValue(other)), true, nil
	default:
		return nil, false, nowhere(path, tokens[0])
	}
	value, keep, err := m.walk(desired[i], other, tokens[1:], path, dotted+"[]", true)
	if err != nil {
		return nil, false, err
	}
	if keep {
		desired[i] = value
		return desired, true, nil
	}
	return slices.Delete(desired, i, i+1), true, nil
}

func pairs(element map[string]any, keys []string) []any {
	out := make([]any, 0, 2*len(keys))
	for _, key := range keys {
		out = append(out, key, element[key])
	}
	return out
}

func findKeyed(items []any, like map[string]any, keys []string) int {
	return slices.IndexFunc(items, func(item any) bool {
		fields, ok := item.(map[string]any)
		return ok && !slices.ContainsFunc(keys, func(key string) bool { return !equality.Semantic.DeepEqual(fields[key], like[key]) })
	})
}
