// Command shell brings up the cluster of the end-to-end test, and opens a shell in which
// kubectl reaches it. When the shell ends, so does the cluster.
//
//	go run ./test/cluster/shell                  a shell
//	go run ./test/cluster/shell -- ./my-script   one command instead
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/test/cluster"
	"github.com/slipway-dev/slipway/test/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	flag.Parse()
	if err := run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "shell:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command []string) (err error) {
	root, err := build.Root(".")
	if err != nil {
		return err
	}
	if err := node.Probe(ctx, cluster.State(root)); err != nil {
		return fmt.Errorf("this machine cannot run a node: %w", err)
	}
	c, err := cluster.Up(ctx, root, os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if len(command) == 0 {
		command = []string{"/bin/bash"}
	}
	fmt.Fprintf(os.Stderr, "\n  $KUBECTL is %s\n  the end of the shell is the end of the cluster\n\n", c.KubectlCommand())
	shell := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // what was asked for
	shell.Env = append(os.Environ(), "KUBECTL="+c.KubectlCommand(), "LOGS="+filepath.Dir(c.LogFile("x")))
	shell.Stdin, shell.Stdout, shell.Stderr = os.Stdin, os.Stdout, os.Stderr
	return shell.Run()
}
