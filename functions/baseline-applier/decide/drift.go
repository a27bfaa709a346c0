package decide

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/shared/plan"
)

// maxVain is how often a write is repeated that has no effect; then it is tried again
// after BASELINE_SLOW_WINDOW only.
const maxVain = 2

// drift tries what an apply would do, and decides what to do about it.
func (l *looker) drift(f Finding) Finding {
	rec := &f.Record
	if f.Live == nil {
		if end := l.namespace(&f); end != nil {
			return *end
		}
	}
	if end := f.giveUp(); end != nil {
		return *end
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
	return l.differing(f, differs)
}

// differing goes on with an object that is not as it should be, told by whom: only what
// somebody else has changed is opposed.
func (l *looker) differing(f Finding, differs []Difference) Finding {
	rec := &f.Record
	steady := rec.Desired == hash(f.Desired.Object)
	if !steady || !ownsAll(f.Live, differs) {
		rec.Vain = 0
		return l.correct(f, differs, steady && rec.UID != "")
	}
	// What differs is the function's own: nobody has changed it since it was written.
	// The write may not have been made, so it is made again, but not for ever.
	if n := len(rec.Writes); rec.Vain >= maxVain && n > 0 && l.now.Sub(rec.Writes[n-1].At) < l.in.Settings.SlowWindow {
		rec.Writes[n-1].Done = true
		return f.is(Rewritten, "the API itself changes what the baseline sets, at "+strings.Join(pathsOf(differs), ", ")+"; nothing is written")
	}
	end := l.correct(f, differs, false)
	if end.Record.Outcome == Drifted {
		end.Record.Vain = min(end.Record.Vain+1, maxVain)
	}
	return end
}

// giveUp takes back the ownership of fields that are to be ignored, before anything is
// applied without them: else the server would take the fields away.
func (f Finding) giveUp() *Finding {
	if f.Record.Pause != nil || f.Live == nil {
		return nil
	}
	base, changed := without(f.Live, f.masked)
	if !changed {
		return nil
	}
	f.Entries = []plan.Entry{{
		Verb: plan.Patch, Resource: f.Asset.Resource(), Object: base, Base: f.Live,
		Reason: "fields that are to be ignored are not owned any more: " + strings.Join(f.Record.Ignored, ", "),
	}}
	f.Continue = true
	end := f.is(Drifted, "fields that are to be ignored are given up")
	return &end
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
	rec.Desired, rec.UID, rec.Next, rec.Vain = hash(f.Desired.Object), uid, nil, 0
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
