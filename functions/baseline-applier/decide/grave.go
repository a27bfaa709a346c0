package decide

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// What became of an object that must go.
const (
	GraveDone    = 0
	GraveHeld    = 1
	GraveFailed  = -1
	GraveSkipped = -2
	// deleting is the message of a tombstone whose object was told to go.
	deleting = "it is deleted"
)

// Grave is what was found out about an object that must go.
type Grave struct {
	Object   *unstructured.Unstructured
	Resource kind.Resource
	Old, New Tombstone
	Entries  []plan.Entry
}

func (g Grave) key() string {
	return describe(g.Object.GetKind(), g.Object.GetNamespace(), g.Object.GetName())
}

// graves looks at what older catalogs made and must go.
func (l *looker) graves() {
	for _, obj := range l.in.Catalog.Buried() {
		res, _ := kinds.Of(obj.GetAPIVersion(), obj.GetKind())
		g := Grave{Object: obj, Resource: res}
		g.Old = l.state.Tombstones[g.key()]
		answer, known := l.need(plan.Need{Resource: res, Namespace: obj.GetNamespace(), Name: obj.GetName()})
		if !known {
			continue
		}
		g.New = l.grave(&g, answer)
		l.view.Graves = append(l.view.Graves, g)
	}
}

func (l *looker) grave(g *Grave, answer plan.Answer) Tombstone {
	live := answer.Object
	switch {
	case answer.Fault != nil && answer.Fault.Class != fault.NotServed:
		return Tombstone{Status: GraveFailed, Message: answer.Fault.Cause()}
	case live == nil:
		return Tombstone{Status: GraveDone}
	case live.GetLabels()[catalog.LabelManaged] != catalog.Manager:
		return Tombstone{Status: GraveSkipped, Message: "it does not carry the label " + catalog.LabelManaged + ": somebody else's, or made so"}
	case live.GetDeletionTimestamp() != nil:
		return Tombstone{Status: GraveHeld, Message: "a finalizer holds it"}
	case l.broken != "":
		return Tombstone{Status: GraveFailed, Message: l.broken}
	}
	g.Entries = []plan.Entry{{Verb: plan.Delete, Resource: g.Resource, Base: live, Reason: "an older baseline made it, and it must go"}}
	return Tombstone{Status: GraveDone, Message: deleting}
}
