package render

import (
	"fmt"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
)

// Reasons of failures: the phases of a render, and the checks after it.
const (
	ReasonBuild      = v1alpha3.ReasonBuildInstanceFailed
	ReasonLookup     = v1alpha3.ReasonLookupPathFailed
	ReasonFill       = v1alpha3.ReasonFillPathFailed
	ReasonValidate   = v1alpha3.ReasonValidateFailed
	ReasonFields     = v1alpha3.ReasonFieldsFailed
	ReasonDecode     = v1alpha3.ReasonDecodeFailed
	ReasonLimit      = "RenderLimitExceeded"
	ReasonNotAllowed = "ObjectNotAllowed"
)

// maxMessage bounds the message of a failure, in bytes.
const maxMessage = 1024

// Failure is why a render gave no objects. The same failure has the same bytes.
type Failure struct {
	Reason string `json:"reason"`
	// Message is one line for people: the first error, and how many more.
	Message string `json:"message"`
	// Causes are the single errors, where there are several.
	Causes []Cause `json:"causes,omitempty"`
	// Input tells that the input is to blame, not the template.
	Input bool `json:"input,omitempty"`
	// Limit tells that the render was stopped, and will be again.
	Limit bool `json:"limit,omitempty"`
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

// Cause is one error of a template.
type Cause struct {
	// Line and Column are a place in the source; 0 if there is none.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Path is the CUE path, as in #workload.spec.input.
	Path string `json:"path,omitempty"`
	// Cluster tells that it is something of #cluster that is missing.
	Cluster bool `json:"cluster,omitempty"`
	// Text is the error with its path and without its place.
	Text string `json:"text"`
}

// String reads "a.b: conflicting values 1 and 2 (template.cue:3:5)".
func (c Cause) String() string {
	if c.Line == 0 {
		return c.Text
	}
	return fmt.Sprintf("%s (%s:%d:%d)", c.Text, File, c.Line, c.Column)
}

// Caused makes a failure of causes; there is at least one.
func Caused(reason string, causes []Cause) *Failure {
	message := causes[0].String()
	more := ""
	if len(causes) > 1 {
		more = fmt.Sprintf(" and %d more", len(causes)-1)
	}
	return &Failure{Reason: reason, Message: clip.Line(message, maxMessage-len(more)) + more, Causes: causes}
}

// Facts are what a template declares.
type Facts struct {
	Cluster  bool `json:"cluster,omitempty"`
	Workload bool `json:"workload,omitempty"`
	Input    bool `json:"input,omitempty"`
}

// Answer is what the child process says of a request. Nobody has looked at its
// outputs yet.
type Answer struct {
	Facts   Facts    `json:"facts"`
	Outputs []Raw    `json:"outputs,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// Raw is one output as the template gives it.
type Raw struct {
	// Field is its name in the template.
	Field string `json:"field"`
	// Line and Column are where the field stands.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// JSON is the value.
	JSON string `json:"json"`
}

// Result is what a render came to: outputs, or a failure.
type Result struct {
	Facts   Facts    `json:"facts"`
	Outputs []Output `json:"outputs,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}
