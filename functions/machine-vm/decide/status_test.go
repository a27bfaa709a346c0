package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/vault"
)

// instance is an instance with a status.
func instance(status string) string {
	return `{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: vm-web, creationTimestamp: "2026-11-21T10:00:00Z"}, status: {` + status + `}}`
}

func TestPhaseAndReady(t *testing.T) {
	for name, c := range map[string]struct {
		reason    string
		spec      string
		printable string
		strategy  string
		instance  string
		unbound   bool
		phase     string
		ready     string
		state     string
	}{
		"running":                     {reason: "the instance says so", printable: "Running", instance: `phase: Running`, phase: "Running", ready: "True Running", state: "Running"},
		"running before KubeVirt":     {reason: "the instance goes before the printable status", printable: "Starting", instance: `phase: Running`, phase: "Running", ready: "True Running", state: "Running"},
		"ready by its own word":       {reason: "the instance's condition", printable: "Running", instance: `phase: Running, conditions: [{type: Ready, status: "True"}]`, phase: "Running", ready: "True Running", state: "Running"},
		"not ready by its own word":   {reason: "the instance's condition", printable: "Running", instance: `phase: Running, conditions: [{type: Ready, status: "False", message: no agent}]`, phase: "Running", ready: "False Creating", state: "Running"},
		"migrating":                   {reason: "it runs", printable: "Migrating", instance: `phase: Running`, phase: "Running", ready: "True Running", state: "Running"},
		"paused":                      {reason: "it runs and does nothing", printable: "Paused", instance: `phase: Running`, phase: "Running", ready: "False Paused", state: "Running"},
		"paused by condition":         {reason: "the printable status lags", printable: "Running", instance: `phase: Running, conditions: [{type: Paused, status: "True"}]`, phase: "Running", ready: "False Paused", state: "Running"},
		"says running, no instance":   {reason: "one of the two is old", printable: "Running", phase: "Running", ready: "Unknown VMStatusUnknown", state: "Running"},
		"unknown":                     {reason: "KubeVirt does not tell", printable: "Unknown", phase: "Creating", ready: "Unknown VMStatusUnknown", state: "Unknown"},
		"stopped, to be started":      {reason: "KubeVirt is about to start it", printable: "Stopped", phase: "Creating", ready: "False Creating", state: "Stopped"},
		"stopped":                     {reason: "on purpose", spec: `running: false`, printable: "Stopped", phase: "Stopped", ready: "False Stopped", state: "Stopped"},
		"stopped by hand":             {reason: "TK-4, PW-1", strategy: "Halted", printable: "Stopped", phase: "Stopped", ready: "False Stopped", state: "Stopped"},
		"stopping":                    {reason: "on its way off", strategy: "Halted", printable: "Stopping", phase: "Stopped", ready: "False Stopped", state: "Stopping"},
		"terminating":                 {reason: "on its way off", printable: "Terminating", phase: "Stopped", ready: "False Stopped", state: "Terminating"},
		"starting":                    {reason: "on its way up", printable: "Starting", phase: "Creating", ready: "False Creating", state: "Starting"},
		"provisioning":                {reason: "on its way up", printable: "Provisioning", phase: "Creating", ready: "False Creating", state: "Provisioning"},
		"waiting for volumes":         {reason: "on its way up", printable: "WaitingForVolumeBinding", phase: "Creating", ready: "False Creating", state: "WaitingForVolumeBinding"},
		"nothing said yet":            {reason: "on its way up", printable: "", phase: "Creating", ready: "False Creating"},
		"unschedulable":               {reason: "no node has room", printable: "ErrorUnschedulable", phase: "Creating", ready: "False InsufficientResources", state: "ErrorUnschedulable"},
		"unschedulable by condition":  {reason: "the scheduler says so", printable: "Starting", instance: `phase: Scheduling, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes}]`, phase: "Creating", ready: "False InsufficientResources", state: "Starting"},
		"crash loop":                  {reason: "KubeVirt reports a failure", printable: "CrashLoopBackOff", phase: "Failed", ready: "False CrashLoopBackOff", state: "CrashLoopBackOff"},
		"no image":                    {reason: "KubeVirt reports a failure", printable: "ErrImagePull", phase: "Failed", ready: "False ErrImagePull", state: "ErrImagePull"},
		"no claim":                    {reason: "KubeVirt reports a failure", printable: "ErrorPvcNotFound", phase: "Failed", ready: "False ErrorPvcNotFound", state: "ErrorPvcNotFound"},
		"no data":                     {reason: "KubeVirt reports a failure", printable: "DataVolumeError", phase: "Failed", ready: "False DataVolumeError", state: "DataVolumeError"},
		"runs, claims not bound":      {reason: "only storage is missing", printable: "Running", instance: `phase: Running`, unbound: true, phase: "Running", ready: "False StoragePending", state: "Running"},
		"an instance that is pending": {reason: "not running", printable: "Starting", instance: `phase: Pending`, phase: "Creating", ready: "False Creating", state: "Starting"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.machine(c.spec)
			w.settle("web")
			w.edit(kinds.VirtualMachines, "vm-web", func(obj *unstructured.Unstructured) {
				put(obj.Object, c.printable, "status", "printableStatus")
				if c.strategy != "" {
					put(obj.Object, c.strategy, "spec", "runStrategy")
				}
			})
			if !c.unbound {
				w.edit(kind.PersistentVolumeClaims, "web-root", func(obj *unstructured.Unstructured) { put(obj.Object, "Bound", "status", "phase") })
			}
			if c.instance != "" {
				w.add(instance(c.instance))
			}
			w.settle("web")
			sees(t, "the phase ("+c.reason+")", w.status("web").Phase, c.phase)
			sees(t, "Ready ("+c.reason+")", w.ready("web"), c.ready)
			sees(t, "the state", w.status("web").State, c.state)
			sees(t, "message", w.status("web").Message, w.message("web", v1alpha1.ConditionReady))
			failing := c.phase == "Failed" || strings.Contains(c.ready, "Insufficient")
			if (w.status("web").FailureReason != nil) != failing {
				t.Errorf("ST-10: failureReason is %v (%s)", w.status("web").FailureReason, c.reason)
			}
		})
	}
}

