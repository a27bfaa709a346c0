package decide

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// is ends the look at an asset.
func (f Finding) is(outcome Outcome, message string) Finding {
	f.Record.Outcome, f.Record.Message = outcome, clip(message)
	if outcome != CRDMissing {
		f.Record.Missing = ""
	}
	return f
}

// later ends it with the wish to try again.
func (f Finding) later(why string) Finding {
	f.Retry, f.Record = why, f.Old
	return f
}

func (f Finding) wait() Finding {
	f.waits = true
	return f
}

// clip keeps a message within what an Event can hold.
func clip(message string) string {
	const most = 500
	if runes := []rune(message); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return message
}

// asset finds out about one asset.
func (l *looker) asset(a catalog.Asset) Finding {
	f := Finding{Asset: a, Namespace: a.NamespaceIn(l.in.Settings.HCONamespace), Old: l.state.Assets[a.Name]}
	f.Record = f.Old
	f.Record.Object = describe(a.Component, f.Namespace, a.Object)
	f.Record.Differs, f.Record.LeftOut, f.Record.Problems = nil, nil, nil
	f.Record.Writes, f.Record.Oppositions = slices.Clone(f.Old.Writes), slices.Clone(f.Old.Oppositions)
	if l.broken != "" {
		return f.is(Unknown, l.broken)
	}
	switch verdict, why := l.ctx.wanted(a); {
	case verdict == unknown:
		return f.is(Unknown, "the hardware of the nodes cannot be seen")
	case verdict == fails:
		return l.leave(f, Inactive, why)
	case excluded(l.rules, a.Component, f.Namespace, a.Object):
		return l.leave(f, Excluded, "annotation "+AnnotationDisabled+" of the HyperConverged excludes it")
	case a.HardwareSpecific && l.in.Hardware == nil:
		return f.is(Unknown, "the hardware of the nodes cannot be seen")
	}
	live, ok := l.live(&f)
	if !ok {
		return f
	}
	f.Live = live
	schema, next := l.definition(&f)
	if next != nil {
		return *next
	}
	desired, err := l.render(&f, schema)
	switch {
	case f.waits || f.Retry != "":
		return f
	case err != nil:
		f.RenderFailed = true
		return f.is(Failed, err.Error())
	case desired == nil:
		return l.leave(f, NotApplicable, "nothing of it applies here")
	}
	f.Desired = desired
	return l.compare(f)
}

// live reads the asset's object. Not ok: the finding is complete, or waits.
func (l *looker) live(f *Finding) (*unstructured.Unstructured, bool) {
	if f.Asset.Name == catalog.HCO {
		return l.in.HCO, true
	}
	answer, known := l.need(plan.Need{Resource: f.Asset.Resource(), Namespace: f.Namespace, Name: f.Asset.Object})
	switch {
	case !known:
		f.waits = true
		return nil, false
	case answer.Fault != nil && answer.Fault.Class != fault.NotServed:
		*f = l.faulty(*f, answer.Fault)
		return nil, false
	}
	return answer.Object, true
}

// faulty ends the look at an asset with what an API server did not do. What may work
// later leaves the record as it is: an outage is no news of the asset.
func (l *looker) faulty(f Finding, why *fault.Fault) Finding {
	if why.Class == fault.Unavailable || why.Class == fault.Conflict {
		return f.later(why.Error())
	}
	return f.is(Failed, why.Message)
}

// definition reads the definition of the asset's kind, where it matters: for an
// object that is not there, and for assets that look into it. next is set when the
// look ends here.
func (l *looker) definition(f *Finding) (schema *unstructured.Unstructured, next *Finding) {
	a := f.Asset
	if a.Name == catalog.HCO || f.Live != nil && !a.NeedsSchema {
		return nil, nil
	}
	res := kinds.Definitions
	if a.NeedsSchema {
		res = kinds.Schemas
	}
	answer, known := l.need(plan.Need{Resource: res, Name: a.Definition()})
	var end Finding
	switch {
	case !known:
		end = f.wait()
	case answer.Fault != nil:
		end = l.faulty(*f, answer.Fault)
		if end.Retry == "" {
			end = end.is(Unknown, "its definition cannot be read: "+answer.Fault.Message)
		}
	case !Installed(answer.Object, a.Resource().Versions[0]):
		f.Record.Missing, f.Record.UID, f.Record.Created = a.Definition(), "", false
		end = f.is(CRDMissing, "the cluster does not have "+a.Definition()+" in version "+a.Resource().Versions[0])
	default:
		return answer.Object, nil
	}
	return nil, &end
}

