// Command kubectl-slipway is the command line of Slipway; on PATH it is the
// kubectl plugin `kubectl slipway`. Under the name kubectl_complete-slipway, a link to
// it completes what is typed after that, as kubectl asks of plugins.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/shared/render/worker"
)

func main() {
	worker.Hook()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := newCommand(os.Stdout)
	cmd.SetArgs(arguments(os.Args))
	if err := cmd.ExecuteContext(ctx); err != nil {
		var code exitCode
		if errors.As(err, &code) {
			os.Exit(int(code))
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// arguments are those of the command line; kubectl asks for completions under another
// name.
func arguments(argv []string) []string {
	if filepath.Base(argv[0]) == "kubectl_complete-slipway" {
		return append([]string{cobra.ShellCompRequestCmd}, argv[1:]...)
	}
	return argv[1:]
}
