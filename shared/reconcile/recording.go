package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/record"
	"github.com/slipway-dev/slipway/shared/vault"
)

// finished is a reconcile that has come to its end, for its recording.
type finished struct {
	*session
	spec    Spec
	key     Key
	result  result
	started time.Time
	took    time.Duration
	trace   string
	woken   *woken
	records []read.Record
}

// cleaner makes recorded values free of secrets.
type cleaner struct {
	vault  *vault.Vault
	redact func(string) string
}

func newCleaner(v *vault.Vault) cleaner {
	redact := v.Redactor()
	return cleaner{vault: v, redact: func(text string) string { return record.WithoutPasswords(redact(text)) }}
}

func (c cleaner) object(res kind.Resource, content map[string]any) map[string]any {
	if content == nil {
		return nil
	}
	out, _ := record.Clean(c.vault.Blind(res, content), c.redact).(map[string]any)
	return out
}

// text is for people: what is secret in it is not told apart.
func (c cleaner) text(text string) string { return record.WithoutPasswords(c.vault.Scrub(text)) }

func (c cleaner) texts(list []string) []string {
	var out []string
	for _, text := range list {
		out = append(out, c.text(text))
	}
	return out
}

func (c cleaner) fault(f *fault.Fault) *fault.Fault {
	if f == nil {
		return nil
	}
	out := *f
	out.Message = record.WithoutPasswords(out.Message) // it was scrubbed when it was made
	return &out
}

// recording makes the recording of a reconcile. It runs after the answer.
func (f finished) recording() *record.Recording {
	c := newCleaner(f.vault)
	out := &record.Recording{Header: f.header(c)}
	for _, d := range f.decisions {
		out.Decisions = append(out.Decisions, c.decision(d))
	}
	for _, made := range f.calls {
		out.Calls = append(out.Calls, callOf(made, &c))
	}
	for _, r := range f.records {
		out.Reads = append(out.Reads, c.read(r))
	}
	if f.conclusion != nil {
		out.Conclusion = c.conclusion(*f.conclusion, f.status)
	}
	if w := f.woken; w != nil && w.event != nil {
		out.Event = eventOf(*w.event, f.spec, f.vault)
		out.Event.Concerns = names(w.keys)
		for _, a := range w.mapping {
			mapping := newCleaner(a.vault)
			for _, r := range a.records {
				out.Mapping = append(out.Mapping, mapping.read(r))
			}
		}
	}
	return out
}

func (f finished) header(c cleaner) record.Header {
	h := record.Header{
		Format: record.Format, Function: f.spec.Name, Version: record.Version(), Go: record.GoVersion(),
		Kind: f.spec.Reconciles.Kind, Namespace: f.key.Namespace, Name: f.key.Name, Part: f.key.Part, Mode: string(f.mode),
		Time: f.started, DurationMs: float64(f.took.Microseconds()) / 1000, TraceID: f.trace,
		Result:    record.Result{Class: string(f.result.class), Reason: f.result.reason, Message: c.text(f.result.message), Status: statusOf(answer(f.result.class, ""))},
		ReadCount: f.result.reads, WriteCount: f.result.writes, Rounds: f.round, Settings: settingsOf(f.spec), Clock: f.clock,
	}
	id := f.key.String()
	if w := f.woken; w != nil && w.event != nil {
		h.EventID, h.EventType, h.EventSource = w.event.ID(), w.event.Type(), record.WithoutPasswords(w.event.Source())
		h.Trigger = trigger(*w.event)
		id += "|" + h.EventID
	}
	for _, d := range f.decisions {
		for _, outcome := range d.outcomes {
			if changed(plan.Outcomes{outcome}) {
				h.Written = append(h.Written, string(outcome.Result)+" "+outcome.Entry.Resource.String()+" "+outcome.Entry.Name())
			}
		}
	}
	if f.status != nil && changed(plan.Outcomes{*f.status}) {
		h.Written = append(h.Written, string(f.status.Result)+" "+f.spec.Reconciles.String()+" "+f.key.String()+" (status)")
	}
	sum := sha256.Sum256([]byte(f.spec.Name + "|" + id + "|" + f.started.String()))
	h.ID = f.started.UTC().Format("20060102T150405.000000Z") + "-" + f.spec.Name + "-" + hex.EncodeToString(sum[:4])
	return h
}

