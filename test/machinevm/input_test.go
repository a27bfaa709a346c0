package machinevm

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// bad is a Machine that cannot become a virtual machine as things stand.
type bad struct {
	name, reason string
	// given is what lies in the namespace before.
	given string
	spec  string
	// ready is "status reason" of Ready, part the condition that is not True either,
	// says a piece of the message.
	ready, part, says string
	phase             string
	// made is what is made all the same.
	made []string
	// heal takes the cause away and returns the event that tells of it. Nil: there is
	// no way out but another spec.
	heal func(w *world) cloudevents.Event
}

// foreignClaim is a claim of the name that a disk's would have, with metadata.
func foreignClaim(metadata string) string {
	return `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: bad-root` + metadata + `},
  spec: {accessModes: [ReadWriteOnce], storageClassName: standard, resources: {requests: {storage: 20Gi}}}}`
}

// foreignVM is a virtual machine of the name that the Machine's would have.
const foreignVM = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: vm-bad, labels: {vitistack.io/machine: somebody, vitistack.io/managed-by: kubevirt-operator}, annotations: {vitistack.io/machine-uid: 0-0, vitistack.io/machine-name: somebody}}
spec:
  runStrategy: Halted
  template: {spec: {domain: {devices: {}, memory: {guest: 1Gi}}}}
