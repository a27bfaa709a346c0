package record

import (
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/render"
)

// Format is the version of the files that this package writes and reads.
const Format = 1

// Recording is one reconcile.
type Recording struct {
	Header Header
	// Event is what woke the function; unset when no event did.
	Event *Event
	// Decisions are all that were made, in order, the last one last.
	Decisions []Decision
	// Calls are the requests that were made for them.
	Calls []Call
	// Conclusion is unset when the reconcile came to none.
	Conclusion *Conclusion
	// Mapping are the reads that told which objects the event concerns, Reads
	// those of the reconcile itself.
	Mapping, Reads []Read
}

// Header is what a list of recordings shows of each.
type Header struct {
	Format int `json:"format"`
	// ID is the recording's name; it begins with the time.
	ID       string `json:"id"`
	Function string `json:"function"`
	// Version is that of the function, Go that of its compiler.
	Version string `json:"version"`
	Go      string `json:"go,omitempty"`
	// Kind, Namespace and Name are the reconciled object.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Part is the part of what hangs on the object that was looked at; empty for all.
	Part string `json:"part,omitempty"`
	Mode string `json:"mode,omitempty"`
	// Time is when the reconcile began.
	Time       time.Time `json:"time"`
	DurationMs float64   `json:"durationMs"`
	TraceID    string    `json:"traceId,omitempty"`
	// EventID, EventType and EventSource tell the event; Trigger is what it was about.
	EventID     string `json:"eventId,omitempty"`
	EventType   string `json:"eventType,omitempty"`
	EventSource string `json:"eventSource,omitempty"`
	Trigger     string `json:"trigger,omitempty"`
	Result      Result `json:"result"`
	ReadCount   int    `json:"reads"`
	WriteCount  int    `json:"writes"`
	Rounds      int    `json:"rounds,omitempty"`
	// Settings are those of the function that were set.
	Settings map[string]string `json:"settings,omitempty"`
	// Clock are the times at which the function was told the time.
	Clock []time.Time `json:"clock,omitempty"`
	// Cut says what was left out, and why; such a recording cannot be replayed.
	Cut string `json:"cut,omitempty"`
	// Written tells the objects that were changed: "created virtualmachines.kubevirt.io a/b".
	Written []string `json:"written,omitempty"`
}

// Object is the reconciled object's "namespace/name", or its name alone.
func (h Header) Object() string {
	if h.Namespace == "" {
		return h.Name
	}
	return h.Namespace + "/" + h.Name
}

