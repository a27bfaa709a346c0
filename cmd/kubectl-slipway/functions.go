package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway"
)

// functionRow is what is told of one function.
type functionRow struct {
	Name       string   `json:"name"`
	Reconciles string   `json:"reconciles"`
	WokenBy    []string `json:"wokenBy"`
	Summary    string   `json:"summary"`
}

func functionsCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "functions", Short: "List the functions, what they reconcile and what wakes them", Args: cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			rows := functionRows()
			return o.print(rows, func(w io.Writer) {
				table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
				_, _ = fmt.Fprintln(table, "NAME\tRECONCILES\tWOKEN BY")
				for _, row := range rows {
					_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", row.Name, row.Reconciles, strings.Join(row.WokenBy, ","))
				}
				_ = table.Flush()
			})
		},
	}
}

func functionRows() []functionRow {
	var rows []functionRow
	for _, spec := range slipway.Specs() {
		row := functionRow{Name: spec.Name, Reconciles: spec.Reconciles.String(), Summary: spec.Summary}
		for _, watch := range spec.Watches {
			if name := watch.Resource.String(); !slices.Contains(row.WokenBy, name) {
				row.WokenBy = append(row.WokenBy, name)
			}
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b functionRow) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

// completeFunction completes the flag --function.
func completeFunction(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("function", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return functionNames(), cobra.ShellCompDirectiveNoFileComp
	})
}
