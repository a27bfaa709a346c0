package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stack"
)

var (
	machines  = schema.GroupVersionResource{Group: "vitistack.io", Version: "v1alpha1", Resource: "machines"}
	instances = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
)

// placed are the samples and the clusters that they ask for.
var placed = map[string]string{"by-default": "workload-1", "by-reference": "workload-2", "by-annotation": "workload-3"}

// TestMachinesOnThreeClusters is one story on a supervisor and three clusters.
func TestMachinesOnThreeClusters(t *testing.T) {
	f := beginWith(t, stack.Options{Clusters: 3})
	f.kubectl("apply", "-k", filepath.Join(f.root, "deploy/samples/clusters"))
	samples, err := kube.ReadFiles(filepath.Join(f.root, "deploy/samples/clusters"))
	if err != nil {
		t.Fatal(err)
	}
	samples = slices.DeleteFunc(samples, func(obj *unstructured.Unstructured) bool { return obj.GetKind() != "Machine" })
	for _, obj := range samples {
		obj.SetNamespace("default")
	}
	if err := f.WaitReady(t.Context(), patience, samples...); err != nil {
		t.Fatal(err)
	}

	t.Run("each Machine has its virtual machine on the cluster that it asks for, and nowhere else", func(t *testing.T) {
		for machine, want := range placed {
			if got := f.machine(machine, ".status.kubevirtConfigRef"); got != want {
				t.Errorf("%s is on %q, want %q", machine, got, want)
			}
			for _, remote := range f.Remotes {
				got := f.on(remote, "get", "virtualmachines", "vm-"+machine, "--ignore-not-found", "-o", "name")
				if (got != "") != (remote.Name == want) {
					t.Errorf("%s on %s: %q", machine, remote.Name, got)
				}
			}
		}
		if got := f.kubectl("get", "virtualmachines", "-A", "-o", "name"); got != "" {
			t.Errorf("the supervisor has virtual machines: %s", got)
		}
	})
	t.Run("a change on a remote cluster shows in the Machine's status, by its event", func(t *testing.T) { f.followsRemote(t) })
	t.Run("a cluster that goes and comes shows on its Machines alone, by the adapter's events", func(t *testing.T) { f.outage(t) })
	t.Run("a deleted Machine takes what it has on its cluster with it", func(t *testing.T) {
		f.kubectl("delete", machineKind, "by-default", "--wait=true", "--timeout=60s")
		for _, kind := range []string{"virtualmachines", "virtualmachineinstances", "persistentvolumeclaims"} {
			if left := f.on(f.Remotes[0], "get", kind, "-l", "vitistack.io/machine=by-default", "-o", "name"); left != "" {
				t.Errorf("left behind: %s", left)
			}
		}
	})
}

func (f *fixture) on(remote *stack.Remote, args ...string) string {
	f.t.Helper()
	out, err := f.KubectlOn(context.WithoutCancel(f.t.Context()), remote, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(out)
}

// followsRemote gives an instance another address, again and again, as a guest agent
// would report it, and waits for it in the Machine's status. The times are reported,
// not judged: this machine may be busy. That it did not come by the clock is.
func (f *fixture) followsRemote(t *testing.T) {
	seen, err := f.Client.Resource(machines).Namespace("default").Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=by-reference"})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	const rounds = 30
	var took []time.Duration
	for i := range rounds {
		address := fmt.Sprintf("10.99.0.%d", i+1)
		before := len(f.out.String())
		patch := fmt.Sprintf(`[{"op":"replace","path":"/status/interfaces/0/ipAddress","value":%q},{"op":"replace","path":"/status/interfaces/0/ipAddresses","value":[%q]}]`, address, address)
		started := time.Now()
		if _, err := f.Remotes[1].Client.Resource(instances).Namespace("default").Patch(t.Context(), "vm-by-reference", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if !shows(seen, address) {
			t.Fatalf("address %s did not show", address)
		}
		took = append(took, time.Since(started))
		since := f.out.String()[before:]
		if strings.Contains(since, "resync") || strings.Contains(since, " ping ") {
			t.Logf("round %d: a resync came in between", i)
			continue
		}
		f.eventually("the line about the event", func() string {
			if strings.Contains(f.out.String()[before:], "VirtualMachineInstance default/vm-by-reference on workload-2") {
				return ""
			}
			return since
		})
	}
	slices.Sort(took)
	t.Logf("from the patch on the remote cluster to the Machine's status: p50 %s, p90 %s, max %s (n=%d, the function from zero at first)",
		took[rounds/2].Round(time.Millisecond), took[rounds*9/10].Round(time.Millisecond), took[rounds-1].Round(time.Millisecond), rounds)
}

// shows waits until a watched Machine has the address.
func shows(seen watch.Interface, address string) bool {
	deadline := time.After(patience)
	for {
		select {
		case event, open := <-seen.ResultChan():
			if !open {
				return false
			}
			machine, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				return false
			}
			addresses, _, _ := unstructured.NestedStringSlice(machine.Object, "status", "ipAddresses")
			if slices.Contains(addresses, address) {
				return true
			}
		case <-deadline:
			return false
		}
	}
}

// outage ends the API server of workload-3 as a person would, who looks at what comes of
// it, and waits for its return.
func (f *fixture) outage(t *testing.T) {
	remote := f.Remotes[2]
	id, err := os.ReadFile(filepath.Join(remote.Cluster.Dir, "kube-apiserver.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(id)))
	if err != nil {
		t.Fatal(err)
	}
	reason := func(machine string) string {
		return f.machine(machine, `.status.conditions[?(@.type=="Ready")].status`) + " " + f.machine(machine, `.status.conditions[?(@.type=="Ready")].reason`)
	}
	before := reason("by-annotation")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.eventually("the outage on the Machine", func() string { return differs("Unknown ClusterUnreachable", reason("by-annotation")) })
	if got := f.machine("by-annotation", ".status.phase"); got != "Running" {
		t.Errorf("an outage changed the phase to %q", got)
	}
	for _, neighbour := range []string{"by-default", "by-reference"} {
		if got := reason(neighbour); got != before {
			t.Errorf("neighbour %s says %q", neighbour, got)
		}
	}
	// The others go on as if nothing were.
	f.apply(`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: meanwhile, namespace: default}, spec: {template: small, kubevirtConfigRef: workload-1}}`)
	f.eventually("a Machine on another cluster", func() string { return differs("Running", f.machine("meanwhile", ".status.phase")) })
	f.CallBack(remote)
	f.eventually("the Machine to be back", func() string { return differs(before, reason("by-annotation")) })
}

// TestMakeRunWithThreeClusters runs the command that the README names.
func TestMakeRunWithThreeClusters(t *testing.T) {
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "run", "CLUSTERS=3", "SAMPLE=clusters", "ONCE=1")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for machine, cluster := range placed {
		found := false
		for line := range bytes.Lines(out) {
			fields := strings.Fields(string(line))
			found = found || len(fields) > 3 && fields[1] == machine && fields[2] == cluster && fields[3] == "Running"
		}
		if !found {
			t.Errorf("the table does not show Machine %s on %s:\n%s", machine, cluster, out)
		}
		if !bytes.Contains(out, []byte(cluster+": .cache/bin/kube kubectl --kubeconfig ")) {
			t.Errorf("nothing says how to reach %s:\n%s", cluster, out)
		}
	}
}
