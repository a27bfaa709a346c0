// Command virt plays KubeVirt's virt-controller on an API server that has KubeVirt's
// definitions and nothing else of it; kwok plays the nodes. See package controller.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-dev/slipway/test/virt/controller"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "virt:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("virt", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the cluster")
	node := flags.String("node", "node-1", "name of the node that all instances run on")
	memory := flags.String("node-memory", "256Gi", "largest instance that fits the node; 0 is no limit")
	workers := flags.Int("workers", 2, "machines that are worked on at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	limit, err := resource.ParseQuantity(*memory)
	if err != nil {
		return fmt.Errorf("cannot use -node-memory %q: %w", *memory, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read kubeconfig %q: %w", *kubeconfig, err)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	return controller.Run(ctx, config, controller.Options{Node: *node, Memory: limit, Workers: *workers, Log: log})
}
