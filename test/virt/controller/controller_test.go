package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stages"
	"github.com/slipway-dev/slipway/test/virt/admission"
	"github.com/slipway-dev/slipway/test/virt/controller"
)

var (
	machines  = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	instances = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
	kubevirts = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}
	claims    = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumes   = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}
)

// patience is how long a step may take on a busy machine; it takes a fraction of a
// second on an idle one.
const patience = 30 * time.Second

var binaries string

func TestMain(m *testing.M) {
	root, err := build.Root(".")
	if err == nil {
		err = build.Binaries(context.Background(), build.Options{Root: root, Out: os.Stderr}, "kube", "kwok")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binaries = filepath.Join(root, build.DefaultBin)
	os.Exit(m.Run())
}

// platform is a cluster on which KubeVirt and CDI seem to run.
type platform struct {
	*testing.T
	client dynamic.Interface
}

// setUp starts a cluster with its garbage collector, kwok and the controller.
func setUp(t *testing.T) *platform {
	t.Helper()
	dir := t.TempDir()
	cluster, err := kube.Start(t.Context(), kube.Options{
		Binary: filepath.Join(binaries, "kube"), Dir: dir, ControllerManager: true,
		Install: func(ctx context.Context, c *kube.Cluster) error {
			definitions, err := crds.Load(ctx, crds.KubeVirt, crds.CDI)
			if err != nil {
				return err
			}
			objects, err := stages.Objects()
			if err != nil {
				return err
			}
			return kube.Apply(ctx, c.Config, slices.Concat(definitions, objects)...)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	playStages(t, cluster.Kubeconfig, dir)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, cluster.Config, controller.Options{
			Memory: resource.MustParse("64Gi"), Log: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the controller ended with %v", err)
		}
	})
	config := *cluster.Config
	config.QPS = -1
	client, err := dynamic.NewForConfig(&config)
	if err != nil {
		t.Fatal(err)
	}
	p := &platform{t, client}
	p.await(kubevirts, "kubevirt", "kubevirt", "available", func(kv *unstructured.Unstructured) bool { return condition(kv, "Available") == "True" })
	return p
}

// playStages runs kwok as long as the test.
func playStages(t *testing.T, kubeconfig, dir string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd, err := stages.Command(ctx, filepath.Join(binaries, "kwok"), kubeconfig, filepath.Join(dir, "kwok"), 1)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "kwok.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			t.Logf("kwok used at most %d MiB and %s of a processor", usage.Maxrss/1024, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		}
		if !t.Failed() {
			return
		}
		content, _ := os.ReadFile(log.Name())
		t.Logf("kwok said:\n%s", content)
	})
}

// machineText is a machine with two claims, one interface on the pod network and one on
// another, as machine-vm makes them.
const machineText = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: vm-web, namespace: default}
spec:
  runStrategy: Always
  template:
    metadata: {labels: {vitistack.io/machine: web}}
    spec:
      domain:
        cpu: {cores: 2, threads: 1, sockets: 1}
        memory: {guest: 2Gi}
        devices:
          autoattachPodInterface: false
          disks:
          - {name: root, bootOrder: 1, disk: {bus: virtio}}
          - {name: data, disk: {bus: scsi}}
          interfaces:
          - {name: default, masquerade: {}, model: virtio, macAddress: "02-AA-00-00-00-01"}
          - {name: vlan10, bridge: {}}
      networks:
      - {name: default, pod: {}}
      - {name: vlan10, multus: {networkName: vlan10}}
      volumes:
      - {name: root, persistentVolumeClaim: {claimName: web-root}}
      - {name: data, persistentVolumeClaim: {claimName: web-data}}
`

const (
	rootClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: web-root, namespace: default}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 20Gi}}}
`
	dataClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: web-data, namespace: default}
