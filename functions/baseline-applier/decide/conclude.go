package decide

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Reasons of Kubernetes Events.
const (
	ReasonAssetApplied        = "AssetApplied"
	ReasonDriftDetected       = "DriftDetected"
	ReasonDriftCorrected      = "DriftCorrected"
	ReasonPatchApplied        = "PatchApplied"
	ReasonInvalidPatch        = "InvalidPatch"
	ReasonInvalidIgnoreFields = "InvalidIgnoreFields"
	ReasonInvalidMode         = "InvalidMode"
	ReasonInvalidExclusion    = "InvalidDisabledResources"
	ReasonUnknownAssets       = "UnknownAssets"
	ReasonUnmanagedMode       = "UnmanagedMode"
	ReasonThrottled           = "Throttled"
	ReasonThrashingDetected   = "ThrashingDetected"
	ReasonCRDMissing          = "CRDMissing"
	ReasonCRDDiscovered       = "CRDDiscovered"
	ReasonApplyFailed         = "ApplyFailed"
	ReasonRenderFailed        = "RenderFailed"
	ReasonReleased            = "AssetReleased"
	ReasonHardwareFailed      = "HardwareDetectionFailed"
	ReasonStateLost           = "RecordUnreadable"
	ReasonSucceeded           = "ReconcileSucceeded"
	ReasonTombstoneDeleted    = "TombstoneDeleted"
	ReasonTombstoneFailed     = "TombstoneFailed"
	ReasonTombstoneSkipped    = "TombstoneSkipped"
)

func isRefused(err error) bool { return errors.Is(err, ErrRefused) }

// Conclude is what there is to tell: Events for what has begun, ended or happened
// since the record before, metrics for what is.
func Conclude(now time.Time, in Input, known plan.Answers, outcomes plan.Outcomes) plan.Conclusion {
	if !Counts(in.HCO, in.Settings) {
		return plan.Conclusion{Class: plan.Done, Reason: "NotOurs", Message: "it is not the HyperConverged of the baseline"}
	}
	return Tell(in, Look(now, in, known), outcomes)
}

// Tell is Conclude with what a look has found out.
func Tell(in Input, view View, outcomes plan.Outcomes) plan.Conclusion {
	if view.Quiet {
		return plan.Conclusion{Class: plan.Done, Reason: "Quiet", Message: "nothing has changed that the baseline depends on"}
	}
	t := &telling{in: in, view: view, outcomes: outcomes, done: plan.Done}
	for i := range view.Findings {
		t.asset(&view.Findings[i])
	}
	for _, g := range view.Graves {
		t.grave(g)
	}
	t.record()
	t.platform()
	t.metrics()
	return t.conclusion()
}

// telling gathers what there is to tell.
type telling struct {
	in       Input
	view     View
	outcomes plan.Outcomes
	events   []plan.Event
	observed []plan.Observation
	done     plan.Class
	failed   []string
	// unrecorded is why the record could not be written; empty if it was.
	unrecorded string
}

func (t *telling) event(f *Finding, warning bool, reason, message string) {
	a := f.Asset
	e := plan.Event{
		Warning: warning, Reason: reason, Message: clip.Line(f.Record.Object+": "+message, messageMax),
		Key: a.Name + "/" + strconv.Itoa(f.Record.Revision), Action: reason + "/" + a.Name,
		Related: &plan.Reference{APIVersion: a.Resource().APIVersion(), Kind: a.Component, Namespace: f.Namespace, Name: a.Object},
	}
	if f.Live != nil {
		e.Related.APIVersion, e.Related.UID = f.Live.GetAPIVersion(), string(f.Live.GetUID())
	}
	t.events = append(t.events, e)
}

// asset tells of one asset.
func (t *telling) asset(f *Finding) {
	if f.Retry != "" {
		t.retry(f.Asset.Name, f.Retry)
		t.event(f, true, ReasonApplyFailed, "asset "+f.Asset.Name+" cannot be looked at now and is tried again")
		return
	}
	for _, outcome := range t.outcomes {
		if outcome.Fault == nil || !slices.ContainsFunc(f.Entries, func(e plan.Entry) bool { return e.String() == outcome.Entry.String() }) {
			continue
		}
		t.fault(f.Asset.Name, outcome.Fault)
		t.event(f, true, ReasonApplyFailed, "asset "+f.Asset.Name+" cannot be written: "+outcome.Fault.Message)
		f.Record.Outcome = Failed
	}
	if f.Record.Revision == f.Old.Revision {
		return
	}
	t.writes(f)
	t.outcome(f)
	t.customization(f)
}

func (t *telling) retry(name, why string) {
	t.done = plan.Retry
	t.failed = append(t.failed, name+": "+why)
}

func (t *telling) fault(name string, f *fault.Fault) {
	if f.Class == fault.Unavailable {
		t.retry(name, f.Error())
		return
	}
	t.failed = append(t.failed, name+": "+f.Error())
}