// Installed reports whether a definition is in use: established, here to stay, and
// served in a version.
func Installed(crd *unstructured.Unstructured, version string) bool {
	if crd == nil || crd.GetDeletionTimestamp() != nil {
		return false
	}
	established := false
	for _, c := range items(crd, "status", "conditions") {
		if c["type"] == "Terminating" && c["status"] == "True" {
			return false
		}
		established = established || c["type"] == "Established" && c["status"] == "True"
	}
	return established && slices.ContainsFunc(items(crd, "spec", "versions"), func(v map[string]any) bool {
		return v["name"] == version && v["served"] == true
	})
}

func items(obj *unstructured.Unstructured, path ...string) []map[string]any {
	if obj == nil {
		return nil
	}
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	list, _ := value.([]any)
	out := make([]map[string]any, 0, len(list))
	for _, item := range list {
		if fields, ok := item.(map[string]any); ok {
			out = append(out, fields)
		}
	}
	return out
}

// render makes the object, without the optional fields that the definition lacks.
func (l *looker) render(f *Finding, schema *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	facts := l.facts()
	if f.Asset.NeedsSchema {
		descheduler, ok := l.descheduler(f, schema)
		if !ok {
			return nil, nil
		}
		facts["descheduler"] = descheduler
	}
	desired, err := f.Asset.Render(facts)
	if err != nil || desired == nil {
		return nil, err
	}
	if schema != nil {
		for _, path := range f.Asset.OptionalFields {
			fields := strings.Split(path, ".")
			if _, found, _ := unstructured.NestedFieldNoCopy(desired.Object, fields...); found && !Declared(schema, f.Asset.Resource().Versions[0], fields) {
				unstructured.RemoveNestedField(desired.Object, fields...)
				dropEmpty(desired.Object, fields[:len(fields)-1])
				f.Record.LeftOut = append(f.Record.LeftOut, path)
			}
		}
	}
	return desired, nil
}

func dropEmpty(obj map[string]any, path []string) {
	if len(path) < 2 {
		return
	}
	value, _, _ := unstructured.NestedFieldNoCopy(obj, path...)
	if fields, ok := value.(map[string]any); ok && len(fields) == 0 {
		unstructured.RemoveNestedField(obj, path...)
	}
}

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
	r.Problems = append(r.Problems, reason+": "+clip(message))
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

// drift tries what an apply would do, and decides what to do about it.
func (l *looker) drift(f Finding) Finding {
	rec := &f.Record
	if f.Live == nil {
		if end := l.namespace(&f); end != nil {
			return *end
		}
	}
	if rec.Pause == nil && f.Live != nil {
		if base, changed := without(f.Live, f.masked); changed {
			f.Entries = []plan.Entry{{
				Verb: plan.Patch, Resource: f.Asset.Resource(), Object: base, Base: f.Live,
				Reason: "fields that are to be ignored are not owned any more: " + strings.Join(rec.Ignored, ", "),
			}}
			f.Continue = true
			return f.is(Drifted, "fields that are to be ignored are given up")
		}
	}
	try := f.apply("try")
	answer, known := l.need(plan.Need{DryRun: &try})
	switch {
	case !known:
		return f.wait()
	case answer.Fault != nil:
		return l.faulty(f, answer.Fault)
	}
	f.Would = answer.Object
	if f.Live == nil {
		return l.correct(f, nil, rec.UID != "" && rec.Desired == hash(f.Desired.Object))
	}
	differs := slices.DeleteFunc(Differences(f.Would, f.Live, f.Asset), func(d Difference) bool { return under(d.owner, f.masked) })
	rec.Differs = differs[:min(len(differs), maxDifferences)]
	switch {
	case rec.Pause != nil:
		return f.is(Paused, pauseMessage(rec.Pause))
	case len(differs) == 0:
		return f.inSync()
	}
	steady := rec.Desired == hash(f.Desired.Object)
	if steady && rec.UID == string(f.Live.GetUID()) && !rec.pending(f.Live) && ownsAll(f.Live, differs) {
		return f.is(Rewritten, "the API itself changes what the baseline sets; nothing is written")
	}
	return l.correct(f, differs, steady && rec.UID != "")
}