func TestInstanceInStatus(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	w.kubevirt("vm-web")
	w.settle("web")
	status := w.status("web")
	status.Conditions = nil
	status.LastUpdated = metav1.Time{}
	booted := metav1.NewTime(time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC).Local())
	want := v1alpha1.MachineStatus{
		Phase: "Running", ObservedGeneration: 1, Message: "the virtual machine runs", State: "Running",
		VMName: "vm-web", VMIName: "vm-web", NodeName: "node-1", ResourceVersion: status.ResourceVersion, Provider: "kubevirt",
		IPAddresses: []string{"10.0.0.5"}, IPv6Addresses: []string{"fd00::5"}, PublicIPAddresses: []string{"10.0.0.5", "fd00::5"},
		NetworkInterfaces: []v1alpha1.MachineNetworkInterfaceStatus{{
			Name: "default", MACAddress: "02:12:00:00:00:01", IPAddresses: []string{"10.0.0.5"}, IPv6Addresses: []string{"fd00::5"},
		}},
		Disks: []v1alpha1.MachineDiskStatus{{
			Name: "root", PVCName: "web-root", VolumeMode: "Filesystem", AccessModes: []string{"ReadWriteOnce"}, Device: "/dev/vda", Size: 20 << 30,
		}},
		BootTime: &booted,
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("ST-3 to ST-8 (-want +got):\n%s", diff)
	}
}

func TestResourceVersionInStatus(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	created := w.status("web").ResourceVersion
	sees(t, "ST-3: after creation", created, w.must(kinds.VirtualMachines, "vm-web").GetResourceVersion())
	w.kubevirt("vm-web")
	w.settle("web")
	sees(t, "after a write of KubeVirt's", w.status("web").ResourceVersion, created)
	w.respec(`template: large`)
	w.settle("web")
	sees(t, "after our write", w.status("web").ResourceVersion, w.must(kinds.VirtualMachines, "vm-web").GetResourceVersion())
}

