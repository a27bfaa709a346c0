package machinevm

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/stages"
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/virt/controller"
)

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	getOptions = metav1.GetOptions{}
)

// nodeMemory is what the one node of the platform offers to an instance.
const nodeMemory = "64Gi"

// platform plays KubeVirt and the storage for one namespace.
type platform struct {
	once sync.Once
	stop func()
}

// Stop ends it; the namespace stays as it is then.
func (p *platform) Stop() { p.once.Do(p.stop) }

// platform starts KubeVirt for the test.
func (w *world) platform() *platform {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := &buffer{}
	kwok := w.startNode(ctx)
	ended := make(chan error, 1)
	config := rest.CopyConfig(w.env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return scoped{next: next, ns: w.ns} })
	go func() {
		ended <- controller.Run(ctx, config, controller.Options{
			Memory: resource.MustParse(nodeMemory), Log: slog.New(slog.NewTextHandler(log, nil)),
		})
	}()
	p := &platform{stop: func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("KubeVirt ended with %v", err)
		}
		_ = kwok.Wait()
	}}
	w.t.Cleanup(func() {
		p.Stop()
		if w.t.Failed() {
			w.t.Logf("KubeVirt said:\n%s", log)
		}
	})
	return p
}

// startNode runs the stages that are the node's and the storage's part.
func (w *world) startNode(ctx context.Context) *exec.Cmd {
	w.t.Helper()
	root, err := build.Root(".")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := build.Binaries(w.t.Context(), build.Options{Root: root, Out: os.Stderr}, "kwok"); err != nil {
		w.t.Fatal(err)
	}
	binary := filepath.Join(root, filepath.FromSlash(build.DefaultBin), "kwok")
	cmd, err := stages.Command(ctx, binary, w.env.Cluster.Kubeconfig, filepath.Join(w.t.TempDir(), "kwok"), 1)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return cmd
}

// scoped keeps a client that looks at all namespaces to one.
type scoped struct {
	next http.RoundTripper
	ns   string
}

func (s scoped) RoundTrip(req *http.Request) (*http.Response, error) {
	return s.next.RoundTrip(scopedTo(s.ns, req))
}

// WrappedRoundTripper lets client-go find the transport below, to cancel requests.
func (s scoped) WrappedRoundTripper() http.RoundTripper { return s.next }

// source turns the changes of a namespace into events and delivers them, each on
// its own, as sources and broker do.
type source struct {
	once sync.Once
	stop func()
}

// Stop ends the source when what was sent is done. Later changes give no event.
func (s *source) Stop() { s.once.Do(s.stop) }

// source delivers to a copy of the function what it declares to be woken by.
func (w *world) source(f *function) *source {
	w.t.Helper()
	var watching, delivering sync.WaitGroup
	var watches []watch.Interface
	slots := make(chan struct{}, machinevm.DefaultSpec().Concurrency)
	seen := map[string]bool{}
	for _, declared := range machinevm.DefaultSpec().Watches {
		res := declared.Resource
		if !res.Namespaced || seen[res.String()] {
			continue
		}
		seen[res.String()] = true
		watching.Add(1)
		stream, err := w.in(res).Watch(context.Background(), metav1.ListOptions{LabelSelector: declared.Selector})
		if err != nil {
			w.t.Fatal(err)
		}
		watches = append(watches, stream)
		go func() {
			defer watching.Done()
			for e := range stream.ResultChan() {
				obj, ok := e.Object.(*unstructured.Unstructured)
				if !ok || e.Type == watch.Bookmark || e.Type == watch.Error {
					continue
				}
				what := map[watch.EventType]string{watch.Added: "add", watch.Modified: "update", watch.Deleted: "delete"}[e.Type]
				ce := changed(what, res.APIVersion(), res.Kind, obj.GetNamespace(), obj.GetName())
				slots <- struct{}{}
				delivering.Go(func() {
					defer func() { <-slots }()
					for range 5 {
						if f.send(ce) != http.StatusServiceUnavailable {
							return
						}
					}
				})
			}
		}()
	}
	s := &source{stop: func() {
		for _, stream := range watches {
			stream.Stop()
		}
		watching.Wait()
		delivering.Wait()
	}}
	w.t.Cleanup(s.Stop)
	return s
}

// await waits until an object is as a test wants it; nil is an object that is gone.
func (w *world) await(res kind.Resource, name, what string, is func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	var last *unstructured.Unstructured
	for ctx.Err() == nil {
		list, err := w.in(res).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			break
		}
		last = nil
		if len(list.Items) > 0 {
			last = &list.Items[0]
		}
		if is(last) {
			return last
		}
		stream, err := w.in(res).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: list.GetResourceVersion()})
		if err != nil {
			break
		}
		for e := range stream.ResultChan() {
			obj, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				break
			}
			if last = obj; e.Type == watch.Deleted {
				last = nil
			}
			if is(last) {
				stream.Stop()
				return last
			}
		}
	}
	w.t.Fatalf("waited in vain until %s %q %s; it is now:\n%v", res.Kind, name, what, show(last))
	return nil
}

func show(obj *unstructured.Unstructured) string {
	if obj == nil {
		return "gone"
	}
	return fmt.Sprint(obj.Object["status"], obj.Object["spec"])
}

func gone(obj *unstructured.Unstructured) bool { return obj == nil }

// running tells whether a virtual machine runs.
func running(obj *unstructured.Unstructured) bool {
	return obj != nil && text(obj, "status", "printableStatus") == "Running" && text(obj, "status", "ready") == "true"
}

// awaitReady waits until Machines run, as their status says.
func (w *world) awaitReady(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.await(kinds.Machines, name, "is Ready", func(obj *unstructured.Unstructured) bool {
			if obj == nil {
				return false
			}
			is, _, _ := condition(obj, "Ready")
			return is == "True"
		})
	}
}

// awaitCondition waits for "status reason" of a Machine's condition.
func (w *world) awaitCondition(name, conditionType, want string) {
	w.t.Helper()
	w.await(kinds.Machines, name, "has "+conditionType+" "+want, func(obj *unstructured.Unstructured) bool {
		if obj == nil {
			return false
		}
		is, reason, _ := condition(obj, conditionType)
		return strings.TrimSpace(is+" "+reason) == want
	})
}

func TestWhatIsMadeForAMachineWakesTheFunction(t *testing.T) {
	var woken []string
	for _, watched := range machinevm.DefaultSpec().Watches {
		woken = append(woken, watched.Resource.Kind)
	}
	for _, res := range made {
		// A definition of a network that is deleted by hand waits for the resync.
		if !slices.Contains(woken, res.Kind) && res.Kind != kinds.NetworkAttachmentDefinitions.Kind {
			t.Errorf("no event tells of a change of %s", res.Kind)
		}
	}
}
