package stack

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// line is one line of what the eventing process tells.
type line struct {
	Kind       string          `json:"kind"`
	Type       string          `json:"type"`
	Cluster    string          `json:"cluster"`
	ObjectKind string          `json:"objectKind"`
	Namespace  string          `json:"namespace"`
	Name       string          `json:"name"`
	Trigger    string          `json:"trigger"`
	Status     int             `json:"status"`
	DurationMs float64         `json:"durationMs"`
	Attempt    int             `json:"attempt"`
	State      string          `json:"state"`
	PID        int             `json:"pid"`
	Function   string          `json:"function"`
	Line       json.RawMessage `json:"line"`
	Error      string          `json:"error"`
	Reason     string          `json:"reason"`
	Delivered  bool            `json:"delivered"`
}

// Printer turns the eventing process's JSON lines into lines for people: one
// per event, per write and per reconcile, and one for each start and stop of a
// function's process.
type Printer struct {
	// Out receives the lines.
	Out io.Writer
	// Now is the clock.
	Now func() time.Time

	mu sync.Mutex
}

// Copy prints everything from r until it ends. ready is called with the raw
// line of the first "ready" message.
func (p *Printer) Copy(r io.Reader, ready func([]byte)) {
	// Whatever ends the scan, the writer must not block.
	defer func() { _, _ = io.Copy(io.Discard, r) }()
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 64<<10), 4<<20)
	for scanner.Scan() {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			p.say("log", "eventing", scanner.Text())
			continue
		}
		if l.Kind == "ready" {
			ready(scanner.Bytes())
			continue
		}
		p.print(l)
	}
}

// Say prints a line of the stack itself.
func (p *Printer) Say(format string, args ...any) {
	p.say("stack", "", fmt.Sprintf(format, args...))
}

func (p *Printer) say(what, who, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.Out, "%s  %-9s %-14s %s\n", p.Now().Format("15:04:05.000"), what, who, text)
}

func (p *Printer) print(l line) {
	switch l.Kind {
	case "event":
		p.say("event", l.Trigger, strings.TrimSpace(fmt.Sprintf("%s %s -> %d in %.0f ms%s", eventName(l), objectName(l), l.Status, l.DurationMs, attempt(l))))
	case "deadletter":
		where := "is kept in the archive"
		if !l.Delivered {
			where = "is lost: the archive did not take it"
		}
		p.say("DEAD", l.Trigger, strings.TrimSpace(fmt.Sprintf("%s %s", eventName(l), objectName(l)))+" "+where+": "+fmt.Sprint(l.Status)+" "+first(l.Reason, l.Error))
	case "function":
		text := l.State
		if l.State == "ready" {
			text = fmt.Sprintf("ready %.0f ms after its start (pid %d)", l.DurationMs, l.PID)
		}
		if l.Error != "" {
			text += ": " + l.Error
		}
		p.say("process", l.Name, text)
	case "log":
		p.log(l)
	}
}

// log prints what a function logged: its writes and its reconciles. The rest
// stays in its log file, unless it is a warning.
func (p *Printer) log(l line) {
	var fields map[string]any
	if err := json.Unmarshal(l.Line, &fields); err != nil {
		var text string
		if json.Unmarshal(l.Line, &text) == nil {
			p.say("log", l.Function, text)
		}
		return
	}
	text := func(name string) string {
		if v, ok := fields[name]; ok {
			return fmt.Sprint(v)
		}
		return ""
	}
	message, level := text("message"), text("level")
	switch {
	case message == "reconciled":
		p.say("reconcile", l.Function, fmt.Sprintf("%s/%s %s%s: %s writes, %s reads, %.1f ms", text("namespace"), object(fields),
			text("outcome"), bracket(text("reason")), text("writes"), text("reads"), number(fields["durationMs"])))
	case isWrite(message):
		p.say("write", l.Function, message+sub(text("subresource"))+"  ("+text("reason")+")")
	case level == "warn" || level == "error":
		p.say(level, l.Function, message+": "+first(text("error"), text("detail")))
	}
}

func isWrite(message string) bool {
	for _, verb := range []string{"created ", "configured ", "deleted "} {
		if strings.HasPrefix(message, verb) {
			return true
		}
	}
	return false
}

// object finds the name of the reconciled object: the field is called like its
// kind.
func object(fields map[string]any) string {
	controller, _ := fields["controller"].(string)
	return fmt.Sprint(fields[strings.ToLower(controller)])
}

func eventName(l line) string {
	name := l.Type
	for _, prefix := range []string{"dev.knative.apiserver.ref.", "dev.knative.apiserver.resource.", "dev.knative.sources.", "dev.slipway."} {
		name = strings.TrimPrefix(name, prefix)
	}
	return name
}

func objectName(l line) string {
	name := ""
	switch {
	case l.ObjectKind == "":
	case l.Namespace == "":
		name = l.ObjectKind + " " + l.Name
	default:
		name = l.ObjectKind + " " + l.Namespace + "/" + l.Name
	}
	if l.Cluster == "" {
		return name
	}
	return strings.TrimSpace(name + " on " + l.Cluster)
}

func attempt(l line) string {
	if l.Attempt <= 1 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", l.Attempt)
}

func bracket(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func sub(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

func number(v any) float64 {
	f, _ := v.(float64)
	return f
}
