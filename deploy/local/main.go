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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stack"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

type flags struct {
	once          bool
	sample, data  string
	port          int
	clusters      int
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
	set.IntVar(&f.clusters, "clusters", 1, "clusters that Machines run on: 1 is the supervisor itself, more are so many remote ones")
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
		Root: root, Data: data, Port: f.port, Clusters: f.clusters, Idle: f.idle, Disable: f.disable, Out: os.Stdout, Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	defer func() { fmt.Println("stopping"); s.Stop() }()
	fmt.Printf("\n  export KUBECONFIG=%s\n  export SLIPWAY_BROKER=%s\n  logs: %s\n", relative(s.Cluster.Kubeconfig), s.Broker, relative(data))
	for _, remote := range s.Remotes {
		fmt.Printf("  %s: .cache/bin/kube kubectl --kubeconfig %s get vm,vmi,pvc -A\n", remote.Name, relative(remote.Cluster.Kubeconfig))
	}
	fmt.Println()
	if err := s.Apply(ctx, samples...); err != nil {
		return err
	}
	if err := siblings(ctx, s, root, f.sample); err != nil {
		return err
	}
	if !f.once {
		fmt.Println("Ctrl-C stops everything.")
		return s.Failed(ctx)
	}
	wanted := reconciled(samples)
	if slices.ContainsFunc(wanted, isHyperConverged) {
		return awaitSample(ctx, s, f.timeout)
	}
	waited := s.WaitReady(ctx, f.timeout, wanted...)
	return errors.Join(waited, tables(ctx, s, wanted))
}

// siblings submits what controllers beside Slipway know of a sample: statuses, in its
// folder status.
func siblings(ctx context.Context, s *stack.Stack, root, sample string) error {
	folder := filepath.Join(root, "deploy", "samples", sample, "status")
	if _, err := os.Stat(folder); sample == "" || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	_, err := s.Kubectl(ctx, "apply", "--server-side", "--subresource=status", "-k", folder)
	return err
}

// tables print what has come to be: the samples, and what was made for them on
// each cluster.
func tables(ctx context.Context, s *stack.Stack, wanted []*unstructured.Unstructured) error {
	const made = "virtualmachines,virtualmachineinstances,persistentvolumeclaims"
	if len(s.Remotes) == 0 {
		table, err := s.Kubectl(ctx, "get", strings.Join(append(kinds(wanted), made), ","), "-A")
		fmt.Printf("\n%s\n", table)
		return err
	}
	samples := append(kinds(wanted), "kubevirtconfigs.vitistack.io")
	for _, args := range [][]string{
		{"get", strings.Join(samples, ","), "-A"},
		// A Machine's table does not tell its cluster.
		{"get", "machines.vitistack.io", "-A", "-o", "custom-columns=NAMESPACE:.metadata.namespace,MACHINE:.metadata.name," +
			"CLUSTER:.status.kubevirtConfigRef,PHASE:.status.phase,VM:.status.vmName,NODE:.status.nodeName,ADDRESS:.status.ipAddresses[0]"},
	} {
		table, err := s.Kubectl(ctx, args...)
		if err != nil {
			return err
		}
		fmt.Printf("\n%s", table)
	}
	for _, remote := range s.Remotes {
		table, err := s.KubectlOn(ctx, remote, "get", made, "-A")
		if err != nil {
			return err
		}
		fmt.Printf("\n%s:\n%s", remote.Name, table)
	}
	return nil
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
	return objects, nil
}

// reconciled are the sample objects that a function takes care of, and says so on:
// a Release has no conditions.
func reconciled(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range objects {
		if dockyards.Releases.Is(obj.GetAPIVersion(), obj.GetKind()) {
			continue
		}
		if slices.ContainsFunc(slipway.Specs(), func(spec reconcile.Spec) bool { return spec.Reconciles.Is(obj.GetAPIVersion(), obj.GetKind()) }) {
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
		if name := stack.ResourceOf(gvk.Group, gvk.Kind) + "." + gvk.Group; !seen[name] {
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
