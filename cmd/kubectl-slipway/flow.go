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
	nodeWidth   = 270
	nodeHeight  = 26
	rowHeight   = 34
	columnGap   = 150
	others      = "others"
)

// edge leads from a node of one column to one of the next.
type edge struct{ from, to string }

// flowGraph is what the picture shows: who woke whom, and what that changed.
type flowGraph struct {
	columns [3]map[string]int
	edges   [2]map[edge]int
	bad     map[string]bool
}

func graphOf(headers []record.Header) flowGraph {
	g := flowGraph{bad: map[string]bool{}}
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
			g.bad[h.Function] = true
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
	g := graphOf(headers)
	var places [3]map[string]int
	rows := 1
	var body strings.Builder
	for i, counts := range g.columns {
		names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
		places[i] = map[string]int{}
		x := i * (nodeWidth + columnGap)
		fmt.Fprintf(&body, `<text class="head" x="%d" y="16">%s</text>`, x, [...]string{"Woken by", "Function", "Changed"}[i])
		for n, name := range names {
			row := min(n, columnNodes-1)
			places[i][name] = row
			if n > row {
				continue
			}
			label := fmt.Sprintf("%s  %d", name, counts[name])
			if n == columnNodes-1 && len(names) > columnNodes {
				label = fmt.Sprintf("%d %s", len(names)-n, others)
			}
			class := ""
			if i == 1 && g.bad[name] {
				class, label = ` class="bad"`, label+"  (some failed)"
			}
			y := 26 + row*rowHeight
			fmt.Fprintf(&body, `<rect%s x="%d" y="%d" width="%d" height="%d" rx="5"/><text x="%d" y="%d">%s</text>`,
				class, x, y, nodeWidth, nodeHeight, x+9, y+18, template.HTMLEscapeString(label))
			rows = max(rows, row+1)
		}
	}
	for i, edges := range g.edges {
		for _, e := range slices.SortedFunc(maps.Keys(edges), func(a, b edge) int {
			return cmp.Or(strings.Compare(a.from, b.from), strings.Compare(a.to, b.to))
		}) {
			x1, x2 := i*(nodeWidth+columnGap)+nodeWidth, (i+1)*(nodeWidth+columnGap)
			y1, y2 := 26+places[i][e.from]*rowHeight+nodeHeight/2, 26+places[i+1][e.to]*rowHeight+nodeHeight/2
			fmt.Fprintf(&body, `<path d="M%d %d C%d %d %d %d %d %d" stroke-width="%d"/>`, x1, y1, x1+columnGap/2, y1, x2-columnGap/2, y2, x2, y2, 1+min(edges[e], 6))
		}
	}
	width, height := 3*nodeWidth+2*columnGap+2, 26+rows*rowHeight
	title := fmt.Sprintf("The last %d reconciles: %d sources woke %d functions, which changed objects of %d kinds.",
		len(headers), len(g.columns[0]), len(g.columns[1]), len(g.columns[2]))
	return template.HTML(fmt.Sprintf(`<p class="faint">%s</p><svg class="flow" viewBox="0 0 %d %d" role="img" aria-label="%s">%s</svg>`, //nolint:gosec // names are escaped above
		title, width, height, title, body.String()))
}
