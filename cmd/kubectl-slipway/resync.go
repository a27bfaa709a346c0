package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/shared/event"
)

// resynced tells that a resync was asked for.
type resynced struct {
	Function string `json:"function"`
	EventID  string `json:"eventId"`
}

func resyncCommand(o *options) *cobra.Command {
	var broker string
	cmd := &cobra.Command{
		Use:   "resync [FUNCTION...]",
		Short: "Let functions go through all their objects now",
		Long: `Sends a dev.slipway.resync event for each named function (all, if none is named)
to the broker. The function then lists what it reconciles page by page and
brings every object to what it asks for; nothing is written where nothing
differs.`,
		Example: `  # all functions
  kubectl slipway resync
  # one function of the local stack
  kubectl slipway resync machine-vm --broker http://127.0.0.1:PORT/slipway-system/default`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return functionNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, names []string) error {
			if len(names) == 0 {
				names = functionNames()
			}
			for _, name := range names {
				if err := checkFunction(name); err != nil {
					return err
				}
			}
			var sent []resynced
			for _, name := range names {
				id := fmt.Sprintf("resync-%s-%d", name, time.Now().UnixNano())
				if err := o.send(cmd.Context(), broker, event.Next(event.Resync{Function: name}, id, time.Now())); err != nil {
					return fmt.Errorf("cannot ask for a resync of %s: %w", name, err)
				}
				sent = append(sent, resynced{Function: name, EventID: id})
			}
			return o.print(sent, func(w io.Writer) {
				for _, s := range sent {
					_, _ = fmt.Fprintf(w, "resync of %s asked for (event %s)\n", s.Function, s.EventID)
				}
			})
		},
	}
	cmd.Flags().StringVar(&broker, "broker", os.Getenv("SLIPWAY_BROKER"),
		"URL of the broker's ingress; empty reaches it through the API server's service proxy (env SLIPWAY_BROKER)")
	return cmd
}