// record sees whether what was found out is written down: who waits for the record to say
// so must not wait for the next resync.
func (t *telling) record() {
	namespace, name := Memory(t.in.Settings)
	wrote, tried := t.outcomes.Of(Management, kind.ConfigMaps, namespace, name)
	if !tried || wrote.Fault == nil {
		return
	}
	t.unrecorded = "the record cannot be written: " + wrote.Fault.Error()
	if wrote.Fault.Class == fault.Unavailable {
		t.done = plan.Retry
	}
}

// writes tells of a write that was seen to be made.
func (t *telling) writes(f *Finding) {
	n, m := len(f.Record.Writes), len(f.Old.Writes)
	if n == 0 || m == 0 || !f.Record.Writes[n-1].Done || f.Old.Writes[m-1].Done || !f.Record.Writes[n-1].At.Equal(f.Old.Writes[m-1].At) {
		return
	}
	write := f.Record.Writes[n-1]
	if write.Base == absent {
		t.event(f, false, ReasonAssetApplied, "asset "+f.Asset.Name+" was made")
		return
	}
	t.event(f, true, ReasonDriftDetected, "it was not as the baseline wants it: "+strings.Join(write.Paths, ", "))
	t.event(f, false, ReasonAssetApplied, "asset "+f.Asset.Name+" was applied")
	t.event(f, false, ReasonDriftCorrected, "it is as the baseline wants it again")
}

// outcome tells of an outcome that is another than before.
func (t *telling) outcome(f *Finding) {
	old, now := f.Old, f.Record
	changed := old.Outcome != now.Outcome || old.Message != now.Message
	if old.Outcome == CRDMissing && now.Outcome != CRDMissing && now.Outcome != Inactive && now.Outcome != Excluded {
		t.event(f, false, ReasonCRDDiscovered, "definition "+f.Asset.Definition()+" is there now")
	}
	switch now.Outcome {
	case Throttled:
		if changed || old.Throttles != now.Throttles {
			t.drifted(f)
			t.event(f, true, ReasonThrottled, now.Message+"; it stays as it is until "+now.Next.Format(time.TimeOnly)+" UTC")
		}
	case Paused:
		t.paused(f)
	case Inactive, Excluded, NotApplicable:
		if len(f.Entries) > 0 {
			t.event(f, false, ReasonReleased, "asset "+f.Asset.Name+" is not wanted any more: "+f.Entries[0].Reason)
		}
	case OptedOut, CRDMissing, Rewritten, Failed:
		if changed {
			t.begins(f)
		}
	case InSync, Drifted, NamespaceMissing, Unknown:
	}
}

// begins tells of an outcome that lasts, once.
func (t *telling) begins(f *Finding) {
	now := f.Record
	switch now.Outcome {
	case OptedOut:
		t.event(f, false, ReasonUnmanagedMode, now.Message)
	case CRDMissing:
		t.event(f, true, ReasonCRDMissing, "asset "+f.Asset.Name+" waits for definition "+now.Missing)
	case Rewritten:
		t.drifted(f)
	default:
		reason := ReasonApplyFailed
		if f.RenderFailed {
			reason = ReasonRenderFailed
		}
		t.event(f, true, reason, "asset "+f.Asset.Name+": "+now.Message)
	}
}

func (t *telling) drifted(f *Finding) {
	texts := make([]string, 0, len(f.Record.Differs))
	for _, d := range f.Record.Differs {
		texts = append(texts, fmt.Sprintf("%s is %q instead of %q", d.Path, d.Have, d.Want))
	}
	t.event(f, true, ReasonDriftDetected, "it is not as the baseline wants it: "+strings.Join(texts, ", "))
}

// paused tells of an episode once: when the annotation is on the object, or at once
// where there is no object.
func (t *telling) paused(f *Finding) {
	old, now := f.Old.Pause, f.Record.Pause
	if now == nil || now.ByHand {
		return
	}
	begins := now.Deleted && old == nil || now.Annotated && (old == nil || !old.Annotated)
	if !begins {
		return
	}
	if now.Deleted {
		t.event(f, true, ReasonThrashingDetected, f.Record.Message)
	} else {
		t.event(f, true, ReasonThrashingDetected, pauseMessage(now))
	}
	t.observed = append(t.observed, plan.Observation{Metric: MetricThrashing, Labels: f.labels(), Value: 1})
}

func (t *telling) customization(f *Finding) {
	old, now := f.Old, f.Record
	if now.Patched > 0 && (old.Patched != now.Patched || old.Patch != now.Patch) {
		t.event(f, false, ReasonPatchApplied, fmt.Sprintf("%d operations of annotation %s are in force", now.Patched, AnnotationPatch))
	}
	for _, problem := range now.Problems {
		if reason, message, ok := strings.Cut(problem, ": "); ok && !slices.Contains(old.Problems, problem) {
			t.event(f, true, reason, message)
		}
	}
}

