package decide

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// compare goes on with an asset that is wanted: what its user changes of it, and
// whether the live object is as it should be.
func (l *looker) compare(f Finding) Finding {
	rec := &f.Record
	if rec.resumed(f.Live) {
		rec.resume()
	}
	rec.settle(f.Live, l.now)
	if isPaused(f.Live) {
		if rec.Pause == nil {
			rec.Pause = &Pause{At: stamp(l.now), Reason: "annotation " + AnnotationPaused + " was set by hand", UID: string(f.Live.GetUID()), ByHand: true}
		}
		pause := *rec.Pause
		pause.Annotated = true
		rec.Pause = &pause
	}
	if f.Live == nil && rec.Pause != nil {
		return f.is(Paused, rec.Pause.Reason+"; to resume, create the object, or run kubectl slipway baseline resume "+f.Asset.Name)
	}
	if mode := annotation(f.Live, AnnotationMode); rec.Pause == nil {
		if mode == Unmanaged {
			rec.Patched, rec.Patch, rec.Ignored = 0, "", nil
			return f.is(OptedOut, "annotation "+AnnotationMode+" says so")
		}
		if mode != "" {
			rec.problem(ReasonInvalidMode, fmt.Sprintf("mode %q is unknown: use unmanaged", mode))
		}
	}
	if held := l.steer(&f); held != "" {
		return f.is(Failed, held)
	}
	if rec.Pause != nil && !isPaused(f.Live) {
		f.Entries, f.Continue = []plan.Entry{annotatePause(f)}, true
		return f.is(Paused, pauseMessage(rec.Pause))
	}
	return l.drift(f)
}

// annotation is one of an object, which need not be there.
func annotation(obj *unstructured.Unstructured, key string) string {
	if obj == nil {
		return ""
	}
	return obj.GetAnnotations()[key]
}

// problem notes what is wrong with an annotation.
func (r *Record) problem(reason, message string) {
	r.Problems = append(r.Problems, reason+": "+clip.Line(message, messageMax))
}

// namespace reads the object's namespace, for an object that is not there.
func (l *looker) namespace(f *Finding) *Finding {
	if !f.Asset.Resource().Namespaced {
		return nil
	}
	answer, known := l.need(plan.Need{Resource: kind.Namespaces, Name: f.Namespace})
	var end Finding
	switch {
	case !known:
		end = f.wait()
	case answer.Fault != nil:
		end = l.faulty(*f, answer.Fault)
	case answer.Object == nil || answer.Object.GetDeletionTimestamp() != nil:
		f.Record.UID, f.Record.Created = "", false
		end = f.is(NamespaceMissing, fmt.Sprintf("namespace %q is not there", f.Namespace))
	default:
		return nil
	}
	return &end
}

// apply is the write of the desired object.
func (f Finding) apply(reason string) plan.Entry {
	if f.Asset.RestartsNodes {
		reason += "; this restarts nodes"
	}
	return plan.Entry{Verb: plan.Apply, Resource: f.Asset.Resource(), Object: f.Desired, Base: f.Live, Reason: reason, Shared: true}
}

func annotatePause(f Finding) plan.Entry {
	obj := f.Live.DeepCopy()
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationPaused] = "true"
	obj.SetAnnotations(annotations)
	return plan.Entry{
		Verb: plan.Patch, Resource: f.Asset.Resource(), Object: obj, Base: f.Live, Manager: PauseManager,
		Reason: "paused: " + f.Record.Pause.Reason,
	}
}

func pauseMessage(p *Pause) string {
	message := p.Reason
	if p.Opponent != "" {
		message += ", by " + p.Opponent
	}
	return message + "; to resume, remove the annotation " + AnnotationPaused + ", to leave it alone, set " + AnnotationMode + "=" + Unmanaged
}

// steer applies the user's patch and mask to the desired object, marks it, and notes
// what is wrong. It returns why the object is not touched at all.
func (l *looker) steer(f *Finding) (held string) {
	rec := &f.Record
	if f.Live != nil {
		if held := l.patch(f, annotation(f.Live, AnnotationPatch)); held != "" {
			return held
		}
	} else {
		rec.Patched, rec.Patch = 0, ""
	}
	rec.Ignored = nil
	if text := annotation(f.Live, AnnotationIgnore); text != "" {
		m := Mask(f.Desired, f.Live, text, f.Asset)
		f.Desired, rec.Ignored, f.masked = m.Object, m.Pointers, m.released
		for _, problem := range m.Problems {
			rec.problem(ReasonInvalidIgnoreFields, problem)
		}
	}
	if f.Asset.Name == catalog.HCO {
		for _, problem := range l.view.Exclusions {
			rec.problem(ReasonInvalidExclusion, problem)
		}
	}
	if len(rec.Problems) > 0 {
		annotations := f.Desired.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[AnnotationProblem] = strings.Join(rec.Problems, "; ")
		f.Desired.SetAnnotations(annotations)
	}
	label(f.Desired)
	return ""
}

// patch applies a user's patch to the desired object. One that may not be leaves the
// baseline unpatched; in place of one that cannot be used the last valid one stays.
func (l *looker) patch(f *Finding, text string) (held string) {
	rec := &f.Record
	if strings.TrimSpace(text) == "" {
		rec.Patched, rec.Patch = 0, ""
		return ""
	}
	patched, n, err := Patched(f.Desired, text, l.in.Settings.PatchNodeKinds)
	if err == nil {
		f.Desired, rec.Patched, rec.Patch = patched, n, ""
		if len(text) <= maxKept {
			rec.Patch = text
		}
		return ""
	}
	rec.problem(ReasonInvalidPatch, err.Error())
	if isRefused(err) {
		rec.Patched, rec.Patch = 0, ""
		return ""
	}
	if rec.Patched > 0 {
		patched, n, again := Patched(f.Desired, rec.Patch, l.in.Settings.PatchNodeKinds)
		if rec.Patch == "" || again != nil {
			return "the patch cannot be used and the one before is not known any more, so nothing is written: " + err.Error()
		}
		f.Desired, rec.Patched = patched, n
	}
	return ""
}
