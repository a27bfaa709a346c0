package main

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/shared/record"
)

const (
	// columnNodes is how many of a column are drawn; the rest is one node.
	columnNodes = 12
	nodeWidth   = 290
	nodeHeight  = 28
	rowHeight   = 36
	columnGap   = 110
	// labelLength is how much of a name fits.
	labelLength = 36
	others      = "others"
)

// edge leads from a node of one column to one of the next.
type edge struct{ from, to string }

// flowGraph is what the picture shows: who woke whom, and what that changed.
type flowGraph struct {
	columns [3]map[string]int
	edges   [2]map[edge]int
	bad     map[string]int
}

func graphOf(headers []record.Header) flowGraph {
	g := flowGraph{bad: map[string]int{}}
	for i := range g.columns {
		g.columns[i] = map[string]int{}
	}
	for i := range g.edges {
		g.edges[i] = map[edge]int{}
	}
	for _, h := range headers {
		source, _, _ := strings.Cut(cmp.Or(h.Trigger, h.EventType, "a person"), " ")
		g.columns[0][source]++
		g.columns[1][h.Function]++
		g.edges[0][edge{source, h.Function}]++
		if h.Result.Class == "retry" || h.Result.Class == "terminal" {
			g.bad[h.Function]++
		}
		for _, written := range h.Written {
			parts := strings.Fields(written)
			if len(parts) < 2 {
				continue
			}
			g.columns[2][parts[1]]++
			g.edges[1][edge{h.Function, parts[1]}]++
		}
	}
	return g
}

// drawFlow draws the flow. The table below it says the same in words.
func drawFlow(headers []record.Header) template.HTML {
	if len(headers) == 0 {
		return ""
	}
	g := graphOf(headers)
	var places [3]map[string]int
	rows := 1
	var nodes strings.Builder
	for i, counts := range g.columns {
		x := i * (nodeWidth + columnGap)
		fmt.Fprintf(&nodes, `<text class="head" x="%d" y="16">%s</text>`, x, [...]string{"Woken by", "Function", "Changed"}[i])
		names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
		places[i] = map[string]int{}
		for n, name := range names {
			row := min(n, columnNodes-1)
			places[i][name] = row
			switch {
			case n > row:
				continue
			case n == columnNodes-1 && len(names) > columnNodes:
				g.node(&nodes, x, row, 0, fmt.Sprintf("%d %s", len(names)-n, others), 0)
			case i == 1:
				g.node(&nodes, x, row, counts[name], name, g.bad[name])
			default:
				g.node(&nodes, x, row, counts[name], name, 0)
			}
			rows = max(rows, row+1)
		}
	}
	width, height := 3*nodeWidth+2*columnGap+2, 26+rows*rowHeight
	title := fmt.Sprintf("The last %s: %s woke %s, which changed objects of %s.", count(len(headers), "reconcile"),
		count(len(g.columns[0]), "source"), count(len(g.columns[1]), "function"), count(len(g.columns[2]), "kind"))
	return template.HTML(fmt.Sprintf(`<p class="faint">%s</p><div class="scroll" tabindex="0" role="group" aria-label="Picture of the flow"><svg class="flow" viewBox="-1 0 %d %d" role="img" aria-label="%s">%s%s</svg></div>`, //nolint:gosec // names are escaped below
		title, width, height, title, g.paths(places), nodes.String()))
}

// node draws a box with a name, how often it occurred and how often that failed.
func (g flowGraph) node(out *strings.Builder, x, row, n int, name string, failed int) {
	y := 26 + row*rowHeight
	class, tail := "", ""
	if n > 0 {
		tail = fmt.Sprint(n)
	}
	if failed > 0 {
		class, tail = ` class="bad"`, fmt.Sprintf("%d, %d failed", n, failed)
	}
	room := labelLength - len(tail)
	label := name
	if runes := []rune(name); len(runes) > room {
		label = string(runes[:room-1]) + "…"
	}
	fmt.Fprintf(out, `<g><title>%s</title><rect%s x="%d" y="%d" width="%d" height="%d" rx="5"/><text x="%d" y="%d">%s</text><text class="tail" x="%d" y="%d">%s</text></g>`,
		template.HTMLEscapeString(name), class, x, y, nodeWidth, nodeHeight, x+9, y+19, template.HTMLEscapeString(label), x+nodeWidth-9, y+19, tail)
}

// paths draws what leads from node to node: between two places one line, however many
// edges stand for it.
func (g flowGraph) paths(places [3]map[string]int) string {
	var out strings.Builder
	for i, edges := range g.edges {
		between := map[[2]int]int{}
		for e, n := range edges {
			between[[2]int{places[i][e.from], places[i+1][e.to]}] += n
		}
		for _, ends := range slices.SortedFunc(maps.Keys(between), func(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) }) {
			x1, x2 := i*(nodeWidth+columnGap)+nodeWidth, (i+1)*(nodeWidth+columnGap)
			y1, y2 := 26+ends[0]*rowHeight+nodeHeight/2, 26+ends[1]*rowHeight+nodeHeight/2
			fmt.Fprintf(&out, `<path d="M%d %d C%d %d %d %d %d %d" stroke-width="%.1f"/>`, x1, y1, x1+columnGap/2, y1, x2-columnGap/2, y2, x2, y2, 1+min(float64(between[ends])/2, 4))
		}
	}
	return out.String()
}
