package decide

import (
	"fmt"
	"time"

	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Reasons of Kubernetes Events.
const (
	reasonInvalidSpec  = v1alpha3.ReasonInvalidSpec
	reasonNameConflict = v1alpha3.ReasonNameConflict
	reasonWaiting      = v1alpha3.ReasonWaitingForDataVolume
	reasonError        = v1alpha3.ReasonErrorReconciling

	reasonImportStarted = "ImportStarted"
	reasonImportFailed  = "ImportFailed"
	reasonImageReady    = "ImageReady"
	reasonImageRemoved  = "ImageRemoved"
)

// Stages of a plan, in their order.
const (
	stageLeave   = "image that is left"
	stageObjects = "image, rights and data source"
	stagePrune   = "superseded images"
)

// view is the world of one Release.
type view struct {
	in Input
	wish
	// idle: the Release asks for nothing.
	idle bool
	// image is the one that the Release asks for; nil while it is not there. name
	// is what it is called; empty if it cannot be.
	image    *unstructured.Unstructured
	name     string
	problems []problem
	plan     plan.Plan
}

// Decide says what has to be written for a Release.
func Decide(_ time.Time, in Input, known plan.Answers) plan.Decision {
	v := look(in)
	doomed, needs := v.doomed(known)
	if len(needs) > 0 {
		return plan.Decision{Needs: needs}
	}
	v.plan.Add(stagePrune, doomed...)
	d := plan.Decision{Plan: v.plan}
	for _, p := range v.problems {
		d.Reasons = append(d.Reasons, p.message)
	}
	return d
}

// look works out everything but what may be removed.
func look(in Input) *view {
	v := &view{in: in}
	asked, p, ok := wishOf(in.Release)
	v.wish, v.idle = asked, !ok || p != nil
	if p != nil {
		v.problems = append(v.problems, *p)
	}
	if v.idle {
		return v
	}
	v.choose()
	var entries []plan.Entry
	entries = append(entries, v.importImage()...)
	entries = append(entries, v.rights()...)
	source, leave := v.dataSource()
	v.plan.Add(stageLeave, leave...)
	v.plan.Add(stageObjects, append(entries, source...)...)
	return v
}

func (v *view) found(p *problem) {
	if p != nil {
		v.problems = append(v.problems, *p)
	}
}

// conflict says that an object's name is taken by somebody else.
func (v *view) conflict(res kind.Resource, name string) {
	v.found(&problem{
		reason:  reasonNameConflict,
		message: fmt.Sprintf("%s %s belongs to somebody else and is left alone: rename it or the Release", res.Kind, name),
	})
}

// ours tells whether an object belongs to the Release: by owner reference, or
// because nobody owns it and it is what upstream would have written.
func (v *view) ours(obj *unstructured.Unstructured, asUpstream bool) bool {
	return dockyards.OwnedBy(obj, v.in.Release) || (len(obj.GetOwnerReferences()) == 0 && asUpstream)
}

// labelled tells whether an object's label names the Release.
func (v *view) labelled(obj *unstructured.Unstructured) bool {
	return obj.GetLabels()[v1alpha3.LabelReleaseName] == v.in.Release.GetName()
}

// adopt adds the owner reference to an object. One of another controller of the
// same object stays.
func (v *view) adopt(obj *unstructured.Unstructured) {
	if !dockyards.OwnedBy(obj, v.in.Release) {
		dockyards.SetOwner(obj, dockyards.Reference(dockyards.Releases, v.in.Release))
	}
}

// label adds the Release's label where there is none.
func (v *view) label(obj *unstructured.Unstructured) {
	if _, has := obj.GetLabels()[v1alpha3.LabelReleaseName]; !has {
		dockyards.SetLabels(obj, map[string]string{v1alpha3.LabelReleaseName: v.in.Release.GetName()})
	}
}

// create is the entry that makes an object.
func (v *view) create(res kind.Resource, typed any, reason string) plan.Entry {
	obj, err := plan.Object(res, typed)
	if err != nil {
		panic(err) // structs of the projects' own types always convert
	}
	unstructured.RemoveNestedField(obj.Object, "status") // zero structs that say nothing
	obj.SetNamespace(v.in.Release.GetNamespace())
	v.adopt(obj)
	return plan.Entry{Verb: plan.Create, Resource: res, Object: obj, Reason: reason}
}

// patch is the entry that changes an object, if it does.
func patch(res kind.Resource, base, object *unstructured.Unstructured, reason string) []plan.Entry {
	if equal(base.Object, object.Object) {
		return nil
	}
	return []plan.Entry{{Verb: plan.Patch, Resource: res, Base: base, Object: object, Reason: reason}}
}

func (v *view) succeeded() bool {
	return v.image != nil && !dockyards.Going(v.image) && phase(v.image) == string(cdiv1.Succeeded)
}

func phase(image *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(image.Object, "status", "phase")
	return text
}
