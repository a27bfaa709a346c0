package main

import (
	"bytes"
	"fmt"
	"html/template"
	"strings"

	"github.com/slipway-dev/slipway/shared/record"
)

type shownDecision struct {
	Title          string
	Reasons, Needs []string
	Nothing        bool
	Entries        []shownEntry
}

type shownEntry struct {
	Verb, Object, Result, Reason, Fault string
	Diff                                template.HTML
}

func recordingOf(r *record.Recording) page {
	p := page{Title: r.Header.Function + " of " + r.Header.Kind + " " + r.Header.Object(), Recording: r}
	for i, d := range r.Decisions {
		shown := shownDecision{
			Title: fmt.Sprintf("Decision %d", i+1), Reasons: d.Reasons, Needs: d.Needs, Nothing: len(d.Stages) == 0 && len(d.Needs) == 0,
		}
		for _, stage := range d.Stages {
			for _, e := range stage.Entries {
				entry := shownEntry{Verb: e.Verb, Object: e.Resource + " " + e.Name + where(e.Cluster), Result: told(e.Result, r.Header.Mode), Reason: e.Reason}
				if e.Fault != nil {
					entry.Fault = e.Fault.Error()
				}
				if e.Result != "unchanged" {
					entry.Diff = diffHTML(entryDiff(r, e))
				}
				shown.Entries = append(shown.Entries, entry)
			}
		}
		p.Decisions = append(p.Decisions, shown)
	}
	if r.Conclusion != nil && r.Conclusion.StatusResult != "" {
		p.StatusTold, p.StatusDiff = told(r.Conclusion.StatusResult, r.Header.Mode), diffHTML(statusDiff(r))
	}
	return p
}

// longDiff is how many lines of a difference are shown at once.
const longDiff = 40

// diffHTML is a diff whose lines tell by more than colour what they are. A long one is
// folded.
func diffHTML(text string) template.HTML {
	var body bytes.Buffer
	indent(&body, "", text)
	if body.Len() == 0 {
		return ""
	}
	var out strings.Builder
	plus, minus, lines := 0, 0, 0
	out.WriteString("<pre class=\"diff\" tabindex=\"0\" aria-label=\"Difference\"><code>")
	for line := range strings.Lines(body.String()) {
		line = strings.TrimSuffix(line, "\n")
		tag, class := "span", " class=\"same\""
		lines++
		switch {
		case strings.HasPrefix(line, "@@"):
			class = " class=\"faint\""
		case strings.HasPrefix(line, "+"):
			tag, class = "ins", ""
			plus++
		case strings.HasPrefix(line, "-"):
			tag, class = "del", ""
			minus++
		}
		fmt.Fprintf(&out, "<%s%s>%s</%s>", tag, class, template.HTMLEscapeString(line), tag)
	}
	out.WriteString("</code></pre>")
	if lines > longDiff {
		return template.HTML(fmt.Sprintf("<details><summary>%s added, %d removed</summary>%s</details>", count(plus, "line"), minus, out.String())) //nolint:gosec // every line is escaped above
	}
	return template.HTML(out.String()) //nolint:gosec // every line is escaped above
}
