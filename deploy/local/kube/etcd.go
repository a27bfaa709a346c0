package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-dev/slipway/deploy/local/build/flock"
)

// EtcdOptions say how to run an etcd.
type EtcdOptions struct {
	// Binary is the kube binary.
	Binary string
	// Dir is the data directory; it is made if need be.
	Dir string
	// Port is where clients connect; 0 is a free one.
	Port int
	// Durable makes etcd wait for the disk at each write. Without it a crash of
	// the machine, but not of etcd, may leave the data unusable.
	Durable bool
}

// Etcd is a running etcd.
type Etcd struct {
	// URL is where clients connect.
	URL string

	process *process
	lock    *flock.Lock
}

const (
	// attempts is how often a program is started on other ports when somebody else
	// was faster to take the ones that were free.
	attempts = 5
	// startLimit bounds the start of one program where the caller's context does
	// not do so sooner.
	startLimit = 3 * time.Minute
	// etcdGrace is how long etcd may take to close its files.
	etcdGrace = 3 * time.Second
)

// StartEtcd runs an etcd on its own, for several API servers to share. The context
// bounds the start, not the life.
func StartEtcd(ctx context.Context, opts EtcdOptions) (*Etcd, error) {
	dir, lock, err := claim(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot start etcd: %w", err)
	}
	opts.Dir = dir
	etcd, err := startEtcd(ctx, opts)
	if err != nil {
		lock.Unlock()
		return nil, err
	}
	etcd.lock = lock
	return etcd, nil
}

func startEtcd(ctx context.Context, opts EtcdOptions) (*Etcd, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	endLeftover(opts.Dir, "etcd")
	var err error
	for range attempts {
		var etcd *Etcd
		if etcd, err = tryEtcd(ctx, opts); err == nil {
			return etcd, nil
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, fmt.Errorf("cannot start etcd: %w", err)
}

func tryEtcd(ctx context.Context, opts EtcdOptions) (*Etcd, error) {
	port, err := portOr(opts.Port)
	if err != nil {
		return nil, err
	}
	peer, err := freePort()
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("http://%s:%d", loopback, port)
	peerURL := fmt.Sprintf("http://%s:%d", loopback, peer)
	// A name of its own lets the probe know this etcd from any other on the port.
	name := fmt.Sprintf("local-%d-%d", os.Getpid(), port)
	args := []string{
		"--name=" + name,
		"--data-dir=" + filepath.Join(opts.Dir, "etcd"),
		"--listen-client-urls=" + url,
		"--advertise-client-urls=" + url,
		"--listen-peer-urls=" + peerURL,
		"--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=" + name + "=" + peerURL,
		// The only member wins each election, so it need not wait long for one.
		"--heartbeat-interval=50",
		"--election-timeout=250",
		"--log-level=warn",
	}
	if !opts.Durable {
		args = append(args, "--unsafe-no-fsync")
	}
	p, err := launch(opts.Binary, opts.Dir, "etcd", args...)
	if err != nil {
		return nil, err
	}
	if err := p.await(ctx, func(ctx context.Context) error { return probeEtcd(ctx, url, name) }); err != nil {
		p.stop(0)
		if errors.Is(err, errPortTaken) || ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w\n(if its data is unusable, remove %s and start afresh)", err, filepath.Join(opts.Dir, "etcd"))
	}
	return &Etcd{URL: url, process: p}, nil
}

// Stop ends etcd.
func (e *Etcd) Stop() {
	e.process.stop(etcdGrace)
	if e.lock != nil {
		e.lock.Unlock()
	}
}

// Done is closed when etcd has ended, whoever ended it.
func (e *Etcd) Done() <-chan struct{} { return e.process.done }

// probeEtcd succeeds when the etcd at url is of the given name and can write.
func probeEtcd(ctx context.Context, url, name string) error {
	client, done := probeClient(nil)
	defer done()
	var members struct {
		Members []struct {
			Name string `json:"name"`
		} `json:"members"`
	}
	// The list is read through the cluster's consensus, so an answer also says that
	// the election is over.
	if err := ask(ctx, client, http.MethodPost, url+"/v3/cluster/member/list", `{"linearizable":true}`, &members); err != nil {
		return err
	}
	if len(members.Members) != 1 || members.Members[0].Name != name {
		return fmt.Errorf("%s is not (yet) the etcd named %q: %v", url, name, members.Members)
	}
	return nil
}

// ask sends one request and decodes its answer.
func ask(ctx context.Context, client *http.Client, method, url, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
