package decide

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/baseline-applier/catalog"
	"github.com/slipway-dev/slipway/functions/baseline-applier/kinds"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

// is ends the look at an asset.
func (f Finding) is(outcome Outcome, message string) Finding {
	f.Record.Outcome, f.Record.Message = outcome, clip.Line(message, messageMax)
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

// messageMax is within what an Event can hold, in bytes.
const messageMax = 500

// asset finds out about one asset.
func (l *looker) asset(a catalog.Asset) Finding {
	f := Finding{Asset: a, Namespace: a.NamespaceIn(l.in.Settings.HCONamespace), Old: l.state.Assets[a.Name]}
	f.Record = f.Old
	f.Record.Object = describe(a.Component, f.Namespace, a.Object)
	f.Record.Differs, f.Record.LeftOut, f.Record.Problems = nil, nil, nil
	f.Record.Writes, f.Record.Oppositions = slices.Clone(f.Old.Writes), slices.Clone(f.Old.Oppositions)
	if end := l.unwanted(f); end != nil {
		return *end
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
	case f.waits || f.Retry != "" || errors.Is(err, errEnded):
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

// unwanted ends the look at an asset that is not to be applied, or of which that cannot
// be told.
func (l *looker) unwanted(f Finding) *Finding {
	a := f.Asset
	verdict, why := l.ctx.wanted(a)
	var end Finding
	switch {
	case l.broken != "":
		end = f.is(Unknown, l.broken)
	case l.allowed.idle:
		end = f.is(Inactive, "annotation "+AnnotationAutopilot+" of the HyperConverged stops the baseline; what there is stays as it is")
	case !l.allowed.allows(a):
		end = l.leave(f, Inactive, "annotation "+AnnotationAutopilot+" of the HyperConverged does not name it")
	case verdict == unknown:
		end = f.is(Unknown, "the hardware of the nodes cannot be seen")
	case verdict == fails:
		end = l.leave(f, Inactive, why)
	case excluded(l.rules, a.Component, f.Namespace, a.Object):
		end = l.leave(f, Excluded, "annotation "+AnnotationDisabled+" of the HyperConverged excludes it")
	case a.HardwareSpecific && l.in.Hardware == nil:
		end = f.is(Unknown, "the hardware of the nodes cannot be seen")
	default:
		return nil
	}
	return &end
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

// errEnded says that a finding is complete, or waits, without an object.
var errEnded = errors.New("what the object is made of cannot be read")

// render makes the object, without the optional fields that the definition lacks.
func (l *looker) render(f *Finding, schema *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	facts := l.facts()
	if f.Asset.NeedsSchema {
		descheduler, ok := l.descheduler(f, schema)
		if !ok {
			return nil, errEnded
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
