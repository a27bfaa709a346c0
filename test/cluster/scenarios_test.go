package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/test/cluster"
)

// TestOnARealCluster is one story in order: a cluster is expensive.
func TestOnARealCluster(t *testing.T) {
	f := begin(t)
	measured := &report{}
	for _, step := range []struct {
		name string
		run  func(*fixture, *report)
	}{
		{"deploying twice changes nothing", deployingTwice},
		{"functions go to zero", functionsGoToZero},
		{"an event starts a function from zero, and it goes back", fromZero},
		{"the samples of the Viti Stack become Ready", vitistack},
		{"a function's pod that is killed in the middle of its work loses nothing", killedPod},
		{"events that the broker loses are made good by a resync", restartedBroker},
		{"the environment of Dockyards becomes Ready", dockyards},
		{"Workloads are rendered through their templates, each in a child process of the function's container", templates},
		{"a function runs out of the image that kn func builds", builtByFunc},
		{"a stranger's pod reaches no port that was not meant for it", strangers},
		{"the baseline is put in place, and kept", baseline},
		{"at rest nothing is written, and nobody else's objects wake a function", atRest},
		{"no account was refused anything", func(f *fixture, _ *report) { f.nothingForbidden() }},
		{"undeploying removes all that deploying made", undeploying},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(f.with(t), measured) }) && t.Context().Err() != nil {
			break
		}
	}
	t.Logf("what was measured:\n%s", measured)
	if file := os.Getenv("SLIPWAY_E2E_REPORT"); file != "" {
		if err := os.WriteFile(file, []byte(measured.String()), 0o600); err != nil { //nolint:gosec // who runs it says where
			t.Error(err)
		}
	}
}

// report collects what was measured.
type report struct{ lines []string }

func (r *report) add(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
	// At once as well: a story that is broken off shall have told something.
	fmt.Fprintln(os.Stderr, "   measured:", r.lines[len(r.lines)-1])
}

// String is one line per measurement.
func (r *report) String() string { return strings.Join(r.lines, "\n") + "\n" }

func functionsGoToZero(f *fixture, report *report) {
	report.add("all functions at zero after their deployment: %.1f s more", f.atZero().Seconds())
	all, err := f.Memory(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	var slipway, knative float64
	for _, r := range all {
		// A function that a periodic resync woke, or that is on its way out.
		if slices.ContainsFunc(f.Functions, func(name string) bool { return strings.HasPrefix(r.Pod, cluster.Namespace+"/"+name+"-") }) {
			continue
		}
		if strings.HasPrefix(r.Pod, cluster.Namespace+"/") {
			slipway += r.MB
			report.add("memory at rest: %s", r)
		}
		if strings.HasPrefix(r.Pod, "knative-") {
			knative += r.MB
		}
	}
	report.add("memory at rest of everything in slipway-system: %.0f MB; of Knative: %.0f MB", slipway, knative)
}

var virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

// reconciled creates a Machine and returns how long its VirtualMachine took to appear,
// which is the function's own doing.
func (f *fixture) reconciled(name string) time.Duration {
	f.t.Helper()
	ctx := f.t.Context()
	watcher, err := f.Client.Resource(virtualMachines).Namespace("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=vm-" + name})
	if err != nil {
		f.t.Fatal(err)
	}
	defer watcher.Stop()
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec":     map[string]any{"template": "small"},
	}}
	began := time.Now()
	if _, err := f.Client.Resource(machineResource).Namespace("default").Create(ctx, obj, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-watcher.ResultChan():
		return time.Since(began)
	case <-ctx.Done():
		f.t.Fatalf("Machine %s never got a VirtualMachine", name)
		return 0
	}
}