// names are keys as a recording tells them, sorted.
func names(keys []Key) []string {
	var out []string
	for _, key := range keys {
		out = append(out, key.String())
	}
	slices.Sort(out)
	return out
}

// trigger is what an event was about: "Machine team-a/web".
func trigger(ce cloudevents.Event) string {
	e, err := event.Decode(ce)
	switch {
	case err != nil:
		return ""
	case e.Resync != nil:
		return "resync"
	case e.Kind == "":
		return e.Cluster
	}
	return e.Kind + " " + Key{Namespace: e.Namespace, Name: e.Name}.String()
}

// settingsOf are the function's settings that were set in its environment.
func settingsOf(spec Spec) map[string]string {
	var out map[string]string
	for _, v := range spec.Env {
		value, set := os.LookupEnv(v.Name)
		if !set || record.SecretName(v.Name) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[v.Name] = record.WithoutPasswords(value)
	}
	return out
}

// eventOf is an event as it is kept: its data only where the function knows of what
// kind they are, so that what is secret in them can be sealed.
func eventOf(ce cloudevents.Event, spec Spec, v *vault.Vault) *record.Event {
	attributes := map[string]string{"specversion": ce.SpecVersion(), "id": ce.ID(), "type": ce.Type(), "source": ce.Source()}
	if ce.Subject() != "" {
		attributes["subject"] = ce.Subject()
	}
	if !ce.Time().IsZero() {
		attributes["time"] = ce.Time().Format(time.RFC3339Nano)
	}
	if ce.DataContentType() != "" {
		attributes["datacontenttype"] = ce.DataContentType()
	}
	if ce.DataSchema() != "" {
		attributes["dataschema"] = ce.DataSchema()
	}
	for name, value := range ce.Extensions() {
		text := fmt.Sprint(value)
		if record.SecretName(name) {
			text = v.Seal(text)
		}
		attributes[name] = text
	}
	for name, text := range attributes {
		attributes[name] = record.WithoutPasswords(text)
	}
	out := &record.Event{Attributes: attributes, Size: len(ce.Data())}
	content := map[string]any{}
	if json.Unmarshal(ce.Data(), &content) != nil {
		return out
	}
	if known, ok := safeBody(ce.Type(), content, spec, v); ok {
		if body, err := json.Marshal(known); err == nil {
			out.Body = string(body)
		}
	}
	return out
}

// safeBody is what may be kept of an event's data.
func safeBody(eventType string, content map[string]any, spec Spec, v *vault.Vault) (map[string]any, bool) {
	if eventType == event.TypeResync || eventType == event.TypePing {
		return content, true
	}
	obj := &unstructured.Unstructured{Object: content}
	resources := []kind.Resource{spec.Reconciles}
	for _, watch := range spec.Watches {
		resources = append(resources, watch.Resource)
	}
	for _, res := range resources {
		if !res.Is(obj.GetAPIVersion(), obj.GetKind()) {
			continue
		}
		v.SealObject(res, obj)
		clean, _ := record.Clean(obj.Object, record.WithoutPasswords).(map[string]any)
		return clean, true
	}
	return nil, false
}

// readOf is a question as it is kept.
func readOf(question read.Question, need plan.Need) record.Read {
	r := record.Read{
		Question: string(question), Cluster: need.Cluster, Namespace: need.Namespace, Name: need.Name,
		Selector: need.Selector, Limit: need.Limit, Render: need.Render,
	}
	if need.Resource.Plural != "" {
		r.Resource = need.Resource.String()
	}
	if need.Render != nil {
		r.Question = "render"
	}
	return r
}

func (c cleaner) read(r read.Record) record.Read {
	out := readOf(r.Asked(), r.Need)
	out.Connection, out.Complete, out.Fault = r.Connection, r.Complete, c.fault(r.Answer.Fault)
	if r.Discovered != nil {
		out.Version = *r.Discovered
	}
	if r.Answer.Object != nil {
		out.Object = c.object(r.Need.Resource, r.Answer.Object.Object)
	}
	for i := range r.Answer.Items {
		out.Items = append(out.Items, c.object(r.Need.Resource, r.Answer.Items[i].Object))
	}
	if r.Answer.Rendered != nil {
		if rendered, err := record.Plain(r.Answer.Rendered); err == nil {
			out.Rendered, _ = record.Clean(rendered, c.redact).(map[string]any)
		}
	}
	out.Absent = out.Question == string(read.AskGet) && out.Object == nil && out.Fault == nil
	return out
}

