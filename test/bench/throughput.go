package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stages"
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/shared/reconcile"
)

const (
	// objects is how many Machines each side creates; parallel how many at once.
	objects  = 200
	parallel = 10
	// pattern is the name that the recorded requests carry.
	pattern = "bench-0000"
)

// request is one recorded request of the function.
type request struct {
	method, url, contentType string
	body                     []byte
}

func (r request) isWrite() bool { return r.method != http.MethodGet }

// recorder keeps the requests that go through it while it is on.
type recorder struct {
	next     http.RoundTripper
	on       atomic.Bool
	mu       sync.Mutex
	requests []request
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.on.Load() {
		var body []byte
		if req.Body != nil {
			var err error
			if body, err = io.ReadAll(req.Body); err != nil {
				return nil, err
			}
			req.Body = io.NopCloser(bytes.NewReader(body))
		}
		r.mu.Lock()
		r.requests = append(r.requests, request{req.Method, req.URL.String(), req.Header.Get("Content-Type"), body})
		r.mu.Unlock()
	}
	return r.next.RoundTrip(req)
}

func (r *recorder) take() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.requests
	r.requests = nil
	return taken
}

// cluster starts an API server that has the definitions and nothing that acts.
func cluster(ctx context.Context, root, dir string) (*kube.Cluster, error) {
	definitions, err := crds.Load(ctx, crds.KubeVirt, crds.CDI, crds.Multus)
	if err != nil {
		return nil, err
	}
	own, err := kube.ReadFiles(filepath.Join(root, "api/vitistack/crds"))
	if err != nil {
		return nil, err
	}
	definitions = append(definitions, own...)
	platform, err := stages.Objects()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, definition := range definitions {
		names = append(names, definition.GetName())
	}
	return kube.Start(ctx, kube.Options{
		Binary: filepath.Join(root, build.DefaultBin, "kube"), Dir: dir,
		Install: func(ctx context.Context, c *kube.Cluster) error {
			if err := kube.Apply(ctx, c.Config, definitions...); err != nil {
				return err
			}
			if err := kube.WaitEstablished(ctx, c.Config, names...); err != nil {
				return err
			}
			return kube.Apply(ctx, c.Config, platform...)
		},
	})
}

func machine(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine",
		"metadata": map[string]any{"namespace": "default", "name": name}, "spec": map[string]any{"template": "small"},
	}}
}

func changed(name string) cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetID(name)
	ce.SetSource("bench")
	ce.SetType("dev.knative.apiserver.ref.add")
	for key, value := range map[string]string{"apiversion": "vitistack.io/v1alpha1", "kind": "Machine", "namespace": "default", "name": name} {
		ce.SetExtension(key, value)
	}
	return ce
}

// throughput lets the handler, driven directly, and a raw client do the same
// for as many Machines, in turns.
func throughput(ctx context.Context, root string, r *report) error {
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c, err := cluster(ctx, root, dir)
	if err != nil {
		return err
	}
	defer c.Stop()

	rec := &recorder{}
	config := rest.CopyConfig(c.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { rec.next = next; return rec })
	settings, err := machinevm.ParseSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		return err
	}
	host := reconcile.New(machinevm.Declare(settings), reconcile.Options{Config: config, Log: slog.New(slog.DiscardHandler)})
	all, writes, err := record(ctx, c, host, rec, r)
	if err != nil {
		return err
	}
	raw, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return err
	}
	ours, err := timed(ctx, c, "ours", func(ctx context.Context, name string) error { return handle(ctx, host, name) })
	if err != nil {
		return err
	}
	same, err := timed(ctx, c, "same", func(ctx context.Context, name string) error { return replay(ctx, raw, all, name) })
	if err != nil {
		return err
	}
	alone, err := timed(ctx, c, "alone", func(ctx context.Context, name string) error { return replay(ctx, raw, writes, name) })
	if err != nil {
		return err
	}
	r.ThroughputRatio, r.WritesOnlyRatio = same.Seconds()/ours.Seconds(), alone.Seconds()/ours.Seconds()
	return nil
}

// record keeps the requests of one creation, for the raw client, and counts
// those of a reconcile that has nothing to do.
func record(ctx context.Context, c *kube.Cluster, host *reconcile.Host, rec *recorder, r *report) (all, writes []request, err error) {
	if err := kube.Apply(ctx, c.Config, machine(pattern)); err != nil {
		return nil, nil, err
	}
	rec.on.Store(true)
	defer rec.on.Store(false)
	// The status follows the objects once more, then nothing is left to do.
	var rounds [3][]request
	for i := range rounds {
		if err := handle(ctx, host, pattern); err != nil {
			return nil, nil, err
		}
		rounds[i] = rec.take()
	}
	for _, req := range rounds[2] {
		if req.isWrite() {
			r.FixpointWrites++
		} else {
			r.FixpointReads++
		}
	}
	all = rounds[0]
	for i := range all {
		if all[i].body, err = unversioned(all[i].body); err != nil {
			return nil, nil, err
		}
		if all[i].isWrite() {
			writes = append(writes, all[i])
		}
	}
	r.Objects, r.RequestsPerObject, r.WritesPerObject = objects, len(all), len(writes)
	return all, writes, nil
}

// timed creates Machines, and then times what is done for each of them.
func timed(ctx context.Context, c *kube.Cluster, prefix string, do func(ctx context.Context, name string) error) (time.Duration, error) {
	names := make([]string, objects)
	machines := make([]*unstructured.Unstructured, objects)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%04d", prefix, i)
		machines[i] = machine(names[i])
	}
	if err := kube.Apply(ctx, c.Config, machines...); err != nil {
		return 0, err
	}
	started := time.Now()
	errs := make([]error, objects)
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(ctx, name)
		})
	}
	wg.Wait()
	return time.Since(started), cmp.Or(errs...)
}

func handle(ctx context.Context, host *reconcile.Host, name string) error {
	_, err := host.Handle(ctx, changed(name))
	var result *cehttp.Result
	if !errors.As(err, &result) || result.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the function answered %w for Machine %q", err, name)
	}
	return nil
}

// unversioned leaves out of a patch what a raw client cannot know beforehand and
// a patch need not carry.
func unversioned(body []byte) ([]byte, error) {
	var patch map[string]any
	if len(body) == 0 {
		return body, nil
	}
	if err := json.Unmarshal(body, &patch); err != nil {
		return nil, err
	}
	if meta, ok := patch["metadata"].(map[string]any); ok {
		delete(meta, "resourceVersion")
	}
	return json.Marshal(patch)
}

// replay makes recorded requests for another Machine.
func replay(ctx context.Context, client *http.Client, requests []request, name string) error {
	for _, r := range requests {
		body := bytes.ReplaceAll(r.body, []byte(pattern), []byte(name))
		req, err := http.NewRequestWithContext(ctx, r.method, strings.ReplaceAll(r.url, pattern, name), bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", r.contentType)
		req.Header.Set("Accept", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		answer, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return err
		}
		if r.isWrite() && resp.StatusCode/100 != 2 {
			return fmt.Errorf("the raw client's %s %s was answered %s: %.200s", r.method, req.URL.Path, resp.Status, answer)
		}
	}
	return nil
}
