package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/shared/record"
)

// followPeriod is how often a followed list is asked for again: an archive cannot call.
const followPeriod = time.Second

// eventsOptions are the flags of the command.
type eventsOptions struct {
	*options
	from, function string
	follow, all    bool
	limit          int
}

func eventsCommand(o *options) *cobra.Command {
	e := &eventsOptions{options: o}
	cmd := &cobra.Command{
		Use:   "events [KIND[/NAME]]",
		Short: "List recorded reconciles with their outcome, duration and writes",
		Long: `Lists the reconciles that were recorded: what woke which function, what it came to, how
long it took and how many writes it made. The last column is the name that replay takes.

What is recorded, the functions' settings and the annotation slipway.dev/record say; see
kubectl slipway record --help.`,
		Example: `  # the last reconciles of one object, and new ones as they come
  kubectl slipway events machine/web -n team-a --follow
  # of one function of the local stack
  kubectl slipway events --function machine-vm --from .local/default`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeKinds,
		RunE: func(cmd *cobra.Command, args []string) error { return e.run(cmd.Context(), args) },
	}
	historyFlag(cmd, &e.from)
	flags := cmd.Flags()
	flags.StringVar(&e.function, "function", "", "reconciles of this function only")
	flags.BoolVarP(&e.follow, "follow", "f", false, "go on with new ones as they come")
	flags.BoolVarP(&e.all, "all-namespaces", "A", false, "of objects in all namespaces")
	flags.IntVar(&e.limit, "limit", 50, "how many of the newest are shown; 0 shows all")
	completeFunction(cmd)
	return cmd
}

// completeKinds offers the kinds that functions reconcile.
func completeKinds(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var kinds []string
	for _, spec := range slipway.Specs() {
		kinds = append(kinds, strings.ToLower(spec.Reconciles.Kind)+"/")
	}
	return kinds, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// filter is what the arguments ask for.
func (e *eventsOptions) filter(args []string) (record.Filter, error) {
	f := record.Filter{Function: e.function, Limit: e.limit}
	if e.function != "" {
		if err := checkFunction(e.function); err != nil {
			return f, err
		}
	}
	if len(args) > 0 {
		kindName, name, named := strings.Cut(args[0], "/")
		spec, err := reconcilerOf(kindName)
		if err != nil {
			return f, err
		}
		f.Kind, f.Name = spec.Reconciles.Kind, name
		if named && name != "" && spec.Reconciles.Namespaced && !e.all {
			f.Namespace = e.objectNamespace()
		}
	}
	if e.all {
		f.Namespace = ""
	} else if e.namespace != "" {
		f.Namespace = e.namespace
	}
	return f, nil
}

func (e *eventsOptions) run(ctx context.Context, args []string) error {
	f, err := e.filter(args)
	if err != nil {
		return err
	}
	h, err := e.history(e.from)
	if err != nil {
		return err
	}
	list, err := h.headers(ctx, f)
	if err != nil {
		return err
	}
	if !e.follow {
		return e.print(append([]record.Header{}, list...), func(w io.Writer) {
			if len(list) == 0 {
				fmt.Fprintln(w, "No reconcile is recorded. See kubectl slipway record --help.")
				return
			}
			e.table(w, true, list)
		})
	}
	return e.stream(ctx, h, f, list)
}

// stream prints new reconciles until the context ends.
func (e *eventsOptions) stream(ctx context.Context, h history, f record.Filter, list []record.Header) error {
	first := true
	f.Limit = 0
	ticker := time.NewTicker(followPeriod)
	defer ticker.Stop()
	for {
		if len(list) > 0 {
			f.After = list[len(list)-1].ID
		}
		switch e.output {
		case "json", "yaml":
			for _, header := range list {
				if err := json.NewEncoder(e.out).Encode(header); err != nil {
					return err
				}
			}
		default:
			if len(list) > 0 || first {
				e.table(e.out, first, list)
			}
		}
		first = false
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		var err error
		if list, err = h.headers(ctx, f); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// columns are of a fixed width, so that what follows stands below what came before.
const columns = "%-23s  %-22s %-28s %-8s %-22s %8s %6s  %s"

func (e *eventsOptions) table(w io.Writer, head bool, list []record.Header) {
	if e.follow {
		if head {
			fmt.Fprintf(w, columns+"\n", "TIME", "FUNCTION", "OBJECT", "OUTCOME", "REASON", "MS", "WRITES", "NAME")
		}
		for _, h := range list {
			fmt.Fprintf(w, columns+"\n", h.Time.Local().Format("2006-01-02 15:04:05.000"), h.Function, h.Kind+" "+h.Object(), h.Result.Class, h.Result.Reason,
				fmt.Sprintf("%.1f", h.DurationMs), fmt.Sprint(h.WriteCount), h.ID)
		}
		return
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	wide := e.output == "wide"
	fmt.Fprint(table, "TIME\tFUNCTION\tOBJECT\tOUTCOME\tREASON\tMS\tREADS\tWRITES\tNAME")
	if wide {
		fmt.Fprint(table, "\tEVENT\tEVENT ID\tMODE\tVERSION\tTRACE\tWRITTEN")
	}
	fmt.Fprintln(table)
	for _, h := range list {
		fmt.Fprintf(table, "%s\t%s\t%s %s\t%s\t%s\t%.1f\t%d\t%d\t%s", h.Time.Local().Format("15:04:05.000"), h.Function, h.Kind, h.Object(),
			h.Result.Class, h.Result.Reason, h.DurationMs, h.ReadCount, h.WriteCount, h.ID)
		if wide {
			fmt.Fprintf(table, "\t%s\t%s\t%s\t%s\t%s\t%s", cmp.Or(h.Trigger, h.EventType), h.EventID, h.Mode, h.Version, h.TraceID, strings.Join(h.Written, "; "))
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
}
