// Command eventing is Knative Eventing, and the functions that it wakes, on one
// machine.
//
//	eventing --kubeconfig FILE --functions-dir DIR --data-dir DIR [flags]
//	eventing crds          prints CustomResourceDefinitions
//	eventing defaults      does the work of Knative's webhooks on stdin
//
// Definitions and config maps are read from the module knative.dev/eventing, in
// the folder that --module-dir names, or else in Go's module cache.
//
// On stdout it prints one JSON object a line: see package report. Its own log
// goes to stderr.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	_ "github.com/slipway-dev/slipway/deploy/local/eventing/environment"
	"github.com/slipway-dev/slipway/deploy/local/eventing/manifest"
	"github.com/slipway-dev/slipway/deploy/local/eventing/report"
	"github.com/slipway-dev/slipway/deploy/local/eventing/stack"
)

func main() {
	started := time.Now()
	stdout := os.Stdout
	// Libraries that print to stdout must not get between our lines.
	os.Stdout = os.Stderr
	err := command(started, os.Args[1:], os.Stdin, stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "eventing:", err)
		os.Exit(1)
	}
}

// command does what the arguments say.
func command(started time.Time, args []string, in io.Reader, out io.Writer) error {
	name := ""
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		name, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("eventing "+name, flag.ContinueOnError)
	moduleDir := flags.String("module-dir", "", "folder with the module knative.dev/eventing (default: the one in Go's module cache)")
	switch name {
	case "":
		return serve(started, flags, moduleDir, args, out)
	case "crds":
		if err := parse(flags, moduleDir, args); err != nil {
			return err
		}
		return manifest.Definitions(out, *moduleDir)
	case "defaults":
		if err := parse(flags, moduleDir, args); err != nil {
			return err
		}
		return manifest.Defaults(in, out, *moduleDir)
	default:
		return fmt.Errorf("there is no command %q: use crds, defaults, or none", name)
	}
}

// parse reads the flags and finds Knative's module if they do not name it.
func parse(flags *flag.FlagSet, moduleDir *string, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("cannot understand the argument %q", flags.Arg(0))
	}
	if *moduleDir != "" {
		return nil
	}
	dir, err := manifest.ModuleDir()
	if err != nil {
		return fmt.Errorf("%w: name the folder by --module-dir", err)
	}
	*moduleDir = dir
	return nil
}

func serve(started time.Time, flags *flag.FlagSet, moduleDir *string, args []string, out io.Writer) error {
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of an administrator")
	listen := flags.String("listen", "127.0.0.1:0", "loopback address to listen on")
	functionsDir := flags.String("functions-dir", "", "folder with the functions' binaries")
	dataDir := flags.String("data-dir", "", "folder for credentials of functions")
	idle := flags.Duration("idle", 30*time.Second, "how long a function without requests keeps its process")
	broker := flags.String("broker", "default", "broker that functions send events to")
	capacity := flags.Int("queue", 0, "how many events may wait for one Trigger (default 4096)")
	adapterConfig := flags.String("adapter-config", "", "configuration of sources/adapter, to run it in this process")
	verbose := flags.Bool("verbose", false, "log what Knative has to say")
	if err := parse(flags, moduleDir, args); err != nil {
		return err
	}
	for name, value := range map[string]string{
		"kubeconfig": *kubeconfig, "functions-dir": *functionsDir, "data-dir": *dataDir,
	} {
		if value == "" {
			return fmt.Errorf("the flag --%s is required", name)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read the kubeconfig %q: %w", *kubeconfig, err)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	klog.SetSlogLogger(log)
	// Warnings of the API server about objects that are not ours.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return stack.Run(ctx, stack.Options{
		Config: config, Listen: *listen, ModuleDir: *moduleDir, FunctionsDir: *functionsDir, DataDir: *dataDir,
		Idle: *idle, Broker: *broker, Capacity: *capacity, AdapterConfig: *adapterConfig,
		Started: started, Report: report.New(out), Log: log, Knative: knativeLog(*verbose),
	})
}

// knativeLog writes the same kind of lines as slog, since Knative logs by zap.
func knativeLog(verbose bool) *zap.Logger {
	level := zapcore.WarnLevel
	if verbose {
		level = zapcore.InfoLevel
	}
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{
		TimeKey: "time", LevelKey: "level", NameKey: "logger", MessageKey: "msg",
		EncodeTime: zapcore.RFC3339NanoTimeEncoder, EncodeLevel: zapcore.CapitalLevelEncoder,
		EncodeDuration: zapcore.StringDurationEncoder,
	})
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), level))
}
