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
	"slices"
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
	// objects is how many objects each side creates; parallel how many at once.
	objects  = 200
	parallel = 10
	// pattern is the name that the recorded requests carry.
	pattern = "bench-0000"
	// maxRounds is how many events an object may take until nothing is left to do.
	maxRounds = 8
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

// subject is what the handler and a raw client do the same for.
type subject struct {
	// definitions are names of deploy/local/crds, own those of this repository.
	definitions []string
	own         string
	// platform is there before everything.
	platform func(root string) ([]*unstructured.Unstructured, error)
	// prepare makes one of them, by its name, and returns what requests about it
	// hold besides: UIDs.
	prepare func(ctx context.Context, c *kube.Cluster, name string) (marks []string, err error)
	// handle lets the functions take care of one, once.
	handle func(ctx context.Context, name string) error

	// pattern are the marks of the one that was recorded.
	pattern []string
}

// cluster starts an API server that has the definitions and nothing that acts.
func (x *subject) cluster(ctx context.Context, root, dir string) (*kube.Cluster, error) {
	definitions, err := crds.Load(ctx, x.definitions...)
	if err != nil {
		return nil, err
	}
	own, err := kube.ReadFiles(filepath.Join(root, x.own))
	if err != nil {
		return nil, err
	}
	definitions = append(definitions, own...)
	platform, err := x.platform(root)
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
	return added("vitistack.io/v1alpha1", "Machine", "default", name)
}

func added(apiVersion, kindName, namespace, name string) cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetID(name)
	ce.SetSource("bench")
	ce.SetType("dev.knative.apiserver.ref.add")
	for key, value := range map[string]string{"apiversion": apiVersion, "kind": kindName, "namespace": namespace, "name": name} {
		ce.SetExtension(key, value)
	}
	return ce
}

// compared is how the handler did beside a raw client.
type compared struct {
	Objects           int     `json:"objects"`
	RequestsPerObject int     `json:"requestsPerObject"`
	WritesPerObject   int     `json:"writesPerObject"`
	FixpointReads     int     `json:"fixpointReads"`
	FixpointWrites    int     `json:"fixpointWrites"`
	ThroughputRatio   float64 `json:"throughputRatio"`
	WritesOnlyRatio   float64 `json:"throughputRatioToWritesAlone"`
}

// machineSubject is a Machine.
func machineSubject() *subject {
	return &subject{
		definitions: []string{crds.KubeVirt, crds.CDI, crds.Multus}, own: "api/vitistack/crds",
		platform: func(string) ([]*unstructured.Unstructured, error) { return stages.Objects() },
		prepare: func(ctx context.Context, c *kube.Cluster, name string) ([]string, error) {
			return nil, kube.Apply(ctx, c.Config, machine(name))
		},
	}
}

// throughput measures machine-vm.
func throughput(ctx context.Context, root string, r *report) error {
	settings, err := machinevm.ParseSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		return err
	}
	r.compared, err = compare(ctx, root, func(options reconcile.Options) *subject {
		host := reconcile.New(machinevm.Declare(settings), options)
		x := machineSubject()
		x.handle = func(ctx context.Context, name string) error { return handle(ctx, host, changed(name)) }
		return x
	})
	return err
}