// inSync ends with an object that is as it should be. It is applied all the same when
// something else is wanted than before, or nothing of it is owned: so that a field
// that is left out one day really goes.
func (f Finding) inSync() Finding {
	rec := &f.Record
	uid := string(f.Live.GetUID())
	if rec.UID != uid {
		n := len(rec.Writes)
		rec.Created = n > 0 && rec.Writes[n-1].Base == absent && created(f.Live)
	}
	if _, owns := ours(f.Live); !owns || rec.Desired != "" && rec.Desired != hash(f.Desired.Object) {
		f.Entries = []plan.Entry{f.apply("it is as it should be; what the baseline sets of it becomes the baseline's own")}
	}
	rec.Desired, rec.UID, rec.Next = hash(f.Desired.Object), uid, nil
	rec.Result = Projection(f.Live)
	return f.is(InSync, "")
}

// correct lets the gate decide about a drift.
func (l *looker) correct(f Finding, differs []Difference, opposed bool) Finding {
	rec := &f.Record
	decision := rec.gate(l.now, l.in.Settings, change{live: f.Live, paths: differs, opposed: opposed})
	switch {
	case decision.paused != "":
		if f.Live != nil {
			f.Entries, f.Continue = []plan.Entry{annotatePause(f)}, true
			return f.is(Paused, pauseMessage(rec.Pause))
		}
		return f.is(Paused, decision.paused+"; to resume, create the object, or run kubectl slipway baseline resume "+f.Asset.Name)
	case decision.throttled:
		s := l.in.Settings
		return f.is(Throttled, fmt.Sprintf("it was written %d times within %s, which is the limit", s.Capacity, s.Window))
	}
	rec.Desired = hash(f.Desired.Object)
	reason := "the object is not there"
	if f.Live != nil {
		reason = "it differs at " + strings.Join(pathsOf(differs), ", ")
	}
	f.Entries, f.Continue = []plan.Entry{f.apply(reason)}, true
	return f.is(Drifted, reason)
}

func under(path fieldpath.Path, masked []fieldpath.Path) bool {
	return slices.ContainsFunc(masked, func(m fieldpath.Path) bool { return len(path) >= len(m) && path[:len(m)].Equals(m) })
}

func ownsAll(live *unstructured.Unstructured, differs []Difference) bool {
	set, _ := ours(live)
	return !slices.ContainsFunc(differs, func(d Difference) bool { return !holdsPath(set, d.owner) })
}

// leave ends with an asset that is not wanted. An object that carries the baseline's
// label gets what the catalog says: so none keeps it that nobody looks after.
func (l *looker) leave(f Finding, outcome Outcome, why string) Finding {
	rec := &f.Record
	live, ok := l.live(&f)
	if !ok {
		return f
	}
	f.Live = live
	rec.resume()
	rec.Patched, rec.Patch, rec.Ignored = 0, "", nil
	f = f.is(outcome, why)
	if live == nil || live.GetLabels()[catalog.LabelManaged] != catalog.Manager {
		f.Record.UID, f.Record.Created, f.Record.Result = "", false, ""
		return f
	}
	switch {
	case isPaused(live) || live.GetAnnotations()[AnnotationMode] == Unmanaged:
		return f.is(outcome, why+"; the object keeps its label, since its user wants it left alone")
	case f.Asset.OnLeave == catalog.Stay:
		return f.is(outcome, why+"; the object stays with its label")
	case f.Asset.OnLeave == catalog.Delete && outcome != Excluded && f.Record.Created && f.Record.UID == string(live.GetUID()):
		if live.GetDeletionTimestamp() != nil {
			return f
		}
		f.Entries = []plan.Entry{{Verb: plan.Delete, Resource: f.Asset.Resource(), Base: live, Reason: "the baseline made it, and nobody wants it any more: " + why}}
	default:
		f.Entries = []plan.Entry{{
			Verb: plan.Patch, Resource: f.Asset.Resource(), Object: released(live), Base: live,
			Reason: "the baseline lets go of it, and leaves its values: " + why,
		}}
	}
	f.Continue = true
	return f
}
