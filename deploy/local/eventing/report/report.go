// Package report tells people what happens, one JSON object a line.
package report

import (
	"encoding/json"
	"io"
	"sync"
)

// Kinds of lines.
const (
	KindReady      = "ready"
	KindEvent      = "event"
	KindDeadLetter = "deadletter"
	KindFunction   = "function"
	KindLog        = "log"
)

// States of a function's process.
const (
	Started = "started"
	Ready   = "ready"
	Stopped = "stopped"
	Crashed = "crashed"
)

// Event is one try at delivering an event to a function.
type Event struct {
	Kind string `json:"kind"`
	Subject
	// Function is the host name that the event went to, up to the first dot.
	Function string `json:"function,omitempty"`
	// Status is the HTTP status that the broker saw.
	Status     int     `json:"status"`
	DurationMs float64 `json:"durationMs"`
	// Attempt counts the tries from 1.
	Attempt int `json:"attempt"`
	// RetryMs is how long the broker waits before it tries again; absent if it
	// does not.
	RetryMs float64 `json:"retryMs,omitempty"`
}

// DeadLetter is an event that was given up.
type DeadLetter struct {
	Kind string `json:"kind"`
	Subject
	Function string `json:"function,omitempty"`
	// Status is that of the last try, Attempts how many there were.
	Status   int `json:"status"`
	Attempts int `json:"attempts"`
	// Reason is the beginning of what the function answered.
	Reason string `json:"reason,omitempty"`
	// Sink is where the dead letter went; empty if there is none.
	Sink string `json:"sink,omitempty"`
	// Delivered tells whether it arrived there.
	Delivered bool `json:"delivered"`
}

// Subject is what an event is about.
type Subject struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Cluster    string `json:"cluster,omitempty"`
	ObjectKind string `json:"objectKind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	Trigger    string `json:"trigger,omitempty"`
}

// Function is a change of a function's process.
type Function struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	State string `json:"state"`
	PID   int    `json:"pid,omitempty"`
	// DurationMs is the time from start to ready, for the state ready; the time
	// that the process lived, for stopped and crashed.
	DurationMs float64 `json:"durationMs,omitempty"`
	// Error tells how the process ended, unless it ended as it should.
	Error string `json:"error,omitempty"`
}

// Log is one line that a function's process wrote.
type Log struct {
	Kind     string `json:"kind"`
	Function string `json:"function"`
	// Line is the JSON object that the process wrote, or else its text.
	Line any `json:"line"`
}

// Addresses tells that everything runs, and where.
type Addresses struct {
	Kind string `json:"kind"`
	// Listen is the one address that this process listens on.
	Listen string `json:"listen"`
	// Ingress is the URL of the broker's ingress; a broker is
	// <ingress>/<namespace>/<name>.
	Ingress string `json:"ingress"`
	// Functions is the URL below which functions are called by hand:
	// <functions>/<namespace>/<name>.
	Functions string `json:"functions"`
	PID       int    `json:"pid"`
	// DurationMs is the time from the start of the process.
	DurationMs float64 `json:"durationMs"`
}

// Reporter writes lines.
type Reporter struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

// New makes a Reporter that writes to w.
func New(w io.Writer) *Reporter {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return &Reporter{encoder: encoder}
}

// Write writes one line. Nobody can be told when it fails: the reader is gone.
func (r *Reporter) Write(line any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.encoder.Encode(line)
}

// FunctionLine is a line of a function's output, understood as far as possible.
func FunctionLine(function string, text []byte) Log {
	var object map[string]any
	if err := json.Unmarshal(text, &object); err == nil && object != nil {
		return Log{Kind: KindLog, Function: function, Line: json.RawMessage(text)}
	}
	return Log{Kind: KindLog, Function: function, Line: string(text)}
}