// Result is what the reconcile came to.
type Result struct {
	Class   string `json:"class"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Status is the HTTP status that the function answers for this object.
	Status int `json:"status"`
}

// Event is the CloudEvent that woke the function, with all attributes.
type Event struct {
	// Attributes are all but the data, extensions too.
	Attributes map[string]string `json:"attributes"`
	// Body is the data as text. Data of a kind that the function does not know, or
	// that is no JSON, is left out; Size tells how long it was.
	Body string `json:"body,omitempty"`
	Size int    `json:"size,omitempty"`
	// Concerns are the objects that the event was found to concern.
	Concerns []string `json:"concerns,omitempty"`
}

// Read is a question and its answer.
type Read struct {
	// Question is get, list, scan, connect, discover or render.
	Question  string          `json:"question"`
	Cluster   string          `json:"cluster,omitempty"`
	Resource  string          `json:"resource,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name,omitempty"`
	Selector  string          `json:"selector,omitempty"`
	Limit     int64           `json:"limit,omitempty"`
	Render    *render.Request `json:"render,omitempty"`

	// Absent says that there is no such object: a get without an answer otherwise
	// looks like a mistake.
	Absent     bool             `json:"absent,omitempty"`
	Object     map[string]any   `json:"object,omitempty"`
	Items      []map[string]any `json:"items,omitempty"`
	Rendered   map[string]any   `json:"rendered,omitempty"`
	Version    string           `json:"version,omitempty"`
	Connection *plan.Connection `json:"connection,omitempty"`
	// Complete tells of a scan that it saw everything.
	Complete bool         `json:"complete,omitempty"`
	Fault    *fault.Fault `json:"fault,omitempty"`
}

// Key identifies the question; it is that of plan.Need, with the kind of question
// before it.
func (r Read) Key() string {
	if r.Render != nil {
		return "render|" + r.Render.Hash()
	}
	key := r.Question + "|" + strings.Join([]string{r.Cluster, r.Resource, r.Namespace, r.Name, r.Selector}, "|")
	if r.Limit > 0 {
		key += "|" + strconv.FormatInt(r.Limit, 10)
	}
	return key
}

// String reads "get machines.vitistack.io team-a/web on cluster east".
func (r Read) String() string {
	text := r.Question
	if r.Resource != "" {
		text += " " + r.Resource
	}
	switch {
	case r.Name != "" && r.Namespace != "":
		text += " " + r.Namespace + "/" + r.Name
	case r.Name != "" || r.Namespace != "":
		text += " " + r.Name + r.Namespace
	}
	if r.Selector != "" {
		text += " where " + r.Selector
	}
	if r.Cluster != "" {
		text += " on cluster " + r.Cluster
	}
	return text
}

// Decision is one answer of a function's Decide.
type Decision struct {
	// Round counts from 1: a reconcile gathers anew when the world moved.
	Round int `json:"round"`
	// Reasons are the findings behind the decision.
	Reasons []string `json:"reasons,omitempty"`
	// Needs are what had to be known first; then there is no plan.
	Needs []string `json:"needs,omitempty"`
	// Stages are the plan.
	Stages []Stage `json:"stages,omitempty"`
	// Continue asks for another round once the plan is applied.
	Continue bool `json:"continue,omitempty"`
	// Conflict says that the world moved while the plan was applied.
	Conflict bool `json:"conflict,omitempty"`
}

// Stage is a group of writes.
type Stage struct {
	Name    string  `json:"name"`
	Entries []Entry `json:"entries"`
}

// Entry is one intended write.
type Entry struct {
	Verb        string         `json:"verb"`
	Cluster     string         `json:"cluster,omitempty"`
	Resource    string         `json:"resource"`
	Subresource string         `json:"subresource,omitempty"`
	Name        string         `json:"name"`
	Reason      string         `json:"reason,omitempty"`
	Object      map[string]any `json:"object,omitempty"`
	// Base is the resourceVersion that the decision was based on.
	Base string `json:"base,omitempty"`
	// Result is what became of it: created, configured, unchanged, skipped, failed.
	Result string       `json:"result,omitempty"`
	Fault  *fault.Fault `json:"fault,omitempty"`
}

// Call is one request to an API server.
type Call struct {
	// Verb is create, patch, apply, fold, delete or dry-run; connect is the failure
	// to find the server, remembered a dry-run whose answer was known.
	Verb        string `json:"verb"`
	Cluster     string `json:"cluster,omitempty"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name"`
	// Body is what was sent, sealed.
	Body any `json:"body,omitempty"`
	// Answer is what came back, sealed.
	Answer map[string]any `json:"answer,omitempty"`
	// Same is the verdict of a remembered dry-run: nothing would change.
	Same  bool         `json:"same,omitempty"`
	Fault *fault.Fault `json:"fault,omitempty"`
}

// Key tells which requests may be answered alike.
func (c Call) Key() string {
	return strings.Join([]string{c.Verb, c.Cluster, c.Resource, c.Subresource, c.Namespace, c.Name}, "|")
}

// String reads "apply virtualmachines.kubevirt.io team-a/vm-web".
func (c Call) String() string {
	name := c.Name
	if c.Namespace != "" {
		name = c.Namespace + "/" + c.Name
	}
	text := c.Verb + " " + c.Resource + " " + name
	if c.Subresource != "" {
		text += " (" + c.Subresource + ")"
	}
	if c.Cluster != "" {
		text += " on cluster " + c.Cluster
	}
	return text
}

// Conclusion is what a function's Conclude said.
type Conclusion struct {
	Class   string `json:"class"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Status is the whole status as it shall be.
	Status map[string]any `json:"status,omitempty"`
	// StatusResult is what became of it: configured, unchanged, skipped.
	StatusResult string       `json:"statusResult,omitempty"`
	StatusFault  *fault.Fault `json:"statusFault,omitempty"`
	Events       []plan.Event `json:"events,omitempty"`
	Log          []string     `json:"log,omitempty"`
}