spec: {accessModes: [ReadWriteOnce], storageClassName: fast-ssd, resources: {requests: {storage: 10Gi}}}
`
)

func TestController(t *testing.T) {
	p := setUp(t)
	t.Run("LifeOfAMachine", func(t *testing.T) { testLife(t, p) })
	t.Run("MachinesUnlikeOthers", func(t *testing.T) { testOthers(t, p) })
}

// testLife follows one machine from its claims to its deletion.
func testLife(t *testing.T, p *platform) {
	t.Run("ClaimsAreBoundAsTheirClassSays", func(t *testing.T) {
		p := p.in(t)
		p.create(claims, rootClaim)
		p.create(claims, dataClaim)
		p.await(claims, "default", "web-root", "bound", phase("Bound"))
		if data := p.get(claims, "default", "web-data"); text(data, "status", "phase") != "Pending" {
			t.Error("a claim that waits for its first consumer must wait")
		}
	})

	t.Run("MachineStarts", func(t *testing.T) {
		p := p.in(t)
		made := object(t, machineText)
		if errs := admission.Check(made); len(errs) > 0 {
			t.Fatalf("the machine of this test breaks KubeVirt's rules: %v", errs)
		}
		began := time.Now()
		p.create(machines, machineText)
		vm := p.await(machines, "default", "vm-web", "running", printable("Running"))
		t.Logf("from the machine to Running: %s", time.Since(began).Round(time.Millisecond))

		if created, _, _ := unstructured.NestedBool(vm.Object, "status", "created"); !created {
			t.Error("status.created is not true")
		}
		if ready, _, _ := unstructured.NestedBool(vm.Object, "status", "ready"); !ready || condition(vm, "Ready") != "True" {
			t.Error("the machine is not ready")
		}
		for _, path := range []string{"domain.firmware.uuid", "domain.firmware.serial", "domain.machine.type", "architecture"} {
			fields := append([]string{"spec", "template", "spec"}, strings.Split(path, ".")...)
			if text(vm, fields...) == "" {
				t.Errorf("the machine has not got its default %s", path)
			}
		}
		if !slices.Contains(vm.GetFinalizers(), "kubevirt.io/virtualMachineControllerFinalize") {
			t.Error("the machine has not got its finalizer")
		}
		p.await(claims, "default", "web-data", "bound by its first consumer", phase("Bound"))
	})

	t.Run("InstanceLooksLikeKubeVirts", func(t *testing.T) {
		p := p.in(t)
		vm := p.get(machines, "default", "vm-web")
		vmi := p.get(instances, "default", "vm-web")
		if !metav1.IsControlledBy(vmi, vm) {
			t.Error("the instance is not the machine's")
		}
		if vmi.GetLabels()["vitistack.io/machine"] != "web" || vmi.GetLabels()["kubevirt.io/nodeName"] != "node-1" {
			t.Errorf("labels are those of the template and the node, got %v", vmi.GetLabels())
		}
		if text(vmi, "status", "nodeName") != "node-1" || condition(vmi, "Ready") != "True" {
			t.Error("the instance is not ready on its node")
		}
		checkPhases(t, vmi)
		checkInterfaces(t, vmi)
		checkVolumes(t, vmi)
	})

	t.Run("ClaimGrowsWhereItsClassAllowsIt", func(t *testing.T) {
		p := p.in(t)
		larger := `{"spec":{"resources":{"requests":{"storage":"30Gi"}}}}`
		p.patch(claims, "web-data", larger)
		p.await(claims, "default", "web-data", "larger", func(o *unstructured.Unstructured) bool {
			return text(o, "status", "capacity", "storage") == "30Gi"
		})
		p.await(instances, "default", "vm-web", "aware of it", func(o *unstructured.Unstructured) bool {
			for _, status := range list(o, "status", "volumeStatus") {
				if capacity, _, _ := unstructured.NestedString(status, "persistentVolumeClaimInfo", "capacity", "storage"); capacity == "30Gi" {
					return text(o, "status", "phase") == "Running" && status["target"] != ""
				}
			}
			return false
		})
		_, err := p.client.Resource(claims).Namespace("default").Patch(t.Context(), "web-root", types.MergePatchType, []byte(larger), metav1.PatchOptions{})
		if !errors.IsForbidden(err) {
			t.Errorf("a class without expansion has to refuse, got %v", err)
		}
	})

	t.Run("RestartIsRequiredWhileTheSpecDiffers", func(t *testing.T) {
		p := p.in(t)
		p.patch(machines, "vm-web", `{"metadata":{"labels":{"a":"b"}},"spec":{"template":{"spec":{"domain":{"cpu":{"cores":4}}}}}}`)
		p.await(machines, "default", "vm-web", "to be restarted", func(o *unstructured.Unstructured) bool {
			return condition(o, "RestartRequired") == "True"
		})
		p.patch(machines, "vm-web", `{"spec":{"template":{"spec":{"domain":{"cpu":{"cores":2}}}}}}`)
		p.await(machines, "default", "vm-web", "as it was started", func(o *unstructured.Unstructured) bool {
			return condition(o, "RestartRequired") == ""
		})
		p.patch(machines, "vm-web", `{"spec":{"template":{"spec":{"domain":{"memory":{"guest":"4Gi"}}}}}}`)
		p.await(machines, "default", "vm-web", "to be restarted for its memory", func(o *unstructured.Unstructured) bool {
			return condition(o, "RestartRequired") == "True" && condition(o, "LiveMigratable") == "False"
		})
	})

	t.Run("MachineStopsAndStarts", func(t *testing.T) {
		p := p.in(t)
		before := p.get(instances, "default", "vm-web").GetUID()
		began := time.Now()
		p.patch(machines, "vm-web", `{"spec":{"runStrategy":"Halted"}}`)
		vm := p.await(machines, "default", "vm-web", "stopped", func(o *unstructured.Unstructured) bool {
			created, _, _ := unstructured.NestedBool(o.Object, "status", "created")
			return text(o, "status", "printableStatus") == "Stopped" && !created
		})
		t.Logf("to Stopped: %s", time.Since(began).Round(time.Millisecond))
		p.gone(instances, "default", "vm-web")
		if condition(vm, "RestartRequired") != "" {
			t.Error("a stopped machine needs no restart")
		}
		p.patch(machines, "vm-web", `{"spec":{"runStrategy":"Always"}}`)
		p.await(machines, "default", "vm-web", "running again", printable("Running"))
		vmi := p.get(instances, "default", "vm-web")
		if vmi.GetUID() == before {
			t.Error("a start makes a new instance")
		}
		if guest := text(vmi, "spec", "domain", "memory", "guest"); guest != "4Gi" {
			t.Errorf("a start takes the present spec, got a guest of %s", guest)
		}
	})

	t.Run("DeletedInstanceComesBack", func(t *testing.T) {
		p := p.in(t)
		before := p.get(instances, "default", "vm-web").GetUID()
		p.delete(instances, "vm-web")
		p.await(instances, "default", "vm-web", "another one that runs", func(o *unstructured.Unstructured) bool {
			return o.GetUID() != before && text(o, "status", "phase") == "Running"
		})
	})

	t.Run("ClaimInUseIsProtected", func(t *testing.T) {
		p := p.in(t)
		p.delete(claims, "web-root")
		p.await(claims, "default", "web-root", "terminating", func(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil })
		began := time.Now()
		p.delete(machines, "vm-web")
		p.gone(machines, "default", "vm-web")
		t.Logf("to a machine that is gone: %s", time.Since(began).Round(time.Millisecond))
		p.gone(instances, "default", "vm-web")
		p.gone(claims, "default", "web-root")
		p.delete(claims, "web-data")
		p.gone(claims, "default", "web-data")
	})
}

// testOthers has machines that cannot run, and machines that run in other ways.
func testOthers(t *testing.T, p *platform) {
	t.Run("MissingClaimIsNamedAndAwaited", func(t *testing.T) {
		p := p.in(t)
		p.create(machines, machineText)
		p.await(machines, "default", "vm-web", "without its claim", printable("ErrorPvcNotFound"))
		p.create(claims, rootClaim)
		p.create(claims, dataClaim)
		p.await(machines, "default", "vm-web", "running", printable("Running"))
	})
	t.Run("TooMuchMemoryIsUnschedulable", func(t *testing.T) {
		p := p.in(t)
		p.create(machines, simple("huge", "Always", "128Gi"))
		vm := p.await(machines, "default", "huge", "unschedulable", printable("ErrorUnschedulable"))
		if condition(vm, "PodScheduled") != "False" {
			t.Error("the machine does not mirror the instance's condition")
		}
		p.delete(machines, "huge")
		p.gone(machines, "default", "huge")
	})
	t.Run("NoMemoryIsAFailure", func(t *testing.T) {
		p := p.in(t)
		p.create(machines, strings.Replace(simple("none", "Always", "1Gi"), "memory: {guest: 1Gi}", "cpu: {cores: 1}", 1))
		p.await(machines, "default", "none", "failed", func(o *unstructured.Unstructured) bool { return condition(o, "Failure") == "True" })
	})
	t.Run("HaltedMachineStaysStopped", func(t *testing.T) {
		p := p.in(t)
		p.create(machines, simple("idle", "Halted", "1Gi"))
		p.await(machines, "default", "idle", "stopped", printable("Stopped"))
		if _, err := p.client.Resource(instances).Namespace("default").Get(t.Context(), "idle", metav1.GetOptions{}); !errors.IsNotFound(err) {
			t.Errorf("want no instance, got %v", err)
		}
	})
	t.Run("ManualMachineStartsOnRequest", func(t *testing.T) {
		p := p.in(t)
		p.create(machines, simple("manual", "Manual", "1Gi"))
		p.await(machines, "default", "manual", "stopped", printable("Stopped"))
		_, err := p.client.Resource(machines).Namespace("default").Patch(t.Context(), "manual", types.MergePatchType,
			[]byte(`{"status":{"stateChangeRequests":[{"action":"Start"}]}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
		vm := p.await(machines, "default", "manual", "running", printable("Running"))
		if requests := list(vm, "status", "stateChangeRequests"); len(requests) > 0 {
			t.Errorf("a request that was served is taken off, got %v", requests)
		}
	})
	t.Run("RunningStillMeansAlways", func(t *testing.T) {
		p := p.in(t)
		p.create(machines, strings.Replace(simple("old", "Always", "1Gi"), "runStrategy: Always", "running: true", 1))
		p.await(machines, "default", "old", "running", printable("Running"))
		p.patch(machines, "old", `{"spec":{"running":false}}`)
		p.await(machines, "default", "old", "stopped", printable("Stopped"))
	})
	t.Run("TemplateBecomesADataVolume", func(t *testing.T) {
		p := p.in(t)
		vm := strings.Replace(simple("iso", "Always", "1Gi"), "  template:", `  dataVolumeTemplates:
  - metadata: {name: iso-image}
    spec:
      source: {http: {url: "https://images.example.org/debian.iso"}}
      storage: {resources: {requests: {storage: 8Gi}}}
  template:`, 1) + "      volumes: [{name: image, dataVolume: {name: iso-image}}]\n"
		if errs := admission.Check(object(t, vm)); len(errs) > 0 {
			t.Fatal(errs)
		}
		p.create(machines, vm)
		p.await(volumes, "default", "iso-image", "imported", phase("Succeeded"))
		p.await(machines, "default", "iso", "running", printable("Running"))
		p.delete(machines, "iso")
		p.gone(machines, "default", "iso")
		p.gone(volumes, "default", "iso-image")
		p.gone(claims, "default", "iso-image")
	})
	t.Run("MemoryOfAMovableMachineGrowsLive", func(t *testing.T) {
		p := p.in(t)
		p.create(machines, simple("live", "Always", "2Gi"))
		p.await(machines, "default", "live", "running", printable("Running"))
		p.patch(machines, "live", `{"spec":{"template":{"spec":{"domain":{"memory":{"guest":"4Gi"}}}}}}`)
		p.await(instances, "default", "live", "larger", func(o *unstructured.Unstructured) bool {
			return text(o, "status", "memory", "guestCurrent") == "4Gi"
		})
		if vm := p.get(machines, "default", "live"); condition(vm, "RestartRequired") != "" {
			t.Error("what changes live needs no restart")
		}
	})
}