// grave tells of an object that must go.
func (t *telling) grave(g Grave) {
	e := plan.Event{
		Key: "tombstone/" + g.key() + "/" + strconv.Itoa(g.New.Revision), Action: "Tombstone/" + g.Object.GetName(),
		Related: &plan.Reference{APIVersion: g.Object.GetAPIVersion(), Kind: g.Object.GetKind(), Namespace: g.Object.GetNamespace(), Name: g.Object.GetName()},
	}
	status := g.New.Status
	for _, outcome := range t.outcomes {
		if outcome.Fault != nil && len(g.Entries) > 0 && g.Entries[0].String() == outcome.Entry.String() {
			status, g.New.Message = GraveFailed, outcome.Fault.Message
			t.fault(g.key(), outcome.Fault)
		}
	}
	changed := g.New.Status != g.Old.Status || g.New.Message != g.Old.Message
	switch {
	case status == GraveFailed && changed:
		e.Warning, e.Reason, e.Message = true, ReasonTombstoneFailed, g.key()+" must go and cannot be deleted: "+g.New.Message
	case status == GraveSkipped && changed:
		e.Warning, e.Reason, e.Message = true, ReasonTombstoneSkipped, g.key()+" must go and stays: "+g.New.Message
	case status == GraveDone && g.Old.Message == deleting && g.New.Message == "":
		e.Reason, e.Message = ReasonTombstoneDeleted, g.key()+" is deleted"
	}
	if e.Reason != "" {
		e.Message = clip.Line(e.Message, messageMax)
		t.events = append(t.events, e)
	}
	t.observed = append(t.observed, plan.Observation{
		Metric: MetricTombstone, Value: float64(status),
		Labels: []string{g.Object.GetKind(), g.Object.GetName(), g.Object.GetNamespace(), g.Resource.Group},
	})
}

// platform tells of the whole.
func (t *telling) platform() {
	warn := func(reason, message string) {
		t.events = append(t.events, plan.Event{Warning: true, Reason: reason, Message: clip.Line(message, messageMax), Key: reason + message, Action: reason})
	}
	if problem := t.view.State.Platform.Problem; problem != "" && problem != t.view.Old.Platform.Problem {
		warn(ReasonInvalidExclusion, problem+"; nothing is written until it can be read")
	}
	if names := t.view.State.Platform.Strangers; len(names) > 0 && !slices.Equal(names, t.view.Old.Platform.Strangers) {
		warn(ReasonUnknownAssets, "annotation "+AnnotationAutopilot+" names what is no asset: "+strings.Join(names, ", "))
	}
	if t.in.HardwareProblem != "" {
		warn(ReasonHardwareFailed, t.in.HardwareProblem)
	}
	if t.view.Old.Lost != "" {
		warn(ReasonStateLost, "the record in ConfigMap "+StateName+" cannot be read and begins anew: "+t.view.Old.Lost)
	}
	inSync, wanted := t.view.Count()
	if t.in.Part == "" || t.in.Part == PartHCO {
		if t.view.Changed && !t.view.Continue && len(t.failed) == 0 && t.view.State.Platform.Problem == "" && inSync == wanted && wanted > 0 {
			t.events = append(t.events, plan.Event{
				Reason: ReasonSucceeded, Message: fmt.Sprintf("%d/%d assets are applied", inSync, wanted), Action: ReasonSucceeded,
				Key: strconv.Itoa(t.view.State.Platform.Revision) + hash(t.view.State.Assets),
			})
		}
	}
}

// Count is how many of the assets that can be applied are.
func (v View) Count() (inSync, wanted int) {
	for _, f := range v.Findings {
		switch f.Record.Outcome {
		case InSync:
			inSync++
			wanted++
		case Drifted, Failed, Throttled, Paused, Rewritten, Unknown:
			wanted++
		case OptedOut, Excluded, Inactive, NotApplicable, CRDMissing, NamespaceMissing:
		}
	}
	return inSync, wanted
}

func (t *telling) conclusion() plan.Conclusion {
	inSync, wanted := t.view.Count()
	c := plan.Conclusion{
		Class: t.done, Reason: "Applied", Message: fmt.Sprintf("%d/%d assets are as they should be", inSync, wanted),
		Events: t.events, Observations: t.observed,
	}
	if inSync < wanted {
		c.Reason = "Incomplete"
	}
	if len(t.failed) > 0 {
		c.Reason = "Failed"
		c.Message = fmt.Sprintf("%d of %d assets failed: %s", len(t.failed), len(t.view.Findings), strings.Join(t.failed, "; "))
		c.Log = append(c.Log, c.Message)
	}
	if t.unrecorded != "" {
		c.Reason, c.Message = "Failed", t.unrecorded+"; "+c.Message
		c.Log = append(c.Log, t.unrecorded)
	}
	return c
}