func (c cleaner) decision(d decided) record.Decision {
	out := record.Decision{Round: d.round, Reasons: c.texts(d.decision.Reasons), Conflict: d.conflict}
	for _, need := range d.decision.Needs {
		question := read.AskList
		if need.Name != "" {
			question = read.AskGet
		}
		out.Needs = append(out.Needs, readOf(question, need).String())
	}
	if len(d.decision.Needs) > 0 {
		return out
	}
	out.Continue = d.decision.Plan.Continue
	n := 0
	for _, stage := range d.decision.Plan.Stages {
		kept := record.Stage{Name: stage.Name}
		for _, entry := range stage.Entries {
			e := c.entry(entry)
			if n < len(d.outcomes) {
				e.Result, e.Fault = string(d.outcomes[n].Result), c.fault(d.outcomes[n].Fault)
			}
			n++
			kept.Entries = append(kept.Entries, e)
		}
		out.Stages = append(out.Stages, kept)
	}
	return out
}

func (c cleaner) entry(entry plan.Entry) record.Entry {
	out := record.Entry{
		Verb: string(entry.Verb), Cluster: entry.Cluster, Resource: entry.Resource.String(), Subresource: entry.Subresource,
		Name: entry.Name(), Reason: c.text(entry.Reason),
	}
	if entry.Object != nil {
		out.Object = c.object(entry.Resource, entry.Object.Object)
	}
	if entry.Base != nil {
		out.Base = entry.Base.GetResourceVersion()
	}
	return out
}

func (c cleaner) conclusion(conclusion plan.Conclusion, status *plan.Outcome) *record.Conclusion {
	out := &record.Conclusion{
		Class: string(conclusion.Class), Reason: conclusion.Reason, Message: c.text(conclusion.Message), Log: c.texts(conclusion.Log),
	}
	out.Status, _ = record.Clean(conclusion.Status, c.redact).(map[string]any)
	for _, e := range conclusion.Events {
		e.Message = c.text(e.Message)
		out.Events = append(out.Events, e)
	}
	if status != nil {
		out.StatusResult, out.StatusFault = string(status.Result), c.fault(status.Fault)
	}
	return out
}

// callOf is a request as it is kept; without a cleaner only what identifies it.
func callOf(made called, c *cleaner) record.Call {
	entry := made.Entry
	obj := entry.Object
	if obj == nil {
		obj = entry.Base
	}
	out := record.Call{
		Verb: made.Verb, Cluster: entry.Cluster, Resource: entry.Resource.String(), Subresource: entry.Subresource,
		Same: made.same,
	}
	if obj != nil {
		out.Namespace, out.Name = obj.GetNamespace(), obj.GetName()
	}
	if c == nil {
		return out
	}
	out.Fault = c.fault(made.fault)
	switch body := made.Body.(type) {
	case map[string]any:
		out.Body = c.object(entry.Resource, body)
	case []byte:
		var patch any
		if json.Unmarshal(body, &patch) == nil {
			out.Body = record.Clean(patch, c.redact)
		}
	}
	if made.answer != nil {
		out.Answer = c.object(entry.Resource, made.answer.Object)
	}
	return out
}

// statusOf is the HTTP status of an answer.
func statusOf(err error) int {
	var coded *cehttp.Result
	if errors.As(err, &coded) {
		return coded.StatusCode
	}
	return http.StatusOK
}

// playFault is a fault of playing a recording.
func playFault(call, message string) *fault.Fault {
	return &fault.Fault{Class: fault.Unavailable, Call: call, Message: message}
}

// fakeUID is the n-th UID that a replay makes up.
func fakeUID(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)) }

// sameSettings lists the settings in which a recording and the environment differ.
func sameSettings(spec Spec, recorded map[string]string) []string {
	here := settingsOf(spec)
	names := map[string]bool{}
	for name := range here {
		names[name] = true
	}
	for name := range recorded {
		names[name] = true
	}
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if here[name] != recorded[name] {
			differ = append(differ, name)
		}
	}
	return differ
}