// simple is a machine without volumes, on the pod network by default.
func simple(name, strategy, memory string) string {
	return fmt.Sprintf(`
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: %s, namespace: default}
spec:
  runStrategy: %s
  template:
    spec:
      domain:
        memory: {guest: %s}
        devices: {}
`, name, strategy, memory)
}

func checkPhases(t *testing.T, vmi *unstructured.Unstructured) {
	t.Helper()
	var got []string
	for _, transition := range list(vmi, "status", "phaseTransitionTimestamps") {
		got = append(got, transition["phase"].(string))
	}
	if want := "Pending Scheduling Scheduled Running"; strings.Join(got, " ") != want {
		t.Errorf("want the phases %s, got %v", want, got)
	}
}

func checkInterfaces(t *testing.T, vmi *unstructured.Unstructured) {
	t.Helper()
	interfaces := list(vmi, "status", "interfaces")
	if len(interfaces) != 2 {
		t.Fatalf("want one entry per interface, got %v", interfaces)
	}
	first, second := interfaces[0], interfaces[1]
	if first["name"] != "default" || first["mac"] != "02:aa:00:00:00:01" {
		t.Errorf("the first interface keeps its name and its MAC, got %v", first)
	}
	if ips := first["ipAddresses"].([]any); len(ips) != 2 || !strings.HasPrefix(ips[0].(string), "10.244.") || !strings.Contains(ips[1].(string), ":") {
		t.Errorf("the first interface has an IPv4 and an IPv6 address, got %v", ips)
	}
	if mac, _ := second["mac"].(string); !strings.HasPrefix(mac, "02:") || len(mac) != 17 {
		t.Errorf("an interface without MAC gets one, got %v", second["mac"])
	}
	if ips := second["ipAddresses"].([]any); len(ips) != 1 || ips[0] != second["ipAddress"] {
		t.Errorf("the second interface has one address, got %v", ips)
	}
}

