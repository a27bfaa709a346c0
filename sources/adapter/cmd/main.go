// Command source-adapter sends changes of Kubernetes objects that no
// ApiServerSource can watch to a sink, as CloudEvents.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/slipway-dev/slipway/sources/adapter"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	config := flag.String("config", "/etc/source-adapter/config.yaml", "file with what to watch")
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the management cluster; empty for the one that the process runs in")
	health := flag.String("health-listen", "127.0.0.1:8081", "address of /healthz and /readyz")
	verbose := flag.Bool("verbose", false, "log what Knative's receive adapters have to say")
	flag.Parse()

	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level(*verbose)}))
	klog.SetSlogLogger(log)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	settings, err := adapter.Load(*config, os.Getenv)
	if err != nil {
		return err
	}
	relayed, err := adapter.Relay(ctx, settings.Sink, os.Getenv(adapter.EnvTokenFile))
	if err != nil {
		return err
	}
	settings.Sink = relayed
	management, err := connect(*kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot find the management cluster: %w", err)
	}
	source, err := adapter.New(settings, log)
	if err != nil {
		return err
	}
	shutdown, err := serve(*health, source.Handler(), log)
	if err != nil {
		return err
	}
	defer shutdown()

	log.Info("source-adapter runs", "sink", settings.Sink, "resources", len(settings.Resources))
	return source.Run(ctx, adapter.Cluster{Config: management})
}

func level(verbose bool) slog.Level {
	if verbose {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func connect(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

// serve answers on address; the returned function stops it.
func serve(address string, handler http.Handler, log *slog.Logger) (func(), error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w", address, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 2 * time.Second}
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Error("cannot serve", "address", address, "error", err)
		}
	}()
	return func() { _ = server.Close() }, nil
}