// compare lets handlers, driven directly, and a raw client do the same for as many
// objects, in turns.
func compare(ctx context.Context, root string, start func(reconcile.Options) *subject) (compared, error) {
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return compared{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c, err := start(reconcile.Options{Config: &rest.Config{}}).cluster(ctx, root, dir)
	if err != nil {
		return compared{}, err
	}
	defer c.Stop()

	rec := &recorder{}
	config := rest.CopyConfig(c.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { rec.next = next; return rec })
	x := start(reconcile.Options{Config: config, Log: slog.New(slog.DiscardHandler)})
	r := compared{Objects: objects}
	all, rounds, err := x.record(ctx, c, rec, &r)
	if err != nil {
		return r, err
	}
	raw, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return r, err
	}
	ours, err := x.timed(ctx, c, "ours", func(ctx context.Context, name string, _ *strings.Replacer) error {
		for range rounds {
			if err := x.handle(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	same, err := x.timed(ctx, c, "same", func(ctx context.Context, _ string, names *strings.Replacer) error {
		return replay(ctx, raw, all.requests, names)
	})
	if err != nil {
		return r, err
	}
	alone, err := x.timed(ctx, c, "alone", func(ctx context.Context, _ string, names *strings.Replacer) error {
		return replay(ctx, raw, all.writes(), names)
	})
	if err != nil {
		return r, err
	}
	r.ThroughputRatio, r.WritesOnlyRatio = same.Seconds()/ours.Seconds(), alone.Seconds()/ours.Seconds()
	return r, nil
}

// recording is what was asked of the server for one object.
type recording struct{ requests []request }

func (r recording) writes() []request {
	return slices.DeleteFunc(slices.Clone(r.requests), func(req request) bool { return !req.isWrite() })
}

// record keeps the requests of one creation, for the raw client, until a round has
// nothing to do, and counts the requests of that round.
func (x *subject) record(ctx context.Context, c *kube.Cluster, rec *recorder, r *compared) (all recording, rounds int, err error) {
	if x.pattern, err = x.prepare(ctx, c, pattern); err != nil {
		return all, 0, err
	}
	rec.on.Store(true)
	defer rec.on.Store(false)
	for rounds < maxRounds {
		if err := x.handle(ctx, pattern); err != nil {
			return all, rounds, err
		}
		round := recording{requests: rec.take()}
		writes := len(round.writes())
		r.FixpointReads, r.FixpointWrites = len(round.requests)-writes, writes
		if writes == 0 {
			break
		}
		rounds++
		all.requests = append(all.requests, round.requests...)
	}
	for i := range all.requests {
		if all.requests[i].body, err = unversioned(all.requests[i].body); err != nil {
			return all, rounds, err
		}
	}
	r.RequestsPerObject, r.WritesPerObject = len(all.requests), len(all.writes())
	return all, rounds, nil
}

// timed makes objects, and then times what is done for each of them.
func (x *subject) timed(ctx context.Context, c *kube.Cluster, prefix string, do func(ctx context.Context, name string, names *strings.Replacer) error) (time.Duration, error) {
	names := make([]string, objects)
	replacers := make([]*strings.Replacer, objects)
	if err := each(objects, func(i int) error {
		names[i] = fmt.Sprintf("%s-%04d", prefix, i)
		marks, err := x.prepare(ctx, c, names[i])
		if err != nil {
			return err
		}
		pairs := []string{pattern, names[i]}
		for n := range marks {
			pairs = append(pairs, x.pattern[n], marks[n])
		}
		replacers[i] = strings.NewReplacer(pairs...)
		return nil
	}); err != nil {
		return 0, err
	}
	started := time.Now()
	err := each(objects, func(i int) error { return do(ctx, names[i], replacers[i]) })
	return time.Since(started), err
}

// each does something for many, a few at once.
func each(count int, do func(i int) error) error {
	errs := make([]error, count)
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i := range count {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	wg.Wait()
	return cmp.Or(errs...)
}

func handle(ctx context.Context, host *reconcile.Host, ce cloudevents.Event) error {
	_, err := host.Handle(ctx, ce)
	var result *cehttp.Result
	if !errors.As(err, &result) || result.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the function answered %w for %s %q", err, ce.Extensions()["kind"], ce.Extensions()["name"])
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

// replay makes recorded requests for another object.
func replay(ctx context.Context, client *http.Client, requests []request, names *strings.Replacer) error {
	for _, r := range requests {
		req, err := http.NewRequestWithContext(ctx, r.method, names.Replace(r.url), strings.NewReader(names.Replace(string(r.body))))
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
