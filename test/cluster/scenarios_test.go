package cluster_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestOnARealCluster is one story in order: a cluster is expensive.
func TestOnARealCluster(t *testing.T) {
	f := begin(t)
	measured := &report{}
	for _, step := range []struct {
		name string
		run  func(*fixture, *report)
	}{
		{"functions go to zero", functionsGoToZero},
		{"deploying twice changes nothing", deployingTwice},
		{"an event starts a function from zero, and it goes back", fromZero},
		{"the samples of the Viti Stack become Ready", vitistack},
		{"a function's pod that is killed in the middle of its work loses nothing", killedPod},
		{"events that the broker loses are made good by a resync", restartedBroker},
		{"the environment of Dockyards becomes Ready", dockyards},
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
		if err := os.WriteFile(file, []byte(measured.String()), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// report collects what was measured.
type report struct{ lines []string }

func (r *report) add(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
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
		if strings.HasPrefix(r.Pod, "slipway-system/") {
			slipway += r.MB
			report.add("memory at rest: %s", r)
		}
		if strings.HasPrefix(r.Pod, "knative-") {
			knative += r.MB
		}
	}
	report.add("memory at rest of everything in slipway-system: %.0f MB; of Knative: %.0f MB", slipway, knative)
}

// fingerprint is what deploying decides about each object, not what controllers say.
func (f *fixture) fingerprint() map[string]string {
	f.t.Helper()
	objects, err := f.Rendered(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	file := filepath.Join(f.t.TempDir(), "rendered.json")
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	var items []any
	for _, obj := range objects {
		items = append(items, obj.Object)
	}
	list["items"] = items
	raw, err := json.Marshal(list)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		f.t.Fatal(err)
	}
	var live unstructured.UnstructuredList
	if err := json.Unmarshal([]byte(f.kubectl("get", "-f", file, "-o", "json")), &live); err != nil {
		f.t.Fatal(err)
	}
	prints := map[string]string{}
	for _, obj := range live.Items {
		delete(obj.Object, "status")
		for _, field := range []string{"managedFields", "resourceVersion"} {
			unstructured.RemoveNestedField(obj.Object, "metadata", field)
		}
		text, err := json.Marshal(obj.Object)
		if err != nil {
			f.t.Fatal(err)
		}
		prints[obj.GetKind()+" "+obj.GetNamespace()+"/"+obj.GetName()] = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	if len(prints) < len(objects) {
		f.t.Errorf("%d objects were deployed, and %d are there", len(objects), len(prints))
	}
	return prints
}

func deployingTwice(f *fixture, report *report) {
	before := f.fingerprint()
	if err := f.Deploy(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	if diff := cmp.Diff(before, f.fingerprint()); diff != "" {
		f.t.Errorf("the second deployment changed objects:\n%s", diff)
	}
	report.add("deployed objects that a second deployment leaves alone: %d", len(before))
}

var virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

// reconciled creates a Machine and returns how long its VirtualMachine took to appear,
// which is the function's own doing.
func (f *fixture) reconciled(name string) time.Duration {
	f.t.Helper()
	ctx := f.t.Context()
	watcher, err := f.Client.Resource(virtualMachines).Namespace("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
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
	resource := schema.GroupVersionResource{Group: "vitistack.io", Version: "v1alpha1", Resource: "machines"}
	if _, err := f.Client.Resource(resource).Namespace("default").Create(ctx, obj, metav1.CreateOptions{}); err != nil {
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
	for i := range 3 {
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
	f.apply(machines("killed", 20))
	killed := 0
	for killed < 3 && f.notReady(machineKind) != "" {
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
	lost := len(strings.Fields(f.notReady(machineKind)))
	f.eventually("the broker to take a resync", func() string {
		if err := f.Resync(f.t.Context(), "machine-vm"); err != nil {
			return err.Error()
		}
		return ""
	})
	report.add("broker restarted under 10 new Machines: %d were not Ready when it was back, all %.1f s after a resync", lost, f.machinesReady().Seconds())
}

func dockyards(f *fixture, report *report) {
	f.kubectl("apply", "-n", "default", "-k", filepath.Join(f.Root, "deploy/samples/dockyards"))
	var slowest time.Duration
	for _, kind := range []string{"organizations.dockyards.io", "releases.dockyards.io", "clusters.dockyards.io", "nodepools.dockyards.io"} {
		slowest = max(slowest, f.eventually(kind+" Ready", func() string {
			if f.kubectl("get", kind, "-A", "-o", "name") == "" {
				return "there is none"
			}
			return f.notReady(kind)
		}))
	}
	report.add("the environment of Dockyards Ready after about %.1f s", slowest.Seconds())
}

// foreign are objects that no function has to do with.
const foreign = `apiVersion: v1
kind: Namespace
metadata: {name: somebody-else}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: foreign, namespace: somebody-else}
---
apiVersion: v1
kind: Secret
metadata: {name: foreign, namespace: somebody-else}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: foreign, namespace: somebody-else}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: nobody}
---
apiVersion: v1
kind: Service
metadata: {name: foreign, namespace: somebody-else}
spec: {ports: [{port: 80}]}
`

func atRest(f *fixture, report *report) {
	ctx := f.t.Context()
	f.atZero()
	began := time.Now()
	if err := f.Resync(ctx, f.Functions...); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("functions to answer the resync", func() string {
		pods, err := f.Pods(ctx)
		if err != nil || len(pods) == 0 {
			return fmt.Sprintf("%d pods (%v)", len(pods), err)
		}
		return ""
	})
	f.atZero()
	asked, wrote := map[string]int{}, map[string]int{}
	answers, err := f.Answers(began)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, a := range answers {
		if !slices.Contains(f.Functions, a.Account()) {
			continue
		}
		asked[a.Account()]++
		if a.Write() {
			wrote[a.String()]++
		}
	}
	for _, text := range slices.Sorted(maps.Keys(wrote)) {
		f.t.Errorf("written at rest, %d times: %s", wrote[text], text)
	}
	report.add("a resync of everything at rest: %d functions asked, %d kinds of writes", len(asked), len(wrote))

	// Without the periodic resyncs whatever wakes a function now is an event.
	f.kubectl("delete", "pingsources.sources.knative.dev", "--all", "-n", "slipway-system")
	f.apply(foreign)
	f.atZero()
	changes := f.churn(30 * time.Second)
	report.add("foreign objects changed %d times in 30 s: no function was started", changes)
	if err := f.Deploy(ctx); err != nil {
		f.t.Fatal(err)
	}
	if err := f.AwaitReady(ctx); err != nil {
		f.t.Fatal(err)
	}
}

// churn changes foreign objects ten times a second and fails for every function that
// wakes up. It returns the number of changes.
func (f *fixture) churn(lasts time.Duration) int {
	f.t.Helper()
	ctx := f.t.Context()
	ticker, end := time.NewTicker(100*time.Millisecond), time.NewTimer(lasts)
	defer ticker.Stop()
	defer end.Stop()
	changes := 0
	resources := []string{"configmaps", "secrets", "persistentvolumeclaims", "services"}
	for {
		select {
		case <-end.C:
			return changes
		case <-ticker.C:
		}
		resource := schema.GroupVersionResource{Version: "v1", Resource: resources[changes%len(resources)]}
		changes++
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"somebody.else/counts":"%d"}}}`, changes)
		if _, err := f.Client.Resource(resource).Namespace("somebody-else").Patch(ctx, "foreign", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
			f.t.Fatal(err)
		}
		if changes%10 != 0 {
			continue
		}
		pods, err := f.Pods(ctx)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(pods) > 0 {
			f.t.Errorf("after %d changes of foreign objects these run: %v", changes, pods)
			return changes
		}
	}
}

func undeploying(f *fixture, report *report) {
	ctx := f.t.Context()
	// While there are objects the definitions must stay, and everything else with them.
	if err := f.Undeploy(ctx); err == nil {
		f.t.Error("undeploy took the definitions away from under the Machines")
	}
	f.kubectl("delete", machineKind, "--all", "-A", "--timeout=4m")
	if left := f.kubectl("get", "virtualmachines.kubevirt.io", "-n", "default", "-o", "name"); left != "" {
		f.t.Errorf("Machines are gone and these are left: %s", left)
	}
	objects, err := f.Rendered(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	// Dockyards' objects stay, and their definitions with them.
	if err := f.Undeploy(ctx, "KEEP_CRDS=1"); err != nil {
		f.t.Fatal(err)
	}
	var left []string
	for _, obj := range objects {
		if obj.GetKind() == "CustomResourceDefinition" {
			continue
		}
		kind := obj.GetKind() + "." + strings.TrimSuffix(obj.GroupVersionKind().Version+"."+obj.GroupVersionKind().Group, ".")
		args := []string{"get", kind, obj.GetName(), "--ignore-not-found", "-o", "name"}
		if obj.GetNamespace() != "" {
			args = append(args, "-n", obj.GetNamespace())
		}
		if out := f.kubectl(args...); out != "" {
			left = append(left, out)
		}
	}
	if len(left) > 0 {
		f.t.Errorf("left behind: %v", left)
	}
	report.add("objects that undeploying removed: %d", len(objects))
}
