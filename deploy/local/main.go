// Command local is Slipway on one machine.
//
//	go run ./deploy/local              bring it up, submit the samples, show every event
//	go run ./deploy/local --once       the same, wait until the samples are Ready, print a table, exit
//	go run ./deploy/local build        build what the tests need; --all: every program
//	go run ./deploy/local build func       build the named programs
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
	"github.com/slipway-dev/slipway/deploy/local/stack"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

type flags struct {
	once, record  bool
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
	set.BoolVar(&f.record, "record", false, "record every reconcile, for kubectl slipway events, replay and console")
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
		Use: "build [program...]", Short: "Build the programs that the stack and the tests run, or those that are named", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, named []string) error {
			root, err := build.Root(".")
			if err != nil {
				return err
			}
			functions, err := build.Functions(root)
			if err != nil {
				return err
			}
			names := append(stack.Binaries, functions...)
			if len(named) > 0 {
				names = named
			} else if all {
				names = append(names, "source-adapter", "kubectl-slipway", "template-validator")
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
	sample, err := find(root, f.sample)
	if err != nil {
		return err
	}
	data, cleanUp, err := dataDir(root, f)
	if err != nil {
		return err
	}
	defer cleanUp()
	s, err := stack.Start(ctx, stack.Options{
		Root: root, Data: data, Record: f.record, Port: f.port, Clusters: f.clusters, Workloads: sample.clusters(), Idle: f.idle, Disable: f.disable,
		Out: os.Stdout, Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	defer func() { fmt.Println("stopping"); s.Stop() }()
	fmt.Printf("\n  export KUBECONFIG=%s\n  export SLIPWAY_BROKER=%s\n  logs: %s\n", relative(s.Cluster.Kubeconfig), s.Broker, relative(data))
	for _, remote := range s.Remotes {
		fmt.Printf("  %s: .cache/bin/kube kubectl --kubeconfig %s get vm,vmi,pvc -A\n", remote.Name, relative(remote.Cluster.Kubeconfig))
	}
	for _, workload := range s.Workloads {
		fmt.Printf("  %s: .cache/bin/kube kubectl --kubeconfig %s get services -A\n", workload.Name, relative(workload.Cluster.Kubeconfig))
	}
	if f.record {
		fmt.Printf("  export SLIPWAY_RECORDINGS=%s\n", relative(data))
	}
	fmt.Println()
	objects, err := sample.submit(ctx, s)
	if err != nil {
		return err
	}
	if !f.once {
		fmt.Println("Ctrl-C stops everything.")
		return s.Failed(ctx)
	}
	wanted := append(reconciled(objects), sample.workloads()...)
	if slices.ContainsFunc(wanted, isHyperConverged) {
		return awaitSample(ctx, s, f.timeout)
	}
	waited := s.WaitReady(ctx, f.timeout, wanted...)
	if waited == nil {
		waited = sample.reached(ctx, s, f.timeout)
	}
	return errors.Join(waited, tables(ctx, s, wanted))
}

// tables print what has come to be: the samples, and what was made for them on
// each cluster.
func tables(ctx context.Context, s *stack.Stack, wanted []*unstructured.Unstructured) error {
	const made = "virtualmachines,virtualmachineinstances,persistentvolumeclaims"
	const rendered = "worktrees.dockyards.io,gitrepositories.source.toolkit.fluxcd.io,helmrepositories.source.toolkit.fluxcd.io," +
		"kustomizations.kustomize.toolkit.fluxcd.io,helmreleases.helm.toolkit.fluxcd.io,workloadinventories.dockyards.io"
	if len(s.Workloads) > 0 {
		return errors.Join(show(ctx, s, strings.Join(append(kinds(wanted), "gateways,services,httproutes,tlsroutes"), ",")), ingresses(ctx, s))
	}
	if len(s.Remotes) == 0 {
		return show(ctx, s, strings.Join(append(kinds(wanted), made, rendered), ","))
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

// reconciled are the sample objects that a function takes care of, and says so on:
// a Release has no conditions, and an object may say that it is left alone.
func reconciled(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range objects {
		if dockyards.Releases.Is(obj.GetAPIVersion(), obj.GetKind()) || obj.GetAnnotations()[reconcile.AnnotationMode] == string(reconcile.ModeUnmanaged) {
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
