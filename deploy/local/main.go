// Command local is Slipway on one machine.
//
//	go run ./deploy/local              bring it up, submit the samples, show every event
//	go run ./deploy/local --once       the same, wait until the samples are Ready, print a table, exit
//	go run ./deploy/local build        build what the tests need; --all: every program
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stack"
)

type flags struct {
	once          bool
	sample, data  string
	port          int
	idle, timeout time.Duration
	disable       []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The second Ctrl-C ends the program at once.
	context.AfterFunc(ctx, stop)
	if err := command().ExecuteContext(ctx); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "error:", err)
		}
		os.Exit(1)
	}
}

func command() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use: "local", Short: "Slipway on one machine", Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), f) },
	}
	set := cmd.Flags()
	set.BoolVar(&f.once, "once", false, "wait until the samples are Ready, print a table, exit")
	set.StringVar(&f.sample, "sample", "vitistack", "folder of deploy/samples to submit; empty submits none")
	set.StringVar(&f.data, "data", "", "directory for all state; default .local/default, or one that is removed at the end with --once")
	set.IntVar(&f.port, "port", 0, "port of the API server; 0 takes a free one")
	set.DurationVar(&f.idle, "idle", 30*time.Second, "how long a function rests before its process is stopped")
	set.DurationVar(&f.timeout, "timeout", 2*time.Minute, "with --once: how long the samples may take to be Ready")
	set.StringSliceVar(&f.disable, "disable", nil, "functions that are never started")
	cmd.AddCommand(buildCommand())
	return cmd
}

func buildCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "build", Short: "Build the programs that the stack and the tests run", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := build.Root(".")
			if err != nil {
				return err
			}
			functions, err := build.Functions(root)
			if err != nil {
				return err
			}
			names := append(stack.Binaries, functions...)
			if all {
				names = append(names, "source-adapter", "kubectl-slipway")
			}
			return build.Binaries(cmd.Context(), build.Options{Root: root, Out: os.Stderr}, names...)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every program, also those that only a real cluster needs")
	return cmd
}

func run(ctx context.Context, f *flags) error {
	root, err := build.Root(".")
	if err != nil {
		return err
	}
	samples, err := samples(root, f.sample)
	if err != nil {
		return err
	}
	data, cleanUp, err := dataDir(root, f)
	if err != nil {
		return err
	}
	defer cleanUp()
	s, err := stack.Start(ctx, stack.Options{
		Root: root, Data: data, Port: f.port, Idle: f.idle, Disable: f.disable, Out: os.Stdout, Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	defer func() { fmt.Println("stopping"); s.Stop() }()
	fmt.Printf("\n  export KUBECONFIG=%s\n  export SLIPWAY_BROKER=%s\n  logs: %s\n\n", relative(s.Cluster.Kubeconfig), s.Broker, relative(data))
	if err := s.Apply(ctx, samples...); err != nil {
		return err
	}
	if !f.once {
		fmt.Println("Ctrl-C stops everything.")
		return s.Failed(ctx)
	}
	wanted := withConditions(samples)
	waited := s.WaitReady(ctx, f.timeout, wanted...)
	table, err := s.Kubectl(ctx, "get", strings.Join(kinds(wanted), ",")+",virtualmachines,virtualmachineinstances,persistentvolumeclaims", "-A")
	if err == nil {
		fmt.Printf("\n%s\n", table)
	}
	return errors.Join(waited, err)
}

func samples(root, name string) ([]*unstructured.Unstructured, error) {
	if name == "" {
		return nil, nil
	}
	folder := filepath.Join(root, "deploy", "samples", name)
	objects, err := kube.ReadFiles(folder)
	if err != nil {
		return nil, fmt.Errorf("cannot find sample %q in deploy/samples: %w", name, err)
	}
	for _, obj := range objects {
		if obj.GetNamespace() == "" && obj.GetKind() != "Namespace" && obj.GetKind() != "MachineClass" && obj.GetKind() != "KubevirtConfig" {
			obj.SetNamespace("default")
		}
	}
	return objects, nil
}

// withConditions are the sample objects that a function makes Ready.
func withConditions(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range objects {
		if obj.GetKind() == "Machine" {
			out = append(out, obj)
		}
	}
	return out
}

func kinds(objects []*unstructured.Unstructured) []string {
	seen := map[string]bool{}
	var names []string
	for _, obj := range objects {
		gvk := obj.GroupVersionKind()
		if name := strings.ToLower(gvk.Kind) + "s." + gvk.Group; !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// dataDir is where the state lies, and what removes it.
func dataDir(root string, f *flags) (string, func(), error) {
	keep := func() {}
	if f.data != "" {
		data, err := filepath.Abs(f.data)
		if err != nil {
			return "", keep, fmt.Errorf("cannot use --data %q: %w", f.data, err)
		}
		return data, keep, mkdir(data)
	}
	if !f.once {
		data := filepath.Join(root, ".local", "default")
		return data, keep, mkdir(data)
	}
	if err := mkdir(filepath.Join(root, ".local")); err != nil {
		return "", keep, err
	}
	data, err := os.MkdirTemp(filepath.Join(root, ".local"), "once-")
	if err != nil {
		return "", keep, fmt.Errorf("cannot make a directory for the state: %w", err)
	}
	return data, func() { _ = os.RemoveAll(data) }, nil
}

func mkdir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the directory for the state: %w", err)
	}
	return nil
}

// relative shortens a path for people.
func relative(path string) string {
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil && !strings.HasPrefix(rel, "..") {
			return rel
		}
	}
	return path
}
