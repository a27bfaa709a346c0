package main

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/test/subjects"
)

// plots is where draw puts its pictures.
const plots = "docs/performance"

// bar is one value of a chart; a second, lighter one may go on from it.
type bar struct {
	label        string
	value, other float64
	// aim is a mark on the bar's line; 0 for none.
	aim float64
}

// chart is a picture of horizontal bars.
type chart struct {
	title, unit string
	// value and other are what the two colours mean.
	value, other string
	format       string
	bars         []bar
}

const (
	rowHeight, labelWidth, barWidth, margin = 24, 190, 460, 16
)

// svg draws a chart; its colours follow what the reader's system prefers.
func (c chart) svg() string {
	largest := 0.
	for _, b := range c.bars {
		largest = max(largest, b.value, b.other, b.aim)
	}
	scale := barWidth / largest
	top := 52
	height := top + len(c.bars)*rowHeight + margin
	width := labelWidth + barWidth + 90
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n", width, height, width, height, html.EscapeString(c.title))
	s.WriteString(`<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 14px; }
.value { fill: #0969da; } .other { fill: #a5c8f0; } .aim { stroke: #bc4c00; stroke-width: 2; } .note { fill: #59636e; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .value { fill: #4493f8; } .other { fill: #1f4b80; } .aim { stroke: #f0883e; } .note { fill: #9198a1; }
}
</style>
`)
	fmt.Fprintf(&s, `<text class="title" x="%d" y="20">%s</text>`+"\n", margin, html.EscapeString(c.title))
	legend := c.value
	if c.other != "" {
		legend += " (dark), " + c.other + " (light)"
	}
	fmt.Fprintf(&s, `<text class="note" x="%d" y="38">%s</text>`+"\n", margin, html.EscapeString(legend+", "+c.unit+"; the upright mark is the aim"))
	for i, b := range c.bars {
		y := top + i*rowHeight
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", labelWidth-8, y+15, html.EscapeString(b.label))
		if b.other > 0 {
			fmt.Fprintf(&s, `<rect class="other" x="%d" y="%d" width="%.1f" height="%d"/>`+"\n", labelWidth, y+3, b.other*scale, rowHeight-8)
		}
		fmt.Fprintf(&s, `<rect class="value" x="%d" y="%d" width="%.1f" height="%d"/>`+"\n", labelWidth, y+3, b.value*scale, rowHeight-8)
		if b.aim > 0 {
			x := labelWidth + b.aim*scale
			fmt.Fprintf(&s, `<line class="aim" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`+"\n", x, x, y, y+rowHeight-2)
		}
		text := fmt.Sprintf(c.format, b.value)
		if b.other > 0 {
			text += " · " + fmt.Sprintf(c.format, b.other)
		}
		fmt.Fprintf(&s, `<text x="%.1f" y="%d">%s</text>`+"\n", labelWidth+max(b.value, b.other, b.aim)*scale+6, y+15, text)
	}
	s.WriteString("</svg>\n")
	return s.String()
}

// aims are those of the plan: the renderer brings another language along.
func aims(function string) (ratio, startMs, idleMiB float64) {
	if function == "workload-renderer" {
		return .5, 60, 45
	}
	return .8, 30, 30
}

// readReport reads a report that save wrote.
func readReport(path string) (*report, error) {
	raw, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	r := &report{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return r, nil
}

// draw makes the plots of docs/performance.md out of a report, and prints its tables.
func draw(path string) error {
	root, err := build.Root(".")
	if err != nil {
		return err
	}
	r, err := readReport(path)
	if err != nil {
		return err
	}
	r.print(os.Stdout)
	r.scale(os.Stdout)
	if err := os.MkdirAll(filepath.Join(root, plots), 0o750); err != nil {
		return err
	}
	for name, c := range r.charts() {
		if err := os.WriteFile(filepath.Join(root, plots, name+".svg"), []byte(c.svg()), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (r *report) charts() map[string]chart {
	const mib = 1 << 20
	ratio := chart{title: "Throughput beside a raw client", unit: "1 = as fast as the client", value: "same requests", format: "%.2f"}
	start := chart{title: "Process start", unit: "ms, median", value: "ready", other: "first decision", format: "%.0f"}
	memory := chart{title: "Resident memory", unit: "MiB", value: "idle", other: "after 50 objects", format: "%.0f"}
	for _, name := range subjects.Functions() {
		m := r.Functions[name]
		if m == nil {
			continue
		}
		fast, soon, small := aims(name)
		ratio.bars = append(ratio.bars, bar{label: name, value: m.ThroughputRatio, aim: fast})
		start.bars = append(start.bars, bar{label: name, value: m.StartMs.P50, other: m.FirstMs.P50, aim: soon})
		memory.bars = append(memory.bars, bar{label: name, value: float64(m.ResidentIdle) / mib, other: float64(m.ResidentLoaded) / mib, aim: small})
	}
	all := map[string]chart{"ratio": ratio, "start": start, "memory": memory}
	if len(r.Growth) > 0 {
		each := chart{title: "One object among many", unit: "ms of wall clock at ten at once", value: "nothing to do", other: "made", format: "%.1f"}
		peak := chart{title: "Peak memory with many objects", unit: "MiB", value: "peak of the process", format: "%.0f"}
		for _, g := range r.Growth {
			label := fmt.Sprintf("%s × %d", g.Function, g.Objects)
			n := float64(g.Objects)
			each.bars = append(each.bars, bar{label: label, value: 1000 * g.AgainSeconds / n, other: 1000 * g.Seconds / n})
			peak.bars = append(peak.bars, bar{label: label, value: float64(g.PeakBytes) / mib, aim: 128})
		}
		all["growth"], all["peak"] = each, peak
	}
	if r.Latency != nil {
		late := chart{title: "From a change to what is made of it", unit: "ms, through the real source and broker", value: "median", other: "99th percentile", format: "%.0f"}
		for _, w := range r.Latency.Worktrees {
			late.bars = append(late.bars, bar{label: fmt.Sprintf("Worktree, %.0f a second", w.Rate), value: w.Took.P50, other: w.Took.P99, aim: 30})
		}
		late.bars = append(late.bars, bar{label: "Machine, one by one", value: r.Latency.Machine.P50, other: r.Latency.Machine.P99, aim: 30})
		all["latency"] = late
	}
	return all
}
