package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/slipway-dev/slipway/cmd/template-validator/door"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/render/worker"
)

// workers is how many renders run at once: the memory limit of the Deployment is for
// so many, each at its limit.
const workers = 2

func main() {
	worker.Hook()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cannot run template-validator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	settings, err := door.ParseSettings(os.LookupEnv)
	if err != nil {
		return err
	}
	config, err := cluster.Config()
	if err != nil {
		return err
	}
	pool := worker.New(workers)
	defer pool.Close()
	s, err := door.New(ctx, settings, config, pool)
	if err != nil {
		return err
	}
	return s.Serve(ctx)
}
