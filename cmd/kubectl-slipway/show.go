package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/slipway-dev/slipway/shared/record"
)

// show prints a reconcile for people: what woke it, what was decided and why, what that
// changes, what was asked of API servers, and what it came to.
func show(w io.Writer, r *record.Recording) {
	h := r.Header
	fmt.Fprintf(w, "%s of %s %s: %s%s\n", h.Function, h.Kind, h.Object(), h.Result.Class, within(h.Result.Reason))
	if h.Result.Message != "" {
		fmt.Fprintf(w, "  %s\n", h.Result.Message)
	}
	if h.EventType != "" {
		fmt.Fprintf(w, "  woken by %s %s (event %s)\n", h.EventType, h.Trigger, h.EventID)
	}
	fmt.Fprintf(w, "  mode %s, %d reads, %d writes, %.1f ms, version %s\n", h.Mode, h.ReadCount, h.WriteCount, h.DurationMs, h.Version)
	for i, d := range r.Decisions {
		fmt.Fprintf(w, "\nDecision %d\n", i+1)
		showDecision(w, r, d)
	}
	if len(r.Calls) > 0 {
		fmt.Fprintf(w, "\nRequests\n")
	}
	for _, c := range r.Calls {
		fmt.Fprintf(w, "  %s%s\n", c, verdictOf(c))
	}
	if c := r.Conclusion; c != nil {
		fmt.Fprintf(w, "\nConclusion: %s%s\n", c.Class, within(c.Reason))
		if c.Message != "" {
			fmt.Fprintf(w, "  %s\n", c.Message)
		}
		if c.StatusResult != "" {
			fmt.Fprintf(w, "  status %s\n", told(c.StatusResult, h.Mode))
			indent(w, "    ", statusDiff(r))
		}
		for _, e := range c.Events {
			fmt.Fprintf(w, "  event %s: %s\n", e.Reason, e.Message)
		}
	}
}

func showDecision(w io.Writer, r *record.Recording, d record.Decision) {
	for _, reason := range d.Reasons {
		fmt.Fprintf(w, "  because %s\n", reason)
	}
	for _, need := range d.Needs {
		fmt.Fprintf(w, "  has to know first: %s\n", need)
	}
	if len(d.Stages) == 0 && len(d.Needs) == 0 {
		fmt.Fprintln(w, "  nothing has to be written")
	}
	for _, stage := range d.Stages {
		fmt.Fprintf(w, "  %s\n", stage.Name)
		for _, e := range stage.Entries {
			fmt.Fprintf(w, "    %s %s %s%s: %s\n", e.Verb, e.Resource, e.Name, where(e.Cluster), told(e.Result, r.Header.Mode))
			if e.Reason != "" {
				fmt.Fprintf(w, "      because %s\n", e.Reason)
			}
			if e.Fault != nil {
				fmt.Fprintf(w, "      %s\n", e.Fault.Error())
			}
			if e.Result != "unchanged" {
				indent(w, "      ", entryDiff(r, e))
			}
		}
	}
	if d.Conflict {
		fmt.Fprintln(w, "  the world moved meanwhile: it is gathered and decided again")
	}
}

