package node

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/deploy/local/build/flock"
)

//go:embed boot.sh
var boot []byte

const (
	// patience bounds the wait for one component; it is meant for a crowded machine.
	patience = 2 * time.Minute
	tick     = 50 * time.Millisecond
)

// Options say what a node is made of and where it lives.
type Options struct {
	// Bin is the folder with the program "kube" (deploy/local/kubernetes) and "pause".
	Bin string
	// State is a folder on a disk; it belongs to the node and is removed by Stop. Two
	// nodes must not share one.
	State string
	// Out is told what happens.
	Out io.Writer
}

// Node is a running node.
type Node struct {
	opts       Options
	state      string
	group      string
	pki        *pki
	lock       *flock.Lock
	outer      *exec.Cmd
	stdin      io.Closer
	init       int
	mu         sync.Mutex
	components []*component
	started    time.Time
}

// component is one program that runs in the node.
type component struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
}

// Start brings up a node and returns when it is Ready. On an error, what was started is
// stopped again; the components' logs are in the error's text.
func Start(ctx context.Context, opts Options) (*Node, error) {
	state, err := filepath.Abs(opts.State)
	if err != nil {
		return nil, err
	}
	n := &Node{opts: opts, state: state, group: groupName(state), started: time.Now()}
	n.pki = &pki{dir: filepath.Join(state, "pki")}
	if err := os.MkdirAll(filepath.Dir(state), 0o755); err != nil {
		return nil, err
	}
	if n.lock, err = flock.Try(state + ".lock"); err != nil {
		return nil, fmt.Errorf("cannot start a node in %q: %w", state, err)
	}
	if err := n.start(ctx); err != nil {
		err = fmt.Errorf("%w\n%s", err, n.Tails())
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// groupName is the name of the control groups of the node that lives in a folder.
func groupName(state string) string {
	sum := fnv.New32a()
	_, _ = io.WriteString(sum, state)
	return fmt.Sprintf("slipway-node-%08x", sum.Sum32())
}

// Clear removes what is left of a node in the given folder whose process was killed. It
// refuses while the node runs.
func Clear(ctx context.Context, state string) error {
	state, err := filepath.Abs(state)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(state), 0o755); err != nil {
		return err
	}
	lock, err := flock.Try(state + ".lock")
	if err != nil {
		return fmt.Errorf("cannot clear %q: %w", state, err)
	}
	defer lock.Unlock()
	return errors.Join(removeCgroups(ctx, groupName(state)), os.RemoveAll(state))
}

func (n *Node) start(ctx context.Context) error {
	// What a node left behind whose process was killed.
	if err := errors.Join(removeCgroups(ctx, n.group), os.RemoveAll(n.state)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(n.state, "logs"), 0o700); err != nil {
		return err
	}
	if err := n.pki.write(); err != nil {
		return err
	}
	if err := n.configure(); err != nil {
		return err
	}
	if err := n.boot(ctx); err != nil {
		return err
	}
	if err := n.containerd(ctx); err != nil {
		return err
	}
	n.say("containerd answers")
	return n.kubernetes(ctx)
}

// boot makes the namespaces.
func (n *Node) boot(ctx context.Context) error {
	script := n.conf("boot.sh")
	if err := os.WriteFile(script, boot, 0o600); err != nil {
		return err
	}
	// Stop ends it: a canceled test still wants to look around.
	n.outer = exec.Command("setsid", append(append([]string{"unshare"}, unshare()...), "/bin/bash", script)...) //nolint:noctx // see above
	n.outer.Env = append(os.Environ(), "STATE="+n.state, "GROUP="+n.group)
	log, err := os.Create(n.LogFile("boot"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	n.outer.Stdout, n.outer.Stderr = log, log
	if n.stdin, err = n.outer.StdinPipe(); err != nil {
		return err
	}
	if err := n.outer.Start(); err != nil {
		return fmt.Errorf("cannot make the node's namespaces: %w", err)
	}
	return n.until(ctx, "the namespaces", func() error {
		if _, err := os.Stat(filepath.Join(n.state, "booted")); err != nil {
			return err
		}
		if n.init = childOf(n.outer.Process.Pid); n.init == 0 {
			return errors.New("the first process is not there")
		}
		return nil
	})
}

func (n *Node) containerd(ctx context.Context) error {
	if err := n.run("containerd", "containerd", "--config", n.conf("containerd.toml"), "--log-level", "warn"); err != nil {
		return err
	}
	if err := n.until(ctx, "containerd", func() error { return n.Enter(ctx, "ctr", "version").Run() }); err != nil {
		return err
	}
	return n.Import(ctx, Image{Name: pauseImage, Binary: filepath.Join(n.opts.Bin, "pause")})
}

func (n *Node) kubernetes(ctx context.Context) error {
	err := errors.Join(
		n.kube("etcd", "--data-dir", filepath.Join(n.state, "etcd"), "--unsafe-no-fsync", "--log-level", "warn",
			"--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL),
		n.kube("kube-apiserver", n.apiServerFlags()...))
	if err != nil {
		return err
	}
	api, err := n.client()
	if err != nil {
		return err
	}
	if err := n.until(ctx, "the API server", func() error { return ready(ctx, api) }); err != nil {
		return err
	}
	n.say("the API server is ready")
	// Not before: they exit when the roles are not there that they need.
	err = errors.Join(
		n.kube("kube-controller-manager", n.controllerManagerFlags()...),
		n.kube("kube-scheduler", append(n.asClient("scheduler"), "--leader-elect=false", "--bind-address=127.0.0.1")...),
		n.kube("kube-proxy", "--config="+n.conf("kube-proxy.yaml")),
		n.kube("kubelet", "--config="+n.conf("kubelet.yaml"), "--kubeconfig="+n.pki.path("kubelet.kubeconfig"),
			"--hostname-override="+nodeName, "--node-ip="+nodeAddress))
	if err != nil {
		return err
	}
	err = n.until(ctx, "the node", func() error {
		out, err := n.Kubectl(ctx, "get", "node", nodeName, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && out != "True" {
			err = fmt.Errorf("its condition Ready is %q", out)
		}
		return err
	})
	if err != nil {
		return err
	}
	n.say("the node is Ready")
	return n.until(ctx, "the default service account", func() error {
		_, err := n.Kubectl(ctx, "get", "serviceaccount", "default", "-n", "default", "-o", "name")
		return err
	})
}

// Guard starts the given program (test/node/knative/policies), which enforces network
// policies as long as the node lives.
func (n *Node) Guard(program string) error {
	return n.run("policies", program, "--kubeconfig", n.Kubeconfig(), "--node", nodeName, "--services", services)
}

func (n *Node) say(format string, args ...any) {
	_, _ = fmt.Fprintf(n.opts.Out, "%6.1f s  %s\n", time.Since(n.started).Seconds(), fmt.Sprintf(format, args...))
}

// kube starts a component of Kubernetes.
func (n *Node) kube(name string, args ...string) error {
	return n.run(name, filepath.Join(n.opts.Bin, "kube"), append([]string{name}, args...)...)
}

// run starts a program in the node that lives as long as the node does.
func (n *Node) run(name, program string, args ...string) error {
	return n.Run(name, n.Enter(context.Background(), program, args...))
}

// Run starts a command that lives as long as the node does; what it says goes into the
// log of the given name.
func (n *Node) Run(name string, cmd *exec.Cmd) error {
	log, err := os.Create(n.LogFile(name))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", name, err)
	}
	c := &component{name: name, cmd: cmd, done: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(c.done) }()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.components = append(n.components, c)
	return nil
}

// Died names the components that ended by themselves.
func (n *Node) Died() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var names []string
	for _, c := range n.components {
		select {
		case <-c.done:
			names = append(names, c.name)
		default:
		}
	}
	return names
}

// until waits for something of the node, as long as all its components live.
func (n *Node) until(ctx context.Context, what string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		if died := n.Died(); len(died) > 0 {
			return fmt.Errorf("waited in vain for %s: %s ended", what, strings.Join(died, ", "))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, err)
		}
	}
}

// LogFile is where the log of a component lies.
func (n *Node) LogFile(name string) string { return filepath.Join(n.state, "logs", name+".log") }

// AuditLog is where the API server writes down what it answered Slipway's accounts.
func (n *Node) AuditLog() string { return filepath.Join(n.state, "audit.log") }

// Tails are the last lines of every component's log.
func (n *Node) Tails() string {
	var out strings.Builder
	names, _ := filepath.Glob(n.LogFile("*"))
	for _, name := range names {
		text, _ := os.ReadFile(name)
		lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
		fmt.Fprintf(&out, "== %s\n%s\n", filepath.Base(name), bytes.Join(lines[max(0, len(lines)-6):], []byte("\n")))
	}
	return out.String()
}

// Stop ends everything that runs in the node and removes what it leaves.
func (n *Node) Stop() error {
	if n.outer != nil && n.outer.Process != nil {
		_ = n.outer.Process.Kill()
		_ = n.outer.Wait()
	}
	n.mu.Lock()
	components := n.components
	n.mu.Unlock()
	for _, c := range components {
		select {
		case <-c.done:
		case <-time.After(patience):
			return fmt.Errorf("cannot stop the node: %s still runs", c.name)
		}
	}
	err := errors.Join(removeCgroups(context.Background(), n.group), os.RemoveAll(n.state))
	if n.lock != nil {
		n.lock.Unlock()
	}
	return err
}