`

// respec gives the Machine a spec that works.
func respec(w *world) cloudevents.Event {
	w.Patch(kinds.Machines, "bad", `{spec: {template: small, resources: null, disks: null, cloudInit: null, networks: null, network: null, domain: null, machineClass: null, instanceType: null}}`)
	return w.machineEvent("bad")
}

func arrives(manifest string) func(*world) cloudevents.Event {
	return func(w *world) cloudevents.Event {
		obj := w.Create(manifest)
		return w.Event(w.ResourceOf(obj), obj.GetName())
	}
}

func goes(res kind.Resource, name string) func(*world) cloudevents.Event {
	return func(w *world) cloudevents.Event {
		w.Remove(res, name)
		w.release()
		return w.Event(res, name)
	}
}

const (
	vmReady      = "VirtualMachineReady"
	storageReady = "StorageReady"
	networkReady = "NetworkReady"
)

var badInput = []bad{
	{
		name: "UnknownTemplate", reason: "a template that does not exist is said so", spec: `template: huge`,
		ready: "False TemplateNotFound", part: vmReady, says: `"huge"`, heal: respec,
	},
	{
		name: "UnknownInstanceType", reason: "neither a class nor a template", spec: `instanceType: t3.medium`,
		ready: "False TemplateNotFound", part: vmReady, says: `"t3.medium"`, heal: respec,
	},
	{
		name: "UnknownClass", reason: "a class may come later", spec: `machineClass: gold`,
		ready: "False TemplateNotFound", part: vmReady, says: `"gold"`,
		heal: arrives(`{apiVersion: vitistack.io/v1alpha1, kind: MachineClass, metadata: {name: gold}, spec: {enabled: true, default: false, category: Standard, cpu: {cores: 2}, memory: {quantity: 3Gi}, machineProviders: []}}`),
	},
	{
		name: "DisabledClass", reason: "a class that is disabled counts as none", spec: `machineClass: iron`,
		given: `{apiVersion: vitistack.io/v1alpha1, kind: MachineClass, metadata: {name: iron}, spec: {enabled: false, default: false, category: Standard, cpu: {cores: 2}, memory: {quantity: 3Gi}, machineProviders: []}}`,
		ready: "False TemplateNotFound", part: vmReady, says: "disabled", heal: respec,
	},
	{
		name: "NoMemory", reason: "zero bytes", spec: `{template: small, resources: {memory: {size: "0"}}}`,
		ready: "False InvalidSpec", part: vmReady, says: "memory", heal: respec,
	},
	{
		name: "OneByteOfMemory", reason: "KubeVirt would take it", spec: `{template: small, resources: {memory: {size: "1"}}}`,
		ready: "False InvalidSpec", part: vmReady, says: "memory", heal: respec,
	},
	{
		name: "NegativeMemory", reason: "a quantity may be negative", spec: `{template: small, resources: {memory: {size: -4Gi}}}`,
		ready: "False InvalidSpec", part: vmReady, says: "memory", heal: respec,
	},
	{
		name: "EmptyDisk", reason: "zero bytes", spec: `{template: small, disks: [{name: data, size: "0"}]}`,
		ready: "False InvalidSpec", part: storageReady, says: `"data"`, heal: respec,
	},
	{
		name: "NegativeDisk", reason: "a quantity may be negative", spec: `{template: small, disks: [{name: data, size: -1Gi}]}`,
		ready: "False InvalidSpec", part: storageReady, says: `"data"`, heal: respec,
	},
	{
		name: "DiskWithoutSize", reason: "nobody guesses sizes", spec: `{template: small, disks: [{name: data}]}`,
		ready: "False InvalidSpec", part: storageReady, says: `"data"`, heal: respec,
	},
	{
		name: "TwoDisksOfOneName", reason: "they would share a claim", spec: `{template: small, disks: [{name: data, size: 1Gi}, {name: data, size: 2Gi}]}`,
		ready: "False InvalidSpec", part: storageReady, says: `"data"`, heal: respec,
	},
	{
		name: "TwoBootDisks", reason: "one boots", spec: `{template: small, disks: [{name: a, size: 1Gi, boot: true}, {name: b, size: 2Gi, boot: true}]}`,
		ready: "False InvalidSpec", part: storageReady, says: "boot", heal: respec,
	},
	{
		name: "ReservedDiskName", reason: "cloud-init's disk has that name", spec: `{template: small, disks: [{name: cloudinitdisk, size: 1Gi}]}`,
		ready: "False InvalidSpec", part: storageReady, says: `"cloudinitdisk"`, heal: respec,
	},
	{
		name: "UpperCaseDiskName", reason: "KubeVirt refuses it after the claims are made", spec: `{template: small, disks: [{name: Data, size: 1Gi}]}`,
		ready: "False InvalidSpec", part: storageReady, says: `"Data"`, heal: respec,
	},
	{
		name: "UserDataThatIsNoBase64", reason: "KubeVirt would refuse it", spec: `{template: small, cloudInit: {userDataBase64: "%%% not base64 %%%"}}`,
		ready: "False InvalidSpec", part: vmReady, says: "userDataBase64", heal: respec,
	},
	{
		name: "NetworkDataThatIsNoBase64", reason: "each part is looked at", spec: `{template: small, cloudInit: {userData: "x", networkDataBase64: "a"}}`,
		ready: "False InvalidSpec", part: vmReady, says: "networkDataBase64", heal: respec,
	},
	{
		name: "MissingSecret", reason: "it is awaited, and its arrival is an event", spec: `{template: small, cloudInit: {secretRef: {name: later}}}`,
		ready: "False CloudInitSourceNotFound", says: `"later"`, phase: "Pending",
		heal: arrives(`{apiVersion: v1, kind: Secret, metadata: {name: later, labels: {slipway.dev/watch: ""}}, stringData: {userdata: "#cloud-config"}}`),
	},
	{
		name: "MissingKey", reason: "so is a key of a Secret that is there", spec: `{template: small, cloudInit: {secretRef: {name: keyless, key: init}}}`,
		given: `{apiVersion: v1, kind: Secret, metadata: {name: keyless}, stringData: {other: x}}`,
		ready: "False CloudInitSourceNotFound", says: `"init"`, phase: "Pending",
		heal: func(w *world) cloudevents.Event {
			w.Patch(kind.Secrets, "keyless", `{stringData: {init: "#cloud-config"}}`)
			return w.Event(kind.Secrets, "keyless")
		},
	},
	{
		name: "MissingConfigMap", reason: "and a ConfigMap", spec: `{template: small, cloudInit: {userDataConfigMapRef: {name: later}}}`,
		ready: "False CloudInitSourceNotFound", says: `"later"`, phase: "Pending",
		heal: arrives(`{apiVersion: v1, kind: ConfigMap, metadata: {name: later}, data: {userdata: "#cloud-config"}}`),
	},
	{
		name: "UnknownStorageClass", reason: "a claim of it would wait for ever", spec: `{template: small, disks: [{name: data, size: 1Gi, storageClass: gold}]}`,
		ready: "False StorageClassNotFound", part: storageReady, says: `"gold"`,
		heal: func(w *world) cloudevents.Event {
			w.Create(`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: gold}, provisioner: local.slipway.dev/simulated}`)
			return w.machineEvent("bad")
		},
	},
	{
		name: "UnknownNetwork", reason: "a network may come later", spec: `{template: small, networks: [{name: eth0, networkName: later}]}`,
		ready: "False NetworkConfigurationNotFound", part: networkReady, says: `"later"`,
		heal: arrives(`{apiVersion: vitistack.io/v1alpha1, kind: NetworkConfiguration, metadata: {name: later}, spec: {vlan: 5}}`),
	},
	{
		name: "NetworkThatSaysNothing", reason: "neither bridge nor VLAN, and no definition", spec: `{template: small, networks: [{name: eth0, networkName: empty}]}`,
		given: `{apiVersion: vitistack.io/v1alpha1, kind: NetworkConfiguration, metadata: {name: empty}, spec: {}}`,
		ready: "False NetworkFailed", part: networkReady, says: `"empty"`,
		heal: func(w *world) cloudevents.Event {
			w.Patch(kinds.NetworkConfigurations, "empty", `{spec: {bridge: br3}}`)
			return w.Event(kinds.NetworkConfigurations, "empty")
		},
	},
	{
		name: "UnknownNetworkNamespace", reason: "upstream guessed one, nobody does here", spec: `{template: small, network: {networkNamespaceName: later}}`,
		ready: "False NetworkFailed", part: networkReady, says: `"later"`,
		heal: arrives(`{apiVersion: vitistack.io/v1alpha1, kind: NetworkNamespace, metadata: {name: later}, spec: {ipAllocation: {type: dhcp}}}`),
	},
	{
		name: "AddressThatIsAwaited", reason: "the record tells the address operator what is needed", spec: `{template: small, network: {networkNamespaceName: static}, cloudInit: {userData: "#cloud-config"}}`,
		given: `{apiVersion: vitistack.io/v1alpha1, kind: NetworkNamespace, metadata: {name: static}, spec: {ipAllocation: {type: static, static: {ipv4CIDR: 10.1.0.0/24, ipv4Gateway: 10.1.0.1}}}}`,
		ready: "False StaticAddressPending", phase: "Pending", made: []string{"NetworkConfiguration/bad"},
		heal: func(w *world) cloudevents.Event {
			mac := derivedMAC(string(w.Must(kinds.Machines, "bad").GetUID()), "vlan0")
			w.Patch(kinds.NetworkConfigurations, "bad", `{status: {networkInterfaces: [{name: vlan0, macAddress: "`+mac+`", ipv4Addresses: [10.1.0.7]}]}}`, "status")
			return w.Event(kinds.NetworkConfigurations, "bad")
		},
	},
	{
		name: "SameMACTwice", reason: "KubeVirt would take it", spec: `{template: small, networks: [{name: eth0, networkName: a, macAddress: "02:00:00:00:00:01"}, {name: eth1, macAddress: "02:00:00:00:00:01"}]}`,
		given: `{apiVersion: vitistack.io/v1alpha1, kind: NetworkConfiguration, metadata: {name: a}, spec: {vlan: 5}}`,
		ready: "False InvalidSpec", part: networkReady, says: "02:00:00:00:00:01", heal: respec,
	},
	{
		name: "MulticastMAC", reason: "no interface has one of its own", spec: `{template: small, networks: [{name: eth0, macAddress: "01:00:5e:00:00:01"}]}`,
		ready: "False InvalidSpec", part: networkReady, says: "01:00:5e:00:00:01", heal: respec,
	},
	{
		name: "MACOfAnotherMachine", reason: "the older Machine keeps it", spec: `{template: small, networks: [{name: eth0, macAddress: "02:00:00:00:00:02"}]}`,
		given: `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: a-first}, spec: {provider: elsewhere, networks: [{name: eth0, macAddress: "02:00:00:00:00:02"}]}}`,
		ready: "False InvalidSpec", part: networkReady, says: `"a-first"`, heal: respec,
	},
	{
		name: "SecureBootOnBIOS", reason: "they exclude each other", spec: `{template: small, domain: {firmware: {bootloader: {efi: false, secureBoot: true}}}}`,
		ready: "False InvalidSpec", part: vmReady, says: "secureBoot", heal: respec,
	},
	{
		name: "ClaimOfNobody", reason: "it may hold somebody's data", spec: `template: small`, given: foreignClaim(""),
		ready: "False ClaimConflict", part: storageReady, says: `"bad-root"`, heal: goes(kind.PersistentVolumeClaims, "bad-root"),
	},
	{
		name: "ClaimOfAnotherMachine", reason: "the first keeps it", spec: `template: small`,
		given: foreignClaim(`, labels: {vitistack.io/machine: somebody, vitistack.io/managed-by: kubevirt-operator}, annotations: {vitistack.io/machine-uid: 0-0, vitistack.io/machine-name: somebody}`),
		ready: "False ClaimConflict", part: storageReady, says: `"somebody"`, heal: goes(kind.PersistentVolumeClaims, "bad-root"),
	},
	{
		name: "VirtualMachineOfAnotherMachine", reason: "it is never taken over", spec: `template: small`, given: foreignVM,
		ready: "False VirtualMachineConflict", part: vmReady, says: `"somebody"`, heal: goes(kinds.VirtualMachines, "vm-bad"),
	},
	{
		name: "SecretOfNobody", reason: "what is in it is not ours to write over", spec: `{template: small, cloudInit: {secretRef: {name: init}}}`,
		given: `
{apiVersion: v1, kind: Secret, metadata: {name: init}, stringData: {userdata: "#cloud-config"}}
---
{apiVersion: v1, kind: Secret, metadata: {name: bad-cloudinit}, stringData: {userdata: mine}}`,
		ready: "False InvalidSpec", part: vmReady, says: `"bad-cloudinit"`,
		heal: func(w *world) cloudevents.Event {
			w.Remove(kind.Secrets, "bad-cloudinit")
			return w.machineEvent("bad")
		},
	},
}

// TestABadMachineSaysWhyTouchesNothingAndHeals gives each bad Machine a good
// neighbour, lets both have their events, and then takes the cause away.
func TestABadMachineSaysWhyTouchesNothingAndHeals(t *testing.T) {
	suite.Each(t, badInput, func(tc bad) string { return tc.name }, func(t *testing.T, tc bad) {
		w := newWorld(t)
		if tc.given != "" {
			w.Create(tc.given)
		}
		before := w.Versions()
		w.machine("bad", tc.spec)
		w.machine("good", `template: small`)
		f := w.copyOf()
		for _, name := range []string{"bad", "good", "bad"} {
			if got := f.Send(w.machineEvent(name)); got != http.StatusNoContent {
				t.Errorf("the event of %s was answered %d: nothing is won by sending it again", name, got)
			}
		}
		w.isBad(tc, before)
		w.Must(kinds.VirtualMachines, "vm-good")
		if tc.heal == nil {
			return
		}
		f.Insist(tc.heal(w))
		if vm := w.Get(kinds.VirtualMachines, "vm-bad"); vm == nil {
			t.Errorf("%s: the cause is gone, and the Machine still has no virtual machine: Ready is %s", tc.reason, w.why("bad"))
		}
		if got := w.condition("bad", "Ready"); got != "False Creating" {
			t.Errorf("%s: the cause is gone, and Ready is still %s", tc.reason, w.why("bad"))
		}
		if suite.Text(w.Must(kinds.Machines, "bad"), "status", "failureReason") != "" {
			t.Errorf("%s: the cause is gone, and failureReason is still there", tc.reason)
		}
	})
}

// isBad compares what came of the bad Machine with what should.
func (w *world) isBad(tc bad, before map[string]string) {
	w.t.Helper()
	machine := w.Must(kinds.Machines, "bad")
	is, reason, message := suite.Condition(machine, "Ready")
	if got := is + " " + reason; got != tc.ready {
		w.t.Errorf("%s: Ready is %q (%s), want %q", tc.reason, got, message, tc.ready)
	}
	if !strings.Contains(message, tc.says) {
		w.t.Errorf("%s: the message names no %s: %s", tc.reason, tc.says, message)
	}
	if got := suite.Text(machine, "status", "failureReason"); got != reason {
		w.t.Errorf("%s: failureReason is %q, Ready's reason %q", tc.reason, got, reason)
	}
	phase := tc.phase
	if phase == "" {
		phase = "Failed"
	}
	if got := suite.Text(machine, "status", "phase"); got != phase {
		w.t.Errorf("%s: the phase is %q, want %q", tc.reason, got, phase)
	}
	if tc.part != "" {
		partIs, _, partSays := suite.Condition(machine, tc.part)
		if partIs != "False" || !strings.HasPrefix(partSays, reason+": ") {
			w.t.Errorf("%s: %s is %q with message %q, want False and a message that begins with %q", tc.reason, tc.part, partIs, partSays, reason)
		}
	}
	w.untouched(tc, before)
}

// untouched shows that nothing was made for the bad Machine, and nothing of what
// was there was written.
func (w *world) untouched(tc bad, before map[string]string) {
	w.t.Helper()
	now := w.Versions()
	for key, version := range before {
		if now[key] != version {
			w.t.Errorf("%s: %s was touched", tc.reason, key)
		}
		delete(now, key)
	}
	maps.DeleteFunc(now, func(key, _ string) bool {
		return strings.HasSuffix(key, "/bad") && strings.HasPrefix(key, "Machine/") || strings.Contains(key, "good")
	})
	if diff := cmp.Diff(slices.Sorted(slices.Values(tc.made)), slices.Sorted(maps.Keys(now))); diff != "" {
		w.t.Errorf("%s: nothing may be made while something is wrong (-want +made):\n%s", tc.reason, diff)
	}
}

// TestALongNameWorks takes names that leave no room for those of children.
func TestALongNameWorks(t *testing.T) {
	names := map[string]string{
		"64": strings.Repeat("a", 64), "200": strings.Repeat("b.", 99) + "bb", "253": strings.Repeat("c", 253),
	}
	suite.Each(t, slices.Sorted(maps.Keys(names)), func(n string) string { return n + "Characters" }, func(t *testing.T, n string) {
		w := newWorld(t)
		w.Create(surroundings)
		name := names[n]
		w.machine(name, subjectSpec)
		w.machine("good", `template: small`)
		f := w.copyOf()
		f.Insist(w.machineEvent(name))
		f.Insist(w.machineEvent("good"))
		w.Must(kinds.VirtualMachines, "vm-good")
		if got := w.condition(name, "Ready"); got != "False Creating" {
			t.Fatalf("Ready is %s", w.why(name))
		}
		vm := w.vmOf(name)
		if vm == nil {
			t.Fatalf("there is no virtual machine for it, there are %v", w.Names())
		}
		// Events of its children lead back to it, although they only show part of
		// its name.
		w.Remove(kinds.VirtualMachines, vm.GetName())
		f.Insist(w.Event(kinds.VirtualMachines, vm.GetName()))
		if w.vmOf(name) == nil {
			t.Error("the event of the virtual machine, which was deleted by hand, did not reach the Machine")
		}
		f.Asked()
		f.Insist(w.machineEvent(name))
		f.Asked()
		f.Insist(w.machineEvent(name))
		if _, writes := f.Asked(); len(writes) > 0 {
			t.Errorf("the Machine never comes to rest: %v", writes)
		}
		w.Remove(kinds.Machines, name)
		f.Insist(w.machineEvent(name))
		w.release()
		left := slices.DeleteFunc(w.Names(), func(key string) bool { return strings.Contains(key, "good") })
		if diff := cmp.Diff(given, left); diff != "" {
			t.Errorf("(-want +left after its deletion):\n%s", diff)
		}
	})
}

// vmOf finds the virtual machine of a Machine by its marks.
func (w *world) vmOf(machine string) *unstructured.Unstructured {
	w.t.Helper()
	for _, obj := range w.Objects() {
		if obj.GetKind() == kinds.VirtualMachines.Kind && obj.GetAnnotations()["vitistack.io/machine-name"] == machine {
			return obj
		}
	}
	return nil
}

// TestAbsurdSizesEndInAConditionAndNotInARetry takes numbers that no computer has.
func TestAbsurdSizesEndInAConditionAndNotInARetry(t *testing.T) {
	specs := []string{
		`{template: small, resources: {memory: {size: 9999999Ei}}}`,
		`{template: small, resources: {memory: {size: "1e400"}}}`,
		`{template: small, resources: {memory: {size: 0.001m}}}`,
		`{template: small, resources: {cpu: {cores: 256, threads: 8, sockets: 16}}}`,
		`{template: small, disks: [{name: data, size: 9999999Ei}]}`,
		`{template: small, disks: [{name: data, size: 1n}]}`,
		`{template: small, memory: 9000000000000000}`,
		`{template: small, memory: 1}`,
	}
	suite.Each(t, specs, func(spec string) string { return spec }, func(t *testing.T, spec string) {
		w := newWorld(t)
		w.machine("bad", spec)
		w.machine("good", `template: small`)
		f := w.copyOf()
		for _, name := range []string{"bad", "good"} {
			if got := f.Send(w.machineEvent(name)); got != http.StatusNoContent {
				t.Errorf("the event of %s was answered %d; the log:\n%s", name, got, f.Log)
			}
		}
		w.Must(kinds.VirtualMachines, "vm-good")
		t.Logf("%s: Ready is %s", spec, w.why("bad"))
		if is, reason, _ := suite.Condition(w.Must(kinds.Machines, "bad"), "Ready"); is != "False" || reason == "" {
			t.Errorf("Ready is %q %q", is, reason)
		}
		f.Insist(w.machineEvent("bad"))
		f.Asked()
		f.Insist(w.machineEvent("bad"))
		if _, writes := f.Asked(); len(writes) > 0 {
			t.Errorf("the Machine never comes to rest: %v", writes)
		}
	})
}

// TestWhatIsNoneOfOursIsLeftAlone sends events that are not for this function.
func TestWhatIsNoneOfOursIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.machine("foreign", `{provider: aws, template: small}`)
	w.machine("config", `{providerConfig: {name: azure}}`)
	w.machine("shouted", `{provider: KubeVirt, template: small}`)
	before := w.Versions()
	f := w.copyOf()
	for _, ce := range []cloudevents.Event{
		w.machineEvent("foreign"), w.machineEvent("config"), w.machineEvent("gone"), w.Event(kinds.VirtualMachines, "vm-gone"),
		w.Event(kind.PersistentVolumeClaims, "some-claim-of-a-database"), w.Event(kinds.DataVolumes, "x-iso"),
		w.Event(kinds.NetworkConfigurations, "none"), w.Event(kind.Secrets, "none"), w.Event(kind.ConfigMaps, "none"),
		w.Event(kinds.NetworkNamespaces, "none"), suite.Changed("delete", "vitistack.io/v1alpha1", "MachineClass", "", "none"),
	} {
		if got := f.Send(ce); got != http.StatusNoContent {
			t.Errorf("an event about %s %s was answered %d", ce.Extensions()["kind"], ce.Extensions()["name"], got)
		}
	}
	if got := f.Send(suite.Changed("update", "apps/v1", "Deployment", w.NS, "web")); got != http.StatusBadRequest {
		t.Errorf("an event of a kind that the function is not woken by was answered %d: it must reach the dead letters", got)
	}
	if _, writes := f.Asked(); len(writes) > 0 {
		t.Errorf("something was written:\n%s", strings.Join(writes, "\n"))
	}
	if diff := cmp.Diff(before, w.Versions()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	f.Insist(w.machineEvent("shouted"))
	w.Must(kinds.VirtualMachines, "vm-shouted")
}
