package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

func consoleCommand(o *options) *cobra.Command {
	var from, listen, token string
	var offline bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve a web page that shows the flow of events, and each reconcile's decision",
		Long: `Serves a page on this machine: what wakes which function and what it changes, as it happens;
the timeline of each object; the decision, the reasons and the differences of each reconcile;
the dead letters. A button replays a reconcile offline, or plans it on the live cluster with
your rights. The page writes nothing anywhere.

It listens on the loopback address only. In a cluster it runs with the component
deploy/components/console, and is reached by kubectl port-forward: so the API server asks who
comes.`,
		Example: `  # of the local stack
  kubectl slipway console --from .local/default`,
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := o.history(from)
			if err != nil {
				return err
			}
			if token != "" {
				if err := byTokenFile(h, token); err != nil {
					return err
				}
			}
			c, err := newConsole(o, h)
			if err != nil {
				return err
			}
			c.offline = offline
			return c.serve(cmd.Context(), listen)
		},
	}
	historyFlag(cmd, &from)
	cmd.Flags().StringVar(&token, "token-file", "", "file with the token for the archive named by --from")
	cmd.Flags().BoolVar(&offline, "offline", false, "replay offline only: never ask the live cluster")
	_ = cmd.MarkFlagFilename("token-file")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "loopback address to serve on; port 0 takes a free one")
	return cmd
}

// serve listens until the context ends.
func (c *console) serve(ctx context.Context, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("cannot listen on %q: write HOST:PORT: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("cannot listen on %q: the console asks nobody who he is, so it listens on a loopback address like 127.0.0.1 only", address)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen on %q: %w", address, err)
	}
	server := &http.Server{
		Handler: c.handler(), ReadHeaderTimeout: 5 * time.Second,
		// What streams ends with the command.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	fmt.Fprintf(c.options.out, "http://%s/\n", listener.Addr())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("the console ended: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if err := server.Shutdown(stop); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("cannot stop the console: %w", err)
	}
	return nil
}
