package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"
	"k8s.io/client-go/rest"
	"knative.dev/networking/pkg/client/clientset/versioned"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ingress:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("cannot reach the API server: %w", err)
	}
	config.QPS = -1
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot reach the API server: %w", err)
	}
	routes := &table{}
	f := &follower{client: client.NetworkingV1alpha1(), routes: routes, log: log, class: env("INGRESS_CLASS"), address: env("INGRESS_ADDRESS")}
	if f.class == "" || f.address == "" {
		return errors.New("cannot start: set INGRESS_CLASS to the class to serve and INGRESS_ADDRESS to the name of the Service in front of this")
	}
	go f.follow(ctx)

	server := &http.Server{
		Addr: ":8080", Handler: h2c.NewHandler(newProxy(routes), &http2.Server{}), ReadHeaderTimeout: 10 * time.Second,
	}
	go func() {
		<-ctx.Done()
		// Not the context that just ended: requests may take their time.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		_ = server.Shutdown(last)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func env(name string) string { return os.Getenv(name) }
