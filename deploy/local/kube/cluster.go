package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/deploy/local/build/flock"
)

// Options say how to run a cluster.
type Options struct {
	// Binary is the kube binary (target "kube" of deploy/local/build).
	Binary string
	// Dir is the data directory: keys, kubeconfig, logs, and etcd's data. It is
	// made if need be; what an earlier run left in it is used again.
	Dir string
	// Name is what the kubeconfig calls the cluster; "" is "slipway".
	Name string
	// Port is the API server's; 0 is a free one.
	Port int
	// EtcdURL names an etcd that runs already; "" starts one.
	EtcdURL string
	// EtcdPrefix is where in etcd the cluster's objects are; "" is "/registry".
	// API servers with one etcd need a prefix each.
	EtcdPrefix string
	// EtcdPort is the port of the etcd that is started; 0 is a free one.
	EtcdPort int
	// Durable makes the etcd that is started wait for the disk at each write.
	Durable bool
	// Issuer is the issuer and the audience of service account tokens; "" is
	// "https://kubernetes.default.svc".
	Issuer string
	// APIServerFlags are further flags of the API server.
	APIServerFlags []string
	// Install is called when the API server is ready, before the controller
	// manager starts.
	Install func(context.Context, *Cluster) error
	// ControllerManager says that the controllers are wanted as well.
	ControllerManager bool
}

func (o Options) withDefaults() Options {
	o.Name = cmp.Or(o.Name, "slipway")
	o.EtcdPrefix = cmp.Or(o.EtcdPrefix, "/registry")
	o.Issuer = cmp.Or(o.Issuer, defaultIssuer)
	return o
}

// Cluster is a running Kubernetes API.
type Cluster struct {
	// Name is what the kubeconfig calls the cluster.
	Name string
	// Dir is the data directory, as an absolute path.
	Dir string
	// URL is the API server's.
	URL string
	// EtcdURL is etcd's, whether it was started or given.
	EtcdURL string
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Config is the administrator's client configuration. Copy it before changing
	// it.
	Config *rest.Config

	binary string
	opts   Options
	pki    *pki
	lock   *flock.Lock
	server *apiServer
	etcd   *Etcd

	mu sync.Mutex
	// replaced is the process that is being killed on purpose.
	replaced *process
	manager  *process
	// lost is told of the end of the API server instead of Done; nil: nobody is.
	lost     func(error)
	stopping bool
	failed   error
	done     chan struct{}
	watchers sync.WaitGroup
}

// Start runs a cluster and returns when its API is ready and what was to be
// installed is. The context bounds the start, not the cluster's life, which ends
// with Stop. When something fails, what was started is stopped again.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	opts = opts.withDefaults()
	dir, lock, err := claim(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot start cluster %q: %w", opts.Name, err)
	}
	opts.Dir = dir
	c := &Cluster{
		Name:       opts.Name,
		Dir:        dir,
		EtcdURL:    opts.EtcdURL,
		Kubeconfig: filepath.Join(dir, "kubeconfig"),
		binary:     opts.Binary,
		opts:       opts,
		lock:       lock,
		done:       make(chan struct{}),
	}
	if err := c.start(ctx, opts); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, opts Options) error {
	// Said before anything runs, rather than after etcd was started.
	if opts.Port != 0 {
		if err := CheckPort(opts.Port); err != nil {
			return fmt.Errorf("cannot start kube-apiserver: %w", err)
		}
	}
	for _, name := range []string{"kube-controller-manager", "kube-apiserver"} {
		endLeftover(c.Dir, name)
	}
	var err error
	if c.pki, err = ensurePKI(filepath.Join(c.Dir, "pki"), time.Now()); err != nil {
		return err
	}
	if c.EtcdURL == "" {
		if c.etcd, err = startEtcd(ctx, EtcdOptions{Binary: opts.Binary, Dir: c.Dir, Port: opts.EtcdPort, Durable: opts.Durable}); err != nil {
			return err
		}
		c.EtcdURL = c.etcd.URL
		c.observe(c.etcd.process)
	}
	if c.server, err = startAPIServer(ctx, opts, c.EtcdURL, c.pki); err != nil {
		return err
	}
	c.observe(c.server.process)
	if err := c.publish(); err != nil {
		return err
	}
	if opts.Install != nil {
		if err := opts.Install(ctx, c); err != nil {
			return err
		}
	}
	if !opts.ControllerManager {
		return nil
	}
	return c.StartControllerManager(ctx)
}

// publish makes known where the API server is.
func (c *Cluster) publish() error {
	c.URL = c.server.url
	c.Config = adminConfig(c.URL, c.pki)
	content, err := c.AdminKubeconfig()
	if err != nil {
		return err
	}
	if err := writeFile(c.Kubeconfig, content); err != nil {
		return fmt.Errorf("cannot write the kubeconfig of cluster %q: %w", c.Name, err)
	}
	return nil
}

// observe notes the end of a process that nobody stopped.
func (c *Cluster) observe(p *process) {
	c.watchers.Go(func() {
		<-p.done
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.stopping || c.failed != nil || c.replaced == p:
		case c.lost != nil && c.server != nil && c.server.process == p:
			c.lost(p.failure())
		default:
			c.failed = p.failure()
			close(c.done)
		}
	})
}

// Done is closed when one of the cluster's programs has ended although nobody
// stopped it. Err says which, and why.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// Err is nil until Done is closed.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Stop ends the cluster's programs, the last started first, and returns when they
// are gone. The data directory stays. Stopping twice does nothing.
func (c *Cluster) Stop() {
	c.mu.Lock()
	stopped, manager := c.stopping, c.manager
	c.stopping = true
	c.mu.Unlock()
	if stopped {
		return
	}
	if manager != nil {
		manager.stop(controllerManagerGrace)
	}
	if c.server != nil {
		c.server.process.stop(apiServerGrace)
	}
	if c.etcd != nil {
		c.etcd.Stop()
	}
	c.watchers.Wait()
	c.lock.Unlock()
}

// claim makes the data directory and takes its lock, and returns its absolute path.
func claim(dir string) (string, *flock.Lock, error) {
	if dir == "" {
		return "", nil, errors.New("no data directory is given")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, fmt.Errorf("cannot resolve data directory %q: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("cannot make data directory %q: %w", dir, err)
	}
	lock, err := flock.Try(filepath.Join(dir, "lock"))
	if held := (*flock.HeldError)(nil); errors.As(err, &held) {
		return "", nil, fmt.Errorf("data directory %q is in use by %s: stop that, or name another directory", dir, held.Holder)
	}
	if err != nil {
		return "", nil, err
	}
	return dir, lock, nil
}

// Pids returns the process ids of the cluster's programs, in the order in which
// they were started.
func (c *Cluster) Pids() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var pids []int
	if c.etcd != nil {
		pids = append(pids, c.etcd.process.cmd.Process.Pid)
	}
	if c.server != nil {
		pids = append(pids, c.server.process.cmd.Process.Pid)
	}
	if c.manager != nil {
		pids = append(pids, c.manager.cmd.Process.Pid)
	}
	return pids
}
