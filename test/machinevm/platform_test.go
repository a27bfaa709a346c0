package machinevm

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/stages"
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/test/suite"
	"github.com/slipway-dev/slipway/test/virt/controller"
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
	log := &suite.Buffer{}
	kwok := w.startNode(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, w.Scoped(w.Env.Config), controller.Options{
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
	cmd, err := stages.Command(ctx, binary, w.Env.Cluster.Kubeconfig, filepath.Join(w.t.TempDir(), "kwok"), 1)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return cmd
}

// running tells whether a virtual machine runs.
func running(obj *unstructured.Unstructured) bool {
	return obj != nil && suite.Text(obj, "status", "printableStatus") == "Running" && suite.Text(obj, "status", "ready") == "true"
}

// awaitReady waits until Machines run, as their status says.
func (w *world) awaitReady(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.Await(kinds.Machines, name, "is Ready", func(obj *unstructured.Unstructured) bool {
			if obj == nil {
				return false
			}
			is, _, _ := suite.Condition(obj, "Ready")
			return is == "True"
		})
	}
}

// awaitCondition waits for "status reason" of a Machine's condition.
func (w *world) awaitCondition(name, conditionType, want string) {
	w.t.Helper()
	w.Await(kinds.Machines, name, "has "+conditionType+" "+want, func(obj *unstructured.Unstructured) bool {
		if obj == nil {
			return false
		}
		is, reason, _ := suite.Condition(obj, conditionType)
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
