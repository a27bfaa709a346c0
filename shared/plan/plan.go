// Package plan is the language in which decisions speak: what to write, what
// else must be known first, and what the answers of the API servers mean.
//
// Everything here is plain data without a client, a clock or randomness. A
// function's decide package builds these values, the runtime acts on them:
//
//	gather ─► Decide(now, in, known) ─► Decision{Plan | Needs}
//	apply  ─► Outcomes ─► Conclude(now, in, known, outcomes) ─► Conclusion
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/render"
)

// Verb says how an entry is written.
type Verb string

const (
	// Create makes an object that must not exist yet; if it does, the world is
	// gathered again. For objects that a race must not adopt.
	Create Verb = "create"
	// Apply is server-side apply of Object under the function's field manager,
	// with the resourceVersion of Base where Base is set.
	Apply Verb = "apply"
	// Patch turns Base into Object by a merge patch that carries the
	// resourceVersion of Base.
	Patch Verb = "patch"
	// Delete removes Base, under its UID and resourceVersion.
	Delete Verb = "delete"
)

// Entry is one intended write, with the reason for it.
type Entry struct {
	Verb        Verb          `json:"verb"`
	Cluster     string        `json:"cluster,omitempty"`
	Resource    kind.Resource `json:"-"`
	Subresource string        `json:"subresource,omitempty"`
	// Object is what the object shall be: the whole object for Create and
	// Patch, the owned fields for Apply; unset for Delete.
	Object *unstructured.Unstructured `json:"object,omitempty"`
	// Base is the object as it was gathered; unset when there was none.
	Base *unstructured.Unstructured `json:"base,omitempty"`
	// Reason is a sentence for the log, the plan and the recording.
	Reason string `json:"reason"`
	// Manager is the field manager of a Patch that must be told apart from the
	// function's own; empty for that one.
	Manager string `json:"manager,omitempty"`
	// Shared marks a created object that others may rely on as soon as it is
	// there: it stays even if the reconciled object went meanwhile.
	Shared bool `json:"shared,omitempty"`
}

// Name is "namespace/name" of the entry's object, or its name alone.
func (e Entry) Name() string {
	obj := e.Object
	if obj == nil {
		obj = e.Base
	}
	if obj == nil {
		return ""
	}
	if ns := obj.GetNamespace(); ns != "" {
		return ns + "/" + obj.GetName()
	}
	return obj.GetName()
}

// String reads "create virtualmachines.kubevirt.io team-a/vm-web".
func (e Entry) String() string {
	s := fmt.Sprintf("%s %s %s", e.Verb, e.Resource, e.Name())
	if e.Subresource != "" {
		s += " (" + e.Subresource + ")"
	}
	if e.Cluster != "" {
		s += " on cluster " + e.Cluster
	}
	return s
}

// fingerprint tells entries for one object apart by what they want and rest on.
func (e Entry) fingerprint() string {
	var content map[string]any
	if e.Object != nil {
		content = e.Object.Object
	}
	base := ""
	if e.Base != nil {
		base = string(e.Base.GetUID()) + "/" + e.Base.GetResourceVersion()
	}
	// What was read or built from JSON encodes, with sorted keys.
	text, _ := json.Marshal(content)
	sum := sha256.Sum256(append(text, base...))
	return hex.EncodeToString(sum[:])
}

// Stage is a group of writes. A stage is reached only when every write of the
// stages before it went through; within a stage one failure does not stop the
// others.
type Stage struct {
	Name    string  `json:"name"`
	Entries []Entry `json:"entries"`
}

// Plan is all that one decision wants written, in order.
type Plan struct {
	Stages []Stage `json:"stages,omitempty"`
	// Continue asks for another round, gather first, once the plan is applied
	// and has changed something.
	Continue bool `json:"continue,omitempty"`
}

// Add appends a stage unless it has no entries.
func (p *Plan) Add(name string, entries ...Entry) {
	if len(entries) > 0 {
		p.Stages = append(p.Stages, Stage{Name: name, Entries: entries})
	}
}

// Need is one further read that a decision depends on, or a render. With a Name it
// is a get, else a list under Selector.
type Need struct {
	Cluster   string        `json:"cluster,omitempty"`
	Resource  kind.Resource `json:"-"`
	Namespace string        `json:"namespace,omitempty"`
	Name      string        `json:"name,omitempty"`
	Selector  string        `json:"selector,omitempty"`
	// Limit bounds a list to its first objects; 0 lists all.
	Limit int64 `json:"limit,omitempty"`
	// Only tells which objects of a list are kept; nil keeps all. It does not belong to
	// the key: one reconcile lists the same in one way.
	Only func(obj *unstructured.Unstructured) bool `json:"-"`
	// Render asks for a template to be rendered; nothing else is set then.
	Render *render.Request `json:"render,omitempty"`
	// DryRun asks what the server would make of an Apply, without making it; nothing
	// but Tolerant is set then. The answer is the object as it would be.
	DryRun *Entry `json:"dryRun,omitempty"`
	// Tolerant leaves it to the decision to judge an answer that the management
	// cluster did not give; otherwise the call ends there and is tried again.
	Tolerant bool `json:"tolerant,omitempty"`
}

// Key identifies the need among the answers.
func (n Need) Key() string {
	if n.Render != nil {
		return "render|" + n.Render.Hash()
	}
	if n.DryRun != nil {
		return "dry-run|" + n.DryRun.String() + "|" + n.DryRun.fingerprint()
	}
	key := n.Cluster + "|" + n.Resource.String() + "|" + n.Namespace + "|" + n.Name + "|" + n.Selector
	if n.Limit > 0 {
		key += "|" + strconv.FormatInt(n.Limit, 10)
	}
	return key
}

