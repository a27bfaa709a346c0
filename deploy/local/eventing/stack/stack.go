package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/injection/clients/dynamicclient"

	"github.com/slipway-dev/slipway/sources/adapter"

	"github.com/slipway-dev/slipway/deploy/local/eventing/environment"
	"github.com/slipway-dev/slipway/deploy/local/eventing/fixture"
	"github.com/slipway-dev/slipway/deploy/local/eventing/function"
	"github.com/slipway-dev/slipway/deploy/local/eventing/kubelet"
	"github.com/slipway-dev/slipway/deploy/local/eventing/names"
	"github.com/slipway-dev/slipway/deploy/local/eventing/report"
)

// drain is how long events may take to be delivered when the process stops.
const drain = 5 * time.Second

// Options say what to run.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	// Listen is the one address to listen on; it must be a loopback address.
	Listen string
	// ModuleDir is a folder with the module knative.dev/eventing.
	ModuleDir string
	// FunctionsDir holds the functions' binaries.
	FunctionsDir string
	// DataDir is for credentials of functions.
	DataDir string
	// Idle is how long a function's process is kept without requests.
	Idle time.Duration
	// Broker is the broker that functions send to.
	Broker string
	// Capacity is how many events may wait for one Trigger; 0 for a default.
	Capacity int
	// AdapterConfig is the configuration of sources/adapter; empty for none.
	AdapterConfig string

	Started time.Time
	Report  *report.Reporter
	Log     *slog.Logger
	Knative *zap.Logger
}

// Run runs the stack until ctx is done, and then stops it in order: no new
// events, what is queued is delivered, functions end.
func Run(ctx context.Context, o Options) error {
	server, err := url.Parse(o.Config.Host)
	if err != nil {
		return fmt.Errorf("cannot read the API server's address %q: %w", o.Config.Host, err)
	}
	listener, err := listen(o.Listen)
	if err != nil {
		return err
	}
	self := listener.Addr().String()
	if err := names.Override(self, server.Host); err != nil {
		return err
	}
	o.Config = adapter.Unlimited(o.Config)
	o.Config.Dial = names.Redirect(self, server.Host, (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext)

	// The reconcilers outlive ctx by the time that the queues take to drain.
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	inner, informers := injected(inner, o.Config, o.Knative)
	client := kubeclient.Get(inner)
	if err := fixture.Create(ctx, client, o.ModuleDir); err != nil {
		return err
	}
	activator, err := newActivator(inner, o, self)
	if err != nil {
		return err
	}
	functions, err := function.NewController(inner, dynamicclient.Get(inner), activator, o.FunctionsDir, o.Knative.Sugar())
	if err != nil {
		return err
	}
	programs, err := programs(o)
	if err != nil {
		return err
	}
	k, err := assemble(inner, o.Config, append(informers, functions.Informer()), programs, activator, o.Report, o.Capacity)
	if err != nil {
		return err
	}
	k.controllers = append(k.controllers, functions.Impl())

	served := &http.Server{
		Handler:           &mux{ingress: k.ingress, filter: k.filter, channel: k.channel, functions: activator},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	return run(ctx, inner, stop, o, parts{knative: k, activator: activator, server: served, listener: listener})
}

// parts are what runs.
type parts struct {
	knative   *knative
	activator *function.Activator
	server    *http.Server
	listener  net.Listener
}

func newActivator(ctx context.Context, o Options, self string) (*function.Activator, error) {
	client := kubeclient.Get(ctx)
	credentials, err := function.NewCredentials(client, o.Config, filepath.Join(o.DataDir, "credentials"))
	if err != nil {
		return nil, err
	}
	environ := &function.Environ{Client: client, Credentials: credentials, Self: self, Broker: o.Broker}
	return function.NewActivator(function.Options{
		Environ: environ.Of,
		Renew: func(ctx context.Context, spec function.Spec) error {
			_, err := credentials.Ensure(ctx, spec.Namespace, spec.ServiceAccount)
			return err
		},
		Idle: o.Idle, Report: o.Report, Log: o.Log,
	}), nil
}

// run runs the parts until ctx is done or one of them fails.
func run(ctx, inner context.Context, stop context.CancelFunc, o Options, p parts) error {
	failed := make(chan error, 3)
	var wait sync.WaitGroup
	self := p.listener.Addr().String()
	serve := func() {
		wait.Go(func() {
			if err := p.server.Serve(p.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("cannot serve: %w", err)
			}
		})
	}
	wait.Go(func() {
		err := p.knative.run(inner, serve, func() {
			o.Report.Write(report.Addresses{
				Kind: report.KindReady, PID: os.Getpid(), Listen: self, Ingress: "http://" + self,
				Functions:  "http://" + self + names.FunctionPath[:len(names.FunctionPath)-1],
				DurationMs: float64(time.Since(o.Started).Milliseconds()),
			})
		})
		if err != nil {
			failed <- err
		}
	})

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if left := p.knative.table.Stop(draining); left > 0 {
		o.Log.Warn("events were given up", "count", left)
	}
	p.activator.Stop()
	stop()
	_ = p.server.Close()
	wait.Wait()
	return err
}

// sourceAdapter is the container of sources/adapter's Deployment.
const sourceAdapter = "source-adapter"

// programs are what runs in this process in place of containers.
func programs(o Options) (map[string]kubelet.Program, error) {
	if o.AdapterConfig == "" {
		return nil, nil
	}
	config, err := adapter.Load(o.AdapterConfig, func(string) string { return "" })
	if err != nil {
		return nil, err
	}
	return map[string]kubelet.Program{sourceAdapter: func(ctx context.Context, account *rest.Config, available func()) error {
		source, err := adapter.New(config, o.Log)
		if err != nil {
			return err
		}
		go func() {
			select {
			case <-ctx.Done():
			case <-source.Begun():
				available()
			}
		}()
		return source.Run(ctx, adapter.Cluster{Config: account})
	}}, nil
}

// listen opens the one port of this process.
func listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w: name another address by --listen", address, err)
	}
	at, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !at.IP.IsLoopback() {
		_ = listener.Close()
		return nil, fmt.Errorf("cannot listen on %q: it is no loopback address", address)
	}
	return listener, nil
}

// Environment variables must have been set before Knative's packages were
// initialised; see there.
var _ = environment.SystemNamespace
