package kubetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/build/flock"
	"github.com/slipway-dev/slipway/deploy/local/kube"
)

const (
	// EtcdVariable names the environment variable with the URL of the shared etcd.
	EtcdVariable = "SLIPWAY_TEST_ETCD"
	// MaxServers is how many API servers run at once, over all test processes.
	MaxServers = 3
	// startLimit bounds one start, and with it the wait for one's turn and the
	// first build of the kube binary.
	startLimit = 20 * time.Minute
)

// Options say what a test package needs.
type Options struct {
	// Objects are applied before the first test that names them goes on,
	// definitions first.
	Objects []*unstructured.Unstructured
	// Files are manifest files, or folders of them, relative to the root of the
	// repository, applied like Objects.
	Files []string
	// ControllerManager starts the garbage collector and its two neighbours.
	ControllerManager bool
	// Servers is how many API servers the package runs at once, remote clusters
	// included; 0 is one. The first call of Start decides.
	Servers int
}

// Runner is what runs a package's tests: a *testing.M.
type Runner interface{ Run() int }

// Main runs a package's tests, stops what they started, and returns the exit code.
func Main(m Runner) int {
	defer pkg.stop()
	return m.Run()
}

// Wrap returns a Runner that is [Main] of m, for packages whose TestMain hands over
// to something that looks at what is left after the servers have stopped:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(kubetest.Wrap(m)) }
func Wrap(m Runner) Runner { return wrapped{m} }

type wrapped struct{ m Runner }

func (w wrapped) Run() int { return Main(w.m) }

// pkg is the test package that this process runs.
var pkg suite

// suite is a test package's server and what it holds.
type suite struct {
	mu      sync.Mutex
	env     *Env
	err     error
	servers int
	cleanup []func()
}

// Start returns the package's API server with everything in place that the options
// ask for. The package's TestMain must call [Main].
func Start(tb testing.TB, opts Options) *Env {
	tb.Helper()
	pkg.mu.Lock()
	defer pkg.mu.Unlock()
	if pkg.env == nil && pkg.err == nil {
		pkg.env, pkg.err = pkg.start(opts)
	} else if pkg.err == nil {
		if err := pkg.env.provide(tb.Context(), opts); err != nil {
			tb.Fatal(err)
		}
	}
	if pkg.err != nil {
		// What failed once is not tried again by each test.
		tb.Fatal(pkg.err)
	}
	return pkg.env
}

func (s *suite) start(opts Options) (*Env, error) {
	// The server outlives the test that happens to come first.
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	root, err := build.Root(".")
	if err != nil {
		return nil, err
	}
	if err := build.Binaries(ctx, build.Options{Root: root, Out: os.Stderr}, "kube"); err != nil {
		return nil, err
	}
	s.servers = max(opts.Servers, 1)
	release, err := Turn(ctx, root, s.servers)
	if err != nil {
		return nil, err
	}
	s.cleanup = append(s.cleanup, release)
	dir, err := os.MkdirTemp("", "slipway-test-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for the test server: %w", err)
	}
	s.cleanup = append(s.cleanup, func() { _ = os.RemoveAll(dir) })
	env, err := newEnv(ctx, root, dir, os.Getenv(EtcdVariable), opts)
	if err != nil {
		return nil, err
	}
	s.cleanup = append(s.cleanup, env.Cluster.Stop)
	return env, nil
}

func (s *suite) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.cleanup) > 0 {
		last := len(s.cleanup) - 1
		s.cleanup[last]()
		s.cleanup = s.cleanup[:last]
	}
	s.env, s.err = nil, errors.New("cannot start a test server: the package's tests are over")
}

// newEnv starts a server in dir.
func newEnv(ctx context.Context, root, dir, etcd string, opts Options) (*Env, error) {
	cluster, err := kube.Start(ctx, kube.Options{
		Binary:     filepath.Join(root, filepath.FromSlash(build.DefaultBin), "kube"),
		Dir:        dir,
		EtcdURL:    etcd,
		EtcdPrefix: "/" + random(),
	})
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		cluster.Stop()
		return nil, fmt.Errorf("cannot make a client of the test server: %w", err)
	}
	env := &Env{Config: cluster.Config, Cluster: cluster, Client: client, root: root, applied: map[string]bool{}}
	if err := env.provide(ctx, opts); err != nil {
		cluster.Stop()
		return nil, err
	}
	return env, nil
}

// Turn waits until n more API servers may run in this checkout, and returns how to
// say that they have ended. Nobody who holds a turn may ask for another: two who
// did would wait for each other.
func Turn(ctx context.Context, root string, n int) (release func(), err error) {
	dir := filepath.Join(root, ".cache", "servers")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot wait for a test server's turn: %w", err)
	}
	slots := make([]string, MaxServers)
	for i := range slots {
		slots[i] = filepath.Join(dir, fmt.Sprintf("%d.lock", i))
	}
	var held []*flock.Lock
	release = func() {
		for _, lock := range held {
			lock.Unlock()
		}
	}
	waiting := func(err error) {
		fmt.Fprintf(os.Stderr, "waiting for the end of another package's API server: %v\n", err)
	}
	// Only one process at a time collects its turns, so that none of two gets one
	// and waits for the other's.
	gate, err := flock.Wait(ctx, waiting, filepath.Join(dir, "gate.lock"))
	if err != nil {
		return nil, fmt.Errorf("cannot wait for a test server's turn: %w", err)
	}
	defer gate.Unlock()
	for range min(n, MaxServers) {
		lock, err := flock.Wait(ctx, waiting, slots...)
		if err != nil {
			release()
			return nil, fmt.Errorf("cannot wait for a test server's turn: %w", err)
		}
		held = append(held, lock)
	}
	return release, nil
}