// Answer is what a need brought to light.
type Answer struct {
	// Object is the object that was asked for; nil when there is none.
	Object *unstructured.Unstructured `json:"object,omitempty"`
	// Items are the objects of a list, sorted by namespace and name.
	Items []unstructured.Unstructured `json:"items,omitempty"`
	// Rendered is what a render came to; the values of its Secrets are sealed.
	Rendered *render.Result `json:"rendered,omitempty"`
	// Fault is set when the question could not be answered.
	Fault *fault.Fault `json:"fault,omitempty"`
}

// Answers are the needs that have been fulfilled so far, by Need.Key.
type Answers map[string]Answer

// To looks up the answer to a need.
func (a Answers) To(n Need) (Answer, bool) {
	answer, ok := a[n.Key()]
	return answer, ok
}

// Decision is either a plan or a list of needs: with needs, the plan is not
// looked at, the needs are fulfilled, and the decision is made again.
type Decision struct {
	Plan  Plan   `json:"plan"`
	Needs []Need `json:"needs,omitempty"`
	// Reasons are the findings behind the decision, one sentence each.
	Reasons []string `json:"reasons,omitempty"`
}

// Result tells what became of an entry.
type Result string

const (
	// Created: the object was not there before.
	Created Result = "created"
	// Configured: the object was changed.
	Configured Result = "configured"
	// Deleted: the object was told to go.
	Deleted Result = "deleted"
	// Unchanged: the world was as intended already.
	Unchanged Result = "unchanged"
	// Skipped: a stage before failed, or the mode forbids writing.
	Skipped Result = "skipped"
	// Capped: one run deletes no more; a condition should say so.
	Capped Result = "capped"
	// Failed: see Fault.
	Failed Result = "failed"
)

// Outcome is what became of one entry.
type Outcome struct {
	Entry  Entry  `json:"entry"`
	Result Result `json:"result"`
	// Object is the object as the server answered, sealed.
	Object *unstructured.Unstructured `json:"object,omitempty"`
	Fault  *fault.Fault               `json:"fault,omitempty"`
}

// Outcomes are those of a whole plan, in its order.
type Outcomes []Outcome

// Of returns the outcome for an object, if the plan had an entry for it; the
// last one where there were several.
func (o Outcomes) Of(cluster string, res kind.Resource, namespace, name string) (Outcome, bool) {
	full := name
	if namespace != "" {
		full = namespace + "/" + name
	}
	for i := len(o) - 1; i >= 0; i-- {
		e := o[i].Entry
		if e.Cluster == cluster && e.Resource.String() == res.String() && e.Name() == full {
			return o[i], true
		}
	}
	return Outcome{}, false
}

// Faults returns the faults of all failed entries, in order.
func (o Outcomes) Faults() []Outcome {
	var failed []Outcome
	for _, outcome := range o {
		if outcome.Fault != nil {
			failed = append(failed, outcome)
		}
	}
	return failed
}

// Class is what a reconcile comes to, and decides the HTTP answer.
type Class string

const (
	// Done: nothing is left to do.
	Done Class = "done"
	// Waiting: something else is awaited; its event or the resync wakes us.
	Waiting Class = "waiting"
	// Terminal: the user's spec cannot work; a condition says why.
	Terminal Class = "terminal"
	// Retry: the same call may work later.
	Retry Class = "retry"
)

// Conclusion is what the reconciled object is told.
type Conclusion struct {
	Class Class `json:"class"`
	// Reason is the condition's reason behind the class, a bounded set: it is
	// a metric label.
	Reason string `json:"reason,omitempty"`
	// Message is one line for people.
	Message string `json:"message,omitempty"`
	// Status is the whole status as it shall be; nil leaves it as it is.
	Status map[string]any `json:"status,omitempty"`
	// Events are Kubernetes Events on the reconciled object.
	Events []Event `json:"events,omitempty"`
	// LogFields are further fields of the reconcile's log line.
	LogFields map[string]string `json:"logFields,omitempty"`
	// Log are further lines of level info, with the same fields.
	Log []string `json:"log,omitempty"`
	// Observations are values for the function's own metrics. They count only
	// when the reconcile ends with this conclusion, in the mode that writes.
	Observations []Observation `json:"observations,omitempty"`
}

// Observation is a value for a counter, which it is added to, a histogram, or a
// level, which it replaces.
type Observation struct {
	// Metric is the name of a declared metric, Labels are the values of its labels
	// in the declared order.
	Metric string   `json:"metric"`
	Labels []string `json:"labels,omitempty"`
	Value  float64  `json:"value"`
	// Elapsed stands for the seconds that the reconcile took, as Value.
	Elapsed bool `json:"elapsed,omitempty"`
	// Gone takes back what a level said.
	Gone bool `json:"gone,omitempty"`
}

// Event is a Kubernetes Event: something happened that a person may look for.
type Event struct {
	// Warning tells the type: Warning or Normal.
	Warning bool   `json:"warning,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Key tells repetitions of what the Event says from news, across versions of the
	// reconciled object: Events of one key are one. Empty: each version of the
	// object makes news of it.
	Key string `json:"key,omitempty"`
	// Action is what was done or tried; empty for Reconcile. Events of one action
	// may be aggregated.
	Action string `json:"action,omitempty"`
	// Related is another object that the Event is about.
	Related *Reference `json:"related,omitempty"`
}

// Reference names an object.
type Reference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
}
