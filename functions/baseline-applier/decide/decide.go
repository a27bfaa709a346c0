package decide

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Management is the cluster that the baseline is for.
const Management = ""

// Decide is what is to be written: the record first, under its version, then the
// objects.
func Decide(now time.Time, in Input, known plan.Answers) plan.Decision {
	if !Counts(in.HCO, in.Settings) {
		return plan.Decision{Reasons: []string{"it is not the HyperConverged of the baseline"}}
	}
	view := Look(now, in, known)
	if len(view.Needs) > 0 {
		return plan.Decision{Needs: view.Needs}
	}
	decision := plan.Decision{Reasons: view.reasons(), Plan: plan.Plan{Continue: view.Continue}}
	if view.Changed {
		decision.Plan.Add("record", record(in, view))
	}
	var objects []plan.Entry
	for _, g := range view.Graves {
		objects = append(objects, g.Entries...)
	}
	for _, f := range view.Findings {
		objects = append(objects, f.Entries...)
	}
	decision.Plan.Add("platform", objects...)
	return decision
}

// record is the write of the memory.
func record(in Input, view View) plan.Entry {
	obj := view.State.configMap(in.Settings.StateNamespace, in.Memory)
	entry := plan.Entry{Verb: plan.Patch, Resource: kind.ConfigMaps, Object: obj, Base: in.Memory, Reason: "the record of the baseline", Shared: true}
	if in.Memory == nil {
		entry.Verb = plan.Create
	}
	return entry
}

func (v View) reasons() []string {
	if v.Quiet {
		return []string{"nothing of the HyperConverged has changed that the baseline depends on"}
	}
	out := make([]string, 0, len(v.Findings))
	for _, f := range v.Findings {
		text := fmt.Sprintf("%s: %s", f.Asset.Name, f.Record.Outcome)
		switch {
		case f.Retry != "":
			text = f.Asset.Name + ": " + f.Retry
		case f.Record.Message != "":
			text += ": " + f.Record.Message
		}
		out = append(out, text)
	}
	return out
}

// Memory is the namespace and name of the ConfigMap with the record.
func Memory(s Settings) (namespace, name string) { return s.StateNamespace, StateName }

// Resume is a memory in which an asset's pause is over; an error says that it is not
// paused.
func Resume(memory *unstructured.Unstructured, asset string) (*unstructured.Unstructured, error) {
	state := ReadState(memory)
	r, found := state.Assets[asset]
	if memory == nil || !found || r.Pause == nil {
		return nil, fmt.Errorf("cannot resume %q: the baseline has not paused it", asset)
	}
	r.resume()
	r.UID, r.Outcome, r.Message = "", Unknown, "resumed by hand"
	r.Revision++
	state.Assets[asset] = r
	return state.configMap(memory.GetNamespace(), memory), nil
}