func within(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func where(cluster string) string {
	if cluster == "" {
		return ""
	}
	return " on cluster " + cluster
}

// told says what became of an intended write; what a mode held back is what would be
// written.
func told(result, mode string) string {
	switch {
	case result == "skipped" && mode != "apply" && mode != "":
		return "would be written"
	case result == "":
		return "not reached"
	}
	return result
}

func verdictOf(c record.Call) string {
	switch {
	case c.Fault != nil && c.Fault.Code != 0:
		return fmt.Sprintf(": %d %s", c.Fault.Code, c.Fault.Message)
	case c.Fault != nil:
		return ": " + c.Fault.Message
	case c.Verb == "remembered" && c.Same:
		return ": known to change nothing"
	}
	return ": done"
}

// entryDiff is what an intended write changes of the object as it was read.
func entryDiff(r *record.Recording, e record.Entry) string {
	base := baseOf(r, e)
	switch {
	case e.Verb == "delete":
		return ""
	case e.Verb == "apply" && base != nil:
		base = shapedLike(base, e.Object)
	}
	return objectDiff(e.Resource+" "+e.Name, base, e.Object)
}

// baseOf is the object that a decision was based on.
func baseOf(r *record.Recording, e record.Entry) map[string]any {
	if e.Base == "" {
		return nil
	}
	var found map[string]any
	look := func(obj map[string]any) {
		m, _ := obj["metadata"].(map[string]any)
		name, _ := m["name"].(string)
		if namespace, _ := m["namespace"].(string); namespace != "" {
			name = namespace + "/" + name
		}
		if name == e.Name && m["resourceVersion"] == e.Base {
			found = obj
		}
	}
	for _, read := range r.Reads {
		if read.Cluster != e.Cluster || read.Resource != e.Resource {
			continue
		}
		if read.Object != nil {
			look(read.Object)
		}
		for _, item := range read.Items {
			look(item)
		}
	}
	return found
}

// shapedLike keeps of an object what an intent speaks of.
func shapedLike(value, intent map[string]any) map[string]any {
	out := map[string]any{}
	for key, want := range intent {
		have, ok := value[key]
		if !ok {
			continue
		}
		wantMap, isMap := want.(map[string]any)
		haveMap, both := have.(map[string]any)
		if isMap && both {
			have = shapedLike(haveMap, wantMap)
		}
		out[key] = have
	}
	return out
}

func statusDiff(r *record.Recording) string {
	var old map[string]any
	for _, read := range r.Reads {
		if read.Question == "get" && read.Cluster == "" && read.Name == r.Header.Name && read.Namespace == r.Header.Namespace && read.Object["kind"] == r.Header.Kind {
			old, _ = read.Object["status"].(map[string]any)
		}
	}
	return objectDiff("status", old, r.Conclusion.Status)
}

// bookkeeping are fields that say nothing about what somebody wants.
var bookkeeping = []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"}

func objectDiff(name string, from, to map[string]any) string {
	return string(diff.Diff(name, document(from), name, document(to)))
}

// document is an object without its bookkeeping, as YAML.
func document(obj map[string]any) []byte {
	if len(obj) == 0 {
		return nil
	}
	clean := map[string]any{}
	for key, value := range obj {
		clean[key] = value
	}
	if metadata, ok := clean["metadata"].(map[string]any); ok {
		kept := map[string]any{}
		for key, value := range metadata {
			kept[key] = value
		}
		for _, key := range bookkeeping {
			delete(kept, key)
		}
		clean["metadata"] = kept
	}
	text, err := record.YAML(clean)
	if err != nil {
		return nil
	}
	return text
}

// indent prints a diff, without its heading.
func indent(w io.Writer, by, text string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "diff ") || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ") {
			continue
		}
		fmt.Fprint(w, by, line)
	}
}

// differences are what two reconciles came to differently; empty when nothing is.
func differences(recorded, replayed *record.Recording) (string, error) {
	want, err := recorded.Verdict()
	if err != nil {
		return "", err
	}
	got, err := replayed.Verdict()
	if err != nil || bytes.Equal(want, got) {
		return "", err
	}
	return string(diff.Diff("recorded by "+recorded.Header.Version, want, "replayed by "+replayed.Header.Version, got)), nil
}

// changes tells whether anything would be written.
func changes(r *record.Recording) bool {
	for _, d := range r.Decisions {
		for _, stage := range d.Stages {
			for _, e := range stage.Entries {
				if e.Result == "skipped" || e.Result == "created" || e.Result == "configured" || e.Result == "deleted" {
					return true
				}
			}
		}
	}
	c := r.Conclusion
	return c != nil && (c.StatusResult == "skipped" || c.StatusResult == "configured")
}
