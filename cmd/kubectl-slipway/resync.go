package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

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
				if err := o.post(cmd.Context(), broker, name, id); err != nil {
					return err
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

// post sends one resync event to the broker.
func (o *options) post(ctx context.Context, broker, function, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, url := http.DefaultClient, broker
	if broker == "" {
		config, err := o.config()
		if err != nil {
			return err
		}
		if client, err = rest.HTTPClientFor(config); err != nil {
			return fmt.Errorf("cannot connect to the cluster: %w", err)
		}
		server, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return fmt.Errorf("cannot connect to the cluster: %w", err)
		}
		url = strings.TrimSuffix(server.String(), "/") +
			"/api/v1/namespaces/knative-eventing/services/http:broker-ingress:80/proxy/" + o.namespace + "/default"
	}
	next := event.Next(event.Resync{Function: function}, id, time.Now())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(next.Data()))
	if err != nil {
		return fmt.Errorf("cannot use broker %q: %w", broker, err)
	}
	for name, value := range map[string]string{
		"Ce-Specversion": next.SpecVersion(), "Ce-Id": id, "Ce-Type": next.Type(), "Ce-Source": next.Source(),
		"Ce-Function": function, "Ce-Time": next.Time().Format(time.RFC3339Nano), "Content-Type": "application/json",
	} {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot reach the broker: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		return fmt.Errorf("cannot ask for a resync of %s: the broker at %s answered %s: %s", function, url, resp.Status, bytes.TrimSpace(text))
	}
	return nil
}