func TestAddresses(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	w.kubevirt("vm-web")
	report := func(interfaces string) v1alpha1.MachineStatus {
		w.store(parse(t, instance(`phase: Running, interfaces: [`+interfaces+`]`)))
		w.get(kinds.VirtualMachineInstances, "vm-web").SetNamespace(ns)
		w.settle("web")
		return w.status("web")
	}
	s := report(`{name: default, mac: "02:00:00:00:00:01", ipAddress: 10.0.0.1}, {mac: "02:00:00:00:00:02", interfaceName: docker0, ipAddresses: [172.17.0.1, 10.0.0.1]}, {mac: "00:00:00:00:00:00", ipAddress: 127.0.0.1}, {ipAddress: 127.0.0.2}, {name: lan, mac: "02:00:00:00:00:03"}`)
	sees(t, "ST-5: all", fmt.Sprint(s.IPAddresses), "[10.0.0.1 172.17.0.1]")
	sees(t, "ST-5: of named interfaces", fmt.Sprint(s.PublicIPAddresses), "[10.0.0.1]")
	sees(t, "ST-5: of unnamed ones", fmt.Sprint(s.PrivateIPAddresses), "[172.17.0.1 10.0.0.1]")
	if len(s.NetworkInterfaces) != 3 {
		t.Errorf("ST-5: entries without address appear too: %v", s.NetworkInterfaces)
	}

	s = report(`{name: default, mac: "02:00:00:00:00:01"}`)
	sees(t, "ST-7: an empty report clears nothing", fmt.Sprint(s.IPAddresses), "[10.0.0.1]")
	holdsText(t, "NetworkReady says so", w.message("web", v1alpha1.ConditionNetworkReady), "last known")
	s = report(``)
	sees(t, "ST-7: nor does no report at all", fmt.Sprint(s.IPAddresses), "[10.0.0.1]")
	s = report(`{name: default, mac: "02:00:00:00:00:01", ipAddress: 10.0.0.9}`)
	sees(t, "ST-7: a new address replaces it", fmt.Sprint(s.IPAddresses), "[10.0.0.9]")

	w.store(parse(t, strings.Replace(instance(`phase: Running, interfaces: [{name: default, mac: "02:00:00:00:00:01"}]`), "T10:00", "T11:30", 1)))
	w.settle("web")
	sees(t, "ST-7: a new boot forgets", fmt.Sprint(w.status("web").IPAddresses), "[]")
	report(`{name: default, mac: "02:00:00:00:00:01", ipAddress: 10.0.0.9}`)
	w.remove(kinds.VirtualMachineInstances, "vm-web")
	w.settle("web")
	sees(t, "ST-7: without an instance they go", fmt.Sprint(w.status("web").IPAddresses), "[]")
}

func TestAddressesFromTheRecord(t *testing.T) {
	w := newWorld(t)
	w.settings.AddressesFromRecord = true
	w.machine(`template: small`)
	w.settle("web")
	w.kubevirt("vm-web")
	w.edit(kinds.NetworkConfigurations, "web", func(obj *unstructured.Unstructured) {
		put(obj.Object, []any{map[string]any{"macAddress": "x", "ipv4Addresses": []any{"192.0.2.7/24"}, "ipv6Addresses": []any{"2001:db8::7"}}}, "status", "networkInterfaces")
	})
	w.settle("web")
	sees(t, "ST-6: public", fmt.Sprint(w.status("web").PublicIPAddresses), "[192.0.2.7 2001:db8::7]")
	sees(t, "ST-6: all", fmt.Sprint(w.status("web").IPAddresses), "[10.0.0.5]")
	w.remove(kinds.NetworkConfigurations, "web")
	in := w.input("web", vault.New())
	c := Conclude(instant, in, plan.Answers{}, nil)
	sees(t, "ST-6: without the record", fmt.Sprint(c.Status["publicIPAddresses"]), "[10.0.0.5 fd00::5]")
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		res    kind.Resource
		gone   kind.Resource
	}{
		"of a virtual machine": {reason: "admission said no", res: kinds.VirtualMachines, gone: kinds.VirtualMachines},
		"of a claim":           {reason: "a quota", res: kind.PersistentVolumeClaims, gone: kinds.VirtualMachines},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.machine(`template: small`)
			w.refuse[c.res.String()] = &fault.Fault{Class: fault.Refused, Call: "create x", Code: 422, Message: "admission webhook denied the request: spec.template is bad"}
			w.settle("web")
			sees(t, "ER-1: Ready", w.ready("web"), "False KubeVirtApiError")
			sees(t, "VirtualMachineReady", w.cond("web", v1alpha1.ConditionVirtualMachineReady), "False VMFailed")
			holdsText(t, "the text of the server", w.message("web", "Ready"), "admission webhook denied the request: spec.template is bad")
			sees(t, "phase", w.status("web").Phase, "Failed")
			if w.get(c.gone, "vm-web") != nil {
				t.Errorf("a later stage went on (%s)", c.reason)
			}
			delete(w.refuse, c.res.String())
			w.settle("web")
			sees(t, "ER-2: Ready once it is allowed", w.ready("web"), "False Creating")
			if w.status("web").FailureReason != nil {
				t.Error("ST-10: the failure is still there")
			}
		})
	}
}

func TestReadsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	w.kubevirt("vm-web")
	w.settle("web")
	in := w.input("web", vault.New())
	in.Faults = []fault.Fault{{Class: fault.Refused, Call: "get virtualmachines.kubevirt.io team-a/vm-web", Message: "forbidden"}}
	in.VMs, in.Instance, in.VMsUnread = nil, nil, true
	d := Decide(instant, in, plan.Answers{})
	c := Conclude(instant, in, plan.Answers{}, nil)
	if len(d.Plan.Stages) > 0 {
		t.Errorf("something is written in the dark: %v", d.Plan)
	}
	sees(t, "the reason", c.Reason, "KubeVirtApiError")
	sees(t, "the name of the virtual machine stays", fmt.Sprint(c.Status["vmName"]), "vm-web")
}

func TestAClusterThatDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	w.kubevirt("vm-web")
	w.settle("web")
	before := w.status("web")
	in := w.input("web", vault.New())
	in.Target = Target{Cluster: "east", Config: "east", Unreachable: &fault.Fault{Class: fault.Unavailable, Cluster: "east", Message: "connection refused"}}
	in.VMs, in.Instance, in.Claims = nil, nil, nil
	if d := Decide(instant, in, plan.Answers{}); len(d.Plan.Stages) > 0 {
		t.Errorf("CN-5: something is written: %v", d.Plan)
	}
	c := Conclude(instant, in, plan.Answers{}, nil)
	sees(t, "the class", string(c.Class), string(plan.Waiting))
	sees(t, "the reason", c.Reason, v1alpha1.ReasonClusterUnreachable)
	machine, err := plan.Typed[v1alpha1.Machine](&unstructured.Unstructured{Object: map[string]any{"status": c.Status}})
	if err != nil {
		t.Fatal(err)
	}
	after := machine.Status
	ready := v1alpha1.FindCondition(after.Conditions, v1alpha1.ConditionReady)
	sees(t, "Ready", ready.Status, "Unknown")
	for _, s := range []*v1alpha1.MachineStatus{&before, &after} {
		s.Conditions = v1alpha1.RemoveCondition(s.Conditions, v1alpha1.ConditionReady)
		s.Message, s.KubevirtConfigRef = "", ""
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("CN-5: all else stays (-before +after):\n%s", diff)
	}
}

func TestTheOldStatusIsGivenBackToTheByte(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	w.edit(kinds.Machines, "web", func(obj *unstructured.Unstructured) {
		put(obj.Object, "somebody's", "status", "providerID")
		put(obj.Object, "2001-01-01T00:00:00Z", "status", "lastUpdated")
	})
	w.settle("web")
	before := w.must(kinds.Machines, "web").Object["status"]
	in := w.input("web", vault.New())
	c := Conclude(instant.Add(time.Hour), in, plan.Answers{}, nil)
	if diff := cmp.Diff(before, any(c.Status)); diff != "" {
		t.Errorf("ST-9 (-before +after):\n%s", diff)
	}
	sees(t, "what others wrote", fmt.Sprint(c.Status["providerID"]), "somebody's")
}

func TestEvents(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: huge`)
	o := w.reconcile("web")
	if len(o.conclusion.Events) != 1 || !o.conclusion.Events[0].Warning || o.conclusion.Events[0].Reason != "TemplateNotFound" {
		t.Errorf("ST-12: the events of a new error are %v", o.conclusion.Events)
	}
	if o := w.reconcile("web"); len(o.conclusion.Events) != 0 {
		t.Errorf("ST-12: nothing happened, and there are events: %v", o.conclusion.Events)
	}
	w.respec(`template: small`)
	if o := w.reconcile("web"); len(o.conclusion.Events) != 1 || o.conclusion.Events[0].Reason != "Creating" {
		t.Errorf("ST-12: the events of a new phase are %v", o.conclusion.Events)
	}
}

func TestClip(t *testing.T) {
	for _, text := range []string{strings.Repeat("é", 300), "a\nb\t c", strings.Repeat("x", 1000), "\xff\xfe"} {
		got := clip.Line(text, messageMax)
		if len(got) > messageMax || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\t") {
			t.Errorf("ST-10: %q has become %q", text, got)
		}
	}
}
