// Command withetcd runs a command with an etcd for its tests: it starts one, names
// it in SLIPWAY_TEST_ETCD, and ends with the command's exit code.
//
//	go run ./test/kube/withetcd -- go test ./...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

// grace is how long the command may take to end after an interrupt.
const grace = 30 * time.Second

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withetcd -- COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	err := run(args)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if os.Getenv(kubetest.EtcdVariable) != "" {
		return command(ctx, args)
	}
	root, err := build.Root(".")
	if err != nil {
		return err
	}
	if err := build.Binaries(ctx, build.Options{Root: root, Out: os.Stderr}, "kube"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "slipway-etcd-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for etcd: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(root, filepath.FromSlash(build.DefaultBin), "kube")
	etcd, err := kube.StartEtcd(ctx, kube.EtcdOptions{Binary: binary, Dir: dir})
	if err != nil {
		return err
	}
	defer etcd.Stop()
	return command(ctx, args, kubetest.EtcdVariable+"="+etcd.URL)
}

// command runs the command with further variables in its environment.
func command(ctx context.Context, args []string, variables ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // running what it is told to is what this command is for
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), variables...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = grace
	return cmd.Run()
}
