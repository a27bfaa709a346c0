package decide

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/render"
)

// inventoryMax is how many entries an inventory may have: what a template gives, and
// what it gave before and is not gone yet.
const inventoryMax = 256

// item is one object of an inventory, in the Workload's namespace unless its kind has
// none. The order of the fields is that of the text.
type item struct {
	Group string `json:"g"`
	Kind  string `json:"k"`
	Name  string `json:"n"`
	// UID is empty for an object that was about to be made, and forgotten for one that
	// was about to be made and is wanted no more.
	UID string `json:"u"`
	// Cluster tells that the kind has no namespace.
	Cluster bool `json:"c,omitempty"`
}

// forgotten stands for the UID of an object that nobody has seen, and nobody wants any
// more. Another copy of the function may be making it right now: once this is written,
// that copy takes it back; and what it made before is seen by whoever looks after this
// is written. Only then the entry goes.
const forgotten = "-"

// known tells whether the UID is an object's.
func (a item) known() bool { return a.UID != "" && a.UID != forgotten }

// inventory is what was applied for a Workload, by kind and name. It is written
// before anything is applied, so that nothing is ever forgotten, and again when the
// UIDs are known.
type inventory []item

func (a item) compare(b item) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}

func newItem(res kind.Resource, name, uid string) item {
	return item{Group: res.Group, Kind: res.Kind, Name: name, UID: uid, Cluster: !res.Namespaced}
}

// find is the entry of an object.
func (i inventory) find(res kind.Resource, name string) (item, bool) {
	at := slices.IndexFunc(i, func(entry item) bool { return entry.compare(newItem(res, name, "")) == 0 })
	if at < 0 {
		return item{}, false
	}
	return i[at], true
}

// text is the canonical text: sorted, without spaces.
func (i inventory) text() string {
	list := slices.SortedFunc(slices.Values(i), item.compare)
	if list == nil {
		list = []item{}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(list); err != nil {
		panic(err) // strings always encode
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// parseInventory reads an inventory strictly: deletions follow from it. problem says
// why it cannot be used; no text is no problem.
func parseInventory(text string, allowed []kind.Resource) (i inventory, problem string) {
	if text == "" {
		return nil, ""
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&i); err != nil {
		return nil, "it is not the text that was written"
	}
	for at, entry := range i {
		res, known := render.Find(allowed, entry.Group, entry.Kind)
		if !known || entry.Cluster == res.Namespaced {
			return nil, fmt.Sprintf("it names a %s, which is not allowed", clip.Line(entry.Kind, 80))
		}
		if entry.Name == "" || (at > 0 && i[at-1].compare(entry) >= 0) {
			return nil, "it is not the text that was written"
		}
	}
	if len(i) > inventoryMax || i.text() != text {
		return nil, "it is not the text that was written"
	}
	return i, ""
}

// Intends tells whether a Workload's inventory names an object as wanted.
func Intends(workload *unstructured.Unstructured, allowed []kind.Resource, res kind.Resource, name string) bool {
	i, problem := parseInventory(workload.GetAnnotations()[AnnotationInventory], allowed)
	entry, recorded := i.find(res, name)
	return problem != "" || (recorded && entry.UID != forgotten)
}

// Records tells whether a Workload's inventory names an object.
func Records(workload *unstructured.Unstructured, allowed []kind.Resource, res kind.Resource, name string) bool {
	i, _ := parseInventory(workload.GetAnnotations()[AnnotationInventory], allowed)
	_, recorded := i.find(res, name)
	return recorded
}