func fromZero(f *fixture, report *report) {
	var cold, warm []time.Duration
	for i := range 2 {
		f.atZero()
		cold = append(cold, f.reconciled(fmt.Sprintf("cold-%d", i)))
		for j := range 3 {
			warm = append(warm, f.reconciled(fmt.Sprintf("warm-%d-%d", i, j)))
		}
		pods, err := f.Pods(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		if !slices.ContainsFunc(pods, func(pod string) bool { return strings.HasPrefix(pod, "machine-vm/") }) {
			f.t.Errorf("a Machine is taken care of, but machine-vm has no pod: %v", pods)
		}
		f.machinesReady()
		report.add("back at zero after the last of the work: %.1f s", f.atZero().Seconds())
	}
	slices.Sort(cold)
	slices.Sort(warm)
	report.add("Machine created -> VirtualMachine created, from zero: %v", rounded(cold))
	report.add("Machine created -> VirtualMachine created, warm: %v", rounded(warm))
}

func rounded(all []time.Duration) []time.Duration {
	for i := range all {
		all[i] = all[i].Round(10 * time.Millisecond)
	}
	return all
}

func vitistack(f *fixture, report *report) {
	f.kubectl("apply", "-n", "default", "-k", filepath.Join(f.Root, "deploy/samples/vitistack"))
	report.add("samples of the Viti Stack all Ready after %.1f s", f.machinesReady().Seconds())
}

func killedPod(f *fixture, report *report) {
	f.atZero()
	const all = 20
	f.apply(machines("killed", all))
	killed, done := 0, 0
	for killed < 3 && done < all {
		// In the middle: some Machines are taken care of, others are not.
		f.eventually("the work to go on", func() string {
			list, err := f.Client.Resource(virtualMachines).Namespace("default").List(f.t.Context(), metav1.ListOptions{})
			if err != nil {
				return err.Error()
			}
			now := 0
			for _, vm := range list.Items {
				if strings.HasPrefix(vm.GetName(), "vm-killed-") {
					now++
				}
			}
			if now <= done {
				return fmt.Sprintf("%d of %d Machines are taken care of", now, all)
			}
			done = now
			return ""
		})
		pods, err := f.Pods(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		for _, pod := range pods {
			if name, ok := strings.CutPrefix(pod, "machine-vm/"); ok {
				f.kubectl("delete", "pod", "-n", "slipway-system", name, "--force", "--grace-period=0", "--ignore-not-found")
				killed++
			}
		}
	}
	if killed == 0 {
		f.t.Error("all was done before a pod could be killed")
	}
	took := f.machinesReady()
	report.add("20 Machines, %d pods of machine-vm killed meanwhile: all Ready %.1f s later", killed, took.Seconds())
}

func restartedBroker(f *fixture, report *report) {
	f.apply(machines("before", 5))
	for _, selector := range []string{"eventing.knative.dev/brokerRole=ingress", "eventing.knative.dev/brokerRole=filter", "messaging.knative.dev/role=dispatcher"} {
		f.kubectl("delete", "pod", "-n", "knative-eventing", "-l", selector, "--force", "--grace-period=0")
	}
	f.apply(machines("during", 5))
	for _, deployment := range []string{"mt-broker-ingress", "mt-broker-filter", "imc-dispatcher"} {
		f.kubectl("rollout", "status", "deployment", deployment, "-n", "knative-eventing", "--timeout=2m")
	}
	lost := len(strings.Fields(f.notReady(machineResource)))
	f.eventually("the broker to take a resync", func() string {
		if err := f.Resync(f.t.Context(), "machine-vm"); err != nil {
			return err.Error()
		}
		return ""
	})
	report.add("broker restarted under 10 new Machines: %d were not Ready when it was back, all %.1f s after a resync", lost, f.machinesReady().Seconds())
}

// settings are those of the functions for Dockyards, as deploy/local/overlay has them.
const settings = "deploy/local/overlay/dockyards.yaml"

func dockyards(f *fixture, report *report) {
	f.kubectl("apply", "-f", filepath.Join(f.Root, settings))
	// A function reads them when it starts.
	f.atZero()
	f.kubectl("apply", "-k", filepath.Join(f.Root, "deploy/samples/dockyards"))
	// What controllers beside Slipway know.
	f.kubectl("apply", "--server-side", "--subresource=status", "-k", filepath.Join(f.Root, "deploy/samples/dockyards/status"))
	var slowest time.Duration
	// Releases have no conditions.
	for _, plural := range []string{"organizations", "clusters", "nodepools"} {
		resource := schema.GroupVersionResource{Group: "dockyards.io", Version: "v1alpha3", Resource: plural}
		slowest = max(slowest, f.eventually(plural+" Ready", func() string { return f.notReady(resource) }))
	}
	report.add("the environment of Dockyards Ready after about %.1f s", slowest.Seconds())
}

// rendered is where the samples of templates go: their Cluster is of no Organization.
const rendered = "rendered"

func templates(f *fixture, report *report) {
	f.kubectl("create", "namespace", rendered)
	f.kubectl("apply", "-n", rendered, "-k", filepath.Join(f.Root, "deploy/samples/templates"))
	workloads := schema.GroupVersionResource{Group: "dockyards.io", Version: "v1alpha3", Resource: "workloads"}
	took := f.eventually("all Workloads Ready", func() string { return f.notReady(workloads) })
	made := 0
	for _, kind := range []string{"helmreleases.helm.toolkit.fluxcd.io", "kustomizations.kustomize.toolkit.fluxcd.io", "worktrees.dockyards.io"} {
		names := strings.Fields(f.kubectl("get", kind, "-n", rendered, "-o", "name"))
		if len(names) == 0 {
			f.t.Errorf("the Workloads are Ready, and there are no %s", kind)
		}
		made += len(names)
	}
	report.add("Workloads of the sample templates, %d objects for Flux: all Ready after %.1f s", made, took.Seconds())
}