func checkVolumes(t *testing.T, vmi *unstructured.Unstructured) {
	t.Helper()
	var got []string
	for _, status := range list(vmi, "status", "volumeStatus") {
		claim, _, _ := unstructured.NestedString(status, "persistentVolumeClaimInfo", "claimName")
		capacity, _, _ := unstructured.NestedString(status, "persistentVolumeClaimInfo", "capacity", "storage")
		mode, _, _ := unstructured.NestedString(status, "persistentVolumeClaimInfo", "volumeMode")
		got = append(got, fmt.Sprintf("%v %v %s %s %s", status["name"], status["target"], claim, capacity, mode))
	}
	want := []string{"data sda web-data 10Gi Filesystem", "root vda web-root 20Gi Filesystem"}
	if !slices.Equal(got, want) {
		t.Errorf("want the volumes %v, got %v", want, got)
	}
}

// in returns the platform for a subtest.
func (p *platform) in(t *testing.T) *platform { return &platform{t, p.client} }

func (p *platform) create(kind schema.GroupVersionResource, manifest string) {
	p.Helper()
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	if _, err := p.client.Resource(kind).Namespace("default").Create(p.Context(), object(p.T, manifest), options); err != nil {
		p.Fatal(err)
	}
}

func (p *platform) patch(kind schema.GroupVersionResource, name, body string) {
	p.Helper()
	options := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}
	if _, err := p.client.Resource(kind).Namespace("default").Patch(p.Context(), name, types.MergePatchType, []byte(body), options); err != nil {
		p.Fatal(err)
	}
}

