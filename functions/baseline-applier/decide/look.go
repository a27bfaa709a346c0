package decide

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Finding is what was found out about one asset.
type Finding struct {
	Asset     catalog.Asset
	Namespace string
	// Old is the record as it was, Record as it shall be.
	Old, Record Record
	// Live is the object as it is, Desired what is applied, Would what an apply makes
	// of it. Each may be missing.
	Live, Desired, Would *unstructured.Unstructured
	// Entries are the writes that follow, Continue whether it has to be looked at
	// again after them.
	Entries  []plan.Entry
	Continue bool
	// Retry is why it has to be tried again; the record stays as it is then.
	Retry string
	// RenderFailed tells a failure of the catalog from one of the API.
	RenderFailed bool
	// masked are the paths that the function must not own.
	masked []fieldpath.Path
	// waits tells that something was asked for that is not known yet.
	waits bool
}

// View is what was found out about all that was looked at.
type View struct {
	Findings []Finding
	Graves   []Grave
	// Needs are what has to be known first; nothing else counts then.
	Needs []plan.Need
	// Old is the memory as it was, State as it shall be, Changed whether they differ.
	Old, State State
	Changed    bool
	// Continue asks for another look after the writes.
	Continue bool
	// Quiet: nothing has changed that anybody depends on.
	Quiet bool
	// Exclusions are the rules that could not be used, Strangers the names in the list
	// of what may be looked after that nothing has.
	Exclusions, Strangers []string
}

// looker looks at assets one after the other.
type looker struct {
	now   time.Time
	in    Input
	known plan.Answers
	ctx   context
	rules []Rule
	// allowed are the assets that may be looked after.
	allowed allowed
	// broken is why nothing may be written at all.
	broken string
	state  State
	view   View
}

// Look finds out about the assets that an input is about. It is asked again with more
// answers as long as it has needs.
func Look(now time.Time, in Input, known plan.Answers) View {
	l := &looker{now: now, in: in, known: known, ctx: context{hco: in.HCO, hardware: in.Hardware}, state: ReadState(in.Memory)}
	l.view.Old = l.state
	if in.Part == PartHCO {
		if l.state.Quiet(l.in.HCO, now) {
			l.view.Quiet, l.view.State = true, l.state
			return l.view
		}
		l.in.Part = ""
	}
	l.exclusions()
	l.allowed, l.view.Strangers = allowedBy(l.in.HCO.GetAnnotations(), in.Catalog)
	if l.in.Whole() && !l.allowed.idle {
		l.graves()
	}
	assets := Selected(in.Catalog, l.in.Part)
	for _, a := range assets {
		f := l.asset(a)
		l.view.Findings = append(l.view.Findings, f)
		if a.Name != catalog.HCO || f.waits {
			continue
		}
		// The others are rendered from what the HyperConverged comes to.
		if in.Preview {
			if f.Would != nil {
				l.in.HCO, l.ctx.hco = f.Would, f.Would
			}
			continue
		}
		if f.Continue || f.Retry != "" {
			break
		}
	}
	l.remember()
	return l.view
}

func (l *looker) exclusions() {
	text := l.in.HCO.GetAnnotations()[AnnotationDisabled]
	rules, ignored, err := Exclusions(text)
	if err != nil {
		l.broken = err.Error()
	}
	l.rules, l.view.Exclusions = rules, ignored
}

// need asks for something; ok tells whether it is known.
func (l *looker) need(n plan.Need) (plan.Answer, bool) {
	n.Tolerant = true
	answer, ok := l.known.To(n)
	if !ok && !slices.ContainsFunc(l.view.Needs, func(other plan.Need) bool { return other.Key() == n.Key() }) {
		l.view.Needs = append(l.view.Needs, n)
	}
	return answer, ok
}

// remember puts what was found out into the state.
func (l *looker) remember() {
	v := &l.view
	v.State = l.state.clone()
	settled := true
	for i := range v.Findings {
		f := &v.Findings[i]
		v.Continue = v.Continue || f.Continue
		settled = settled && f.Retry == "" && !f.Continue
		if f.Retry != "" || f.waits {
			continue
		}
		if f.Record.equal(f.Old) {
			f.Record = f.Old
			continue
		}
		f.Record.Revision, f.Record.HCO = f.Old.Revision+1, l.in.HCO.GetResourceVersion()
		v.State.Assets[f.Asset.Name] = f.Record
		v.Changed = true
	}
	l.rememberGraves()
	l.rememberPlatform(settled && !v.Continue)
	v.Changed = v.Changed || l.in.Memory == nil || l.state.Lost != ""
}

// rememberGraves does the same for what must go, and forgets assets that the catalog
// does not have any more.
func (l *looker) rememberGraves() {
	v := &l.view
	for _, g := range v.Graves {
		v.Continue = v.Continue || len(g.Entries) > 0
		if g.New.Status == g.Old.Status && g.New.Message == g.Old.Message {
			continue
		}
		g.New.Revision = g.Old.Revision + 1
		v.State.Tombstones[g.key()] = g.New
		v.Changed = true
	}
	for name := range v.State.Assets {
		if _, found := l.in.Catalog.Find(name); !found && l.in.Whole() {
			delete(v.State.Assets, name)
			v.Changed = true
		}
	}
}

func (l *looker) rememberPlatform(settled bool) {
	old := l.state.Platform
	next := old
	next.Problem, next.Strangers = l.broken, l.view.Strangers
	if l.in.Listed {
		next.Hardware = l.in.Hardware
	}
	if l.in.Whole() {
		next.HCO = ""
		if settled && l.broken == "" && l.in.HardwareProblem == "" {
			next.HCO = hcoHash(l.in.HCO)
		}
		if next.HCO != old.HCO {
			next.Version = l.in.HCO.GetResourceVersion()
		}
	}
	if encode(next) != encode(old) {
		next.Revision++
		l.view.State.Platform, l.view.Changed = next, true
	}
}