func (p *platform) delete(kind schema.GroupVersionResource, name string) {
	p.Helper()
	if err := p.client.Resource(kind).Namespace("default").Delete(p.Context(), name, metav1.DeleteOptions{}); err != nil {
		p.Fatal(err)
	}
}

func (p *platform) get(kind schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	p.Helper()
	got, err := p.client.Resource(kind).Namespace(namespace).Get(p.Context(), name, metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return got
}

// await waits until an object is as it should be.
func (p *platform) await(kind schema.GroupVersionResource, namespace, name, what string, holds func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	p.Helper()
	last := p.follow(kind, namespace, name, func(o *unstructured.Unstructured) bool { return o != nil && holds(o) })
	if last == nil || !holds(last) {
		status := any("it does not exist")
		if last != nil {
			status = last.Object["status"]
		}
		p.Fatalf("%s %s/%s is not %s after %s: %v", kind.Resource, namespace, name, what, patience, status)
	}
	return last
}

// gone waits until an object does not exist any more.
func (p *platform) gone(kind schema.GroupVersionResource, namespace, name string) {
	p.Helper()
	if last := p.follow(kind, namespace, name, func(o *unstructured.Unstructured) bool { return o == nil }); last != nil {
		p.Fatalf("%s %s/%s is not gone after %s: finalizers %v", kind.Resource, namespace, name, patience, last.GetFinalizers())
	}
}

// follow watches an object until it is as wanted, and returns its last state, nil if
// it does not exist.
func (p *platform) follow(kind schema.GroupVersionResource, namespace, name string, wanted func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), patience)
	defer cancel()
	client := p.client.Resource(kind).Namespace(namespace)
	objects, err := client.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		p.Fatal(err)
	}
	var last *unstructured.Unstructured
	if len(objects.Items) > 0 {
		last = &objects.Items[0]
	}
	watcher, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: objects.GetResourceVersion()})
	if err != nil {
		p.Fatal(err)
	}
	defer watcher.Stop()
	for !wanted(last) {
		event, open := <-watcher.ResultChan()
		if !open {
			return last
		}
		last, _ = event.Object.(*unstructured.Unstructured)
		if event.Type == watch.Deleted {
			last = nil
		}
	}
	return last
}

func phase(want string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool { return text(o, "status", "phase") == want }
}

func printable(want string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool { return text(o, "status", "printableStatus") == want }
}

func text(o *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, fields...)
	return value
}

func list(o *unstructured.Unstructured, fields ...string) []map[string]any {
	values, _, _ := unstructured.NestedSlice(o.Object, fields...)
	entries := make([]map[string]any, 0, len(values))
	for _, value := range values {
		entries = append(entries, value.(map[string]any))
	}
	return entries
}

// condition returns the status of a condition, "" if there is none.
func condition(o *unstructured.Unstructured, kind string) string {
	for _, c := range list(o, "status", "conditions") {
		if c["type"] == kind {
			return c["status"].(string)
		}
	}
	return ""
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	objects, err := kube.Decode(strings.NewReader(manifest))
	if err != nil || len(objects) != 1 {
		t.Fatalf("cannot read one object: %v", err)
	}
	return objects[0]
}

// testWriter sends the controller's log to the test's.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(line []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}
