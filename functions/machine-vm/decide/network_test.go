package decide

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
)

// nicsOf lists the interfaces of a virtual machine as "name model binding
// network".
func nicsOf(vm *unstructured.Unstructured) string {
	var list []string
	networks := entries(vm.Object, "spec", "template", "spec", "networks")
	for _, face := range entries(vm.Object, "spec", "template", "spec", "domain", "devices", "interfaces") {
		binding := "?"
		for _, b := range []string{"masquerade", "bridge"} {
			if face[b] != nil {
				binding = b
			}
		}
		network := named(networks, text(face, "name"))
		source := "pod"
		if network["pod"] == nil {
			source = text(network, "multus", "networkName")
		}
		list = append(list, strings.Join([]string{text(face, "name"), text(face, "model"), binding, source}, " "))
	}
	return strings.Join(list, ", ")
}

func netconf(name, spec string) string {
	return `{apiVersion: vitistack.io/v1alpha1, kind: NetworkConfiguration, metadata: {name: ` + name + `}, spec: {` + spec + `}}`
}

func definition(name, metadata, config string) string {
	return `{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, metadata: {name: ` + name + metadata + `}, spec: {config: '` + config + `'}}`
}

const flatBlue = `{"cniVersion":"0.3.1","type":"bridge","bridge":"br0","vlan":7}`

func TestNetworks(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		spec     string
		objects  []string
		unserved bool
		nics     string
		config   string
		labels   string
		ready    string
		says     string
	}{
		"NW-5 none": {reason: "the pod network, masqueraded", nics: "default virtio masquerade pod"},
		"NW-1 an entry without network": {
			reason: "the pod network under its own name", spec: `networks: [{name: lan, model: e1000}]`, nics: "lan e1000 masquerade pod",
		},
		"NW-1 a network that is not": {
			reason: "named in the message", spec: `networks: [{name: lan, networkName: blue}]`,
			ready: "False NetworkConfigurationNotFound", says: `"blue"`,
		},
		"NW-1 two on the pod network": {reason: "there can be one", spec: `networks: [{name: a}, {name: b}]`, ready: "False InvalidSpec", says: "pod network"},
		"NW-3 a VLAN": {
			reason: "on the default bridge, NW-2", spec: `networks: [{name: lan, networkName: blue}]`, objects: []string{netconf("blue", "vlan: 7")},
			nics: "lan virtio bridge blue", config: `{"cniVersion":"1.0.0","name":"blue","plugins":[{"type":"bridge","bridge":"br0","vlan":7}]}`,
			labels: "map[vitistack.io/managed-by:kubevirt-operator vitistack.io/network-configuration:blue vitistack.io/vlan-id:7]",
		},
		"NW-2 VLAN 0": {
			reason: "untagged, and the bridge is the default one", spec: `networks: [{name: lan, networkName: blue}]`, objects: []string{netconf("blue", "vlan: 0")},
			nics: "lan virtio bridge blue", config: `{"cniVersion":"1.0.0","name":"blue","plugins":[{"type":"bridge","bridge":"br0"}]}`,
			labels: "map[vitistack.io/managed-by:kubevirt-operator vitistack.io/network-configuration:blue]",
		},
		"NW-3 a bridge": {
			reason: "untagged", spec: `networks: [{name: lan, networkName: blue}]`, objects: []string{netconf("blue", "bridge: br9")},
			nics: "lan virtio bridge blue", config: `{"cniVersion":"1.0.0","name":"blue","plugins":[{"type":"bridge","bridge":"br9"}]}`,
		},
		"NW-4 neither, and no definition": {
			reason: "nothing to make one from", spec: `networks: [{name: lan, networkName: blue}]`, objects: []string{netconf("blue", "")},
			ready: "False NetworkFailed", says: "neither vlan nor bridge",
		},
		"NW-4 neither, and a definition of others": {
			reason: "they say what it is", spec: `networks: [{name: lan, networkName: blue}]`,
			objects: []string{netconf("blue", ""), definition("blue", "", `{"type":"ovs"}`)}, nics: "lan virtio bridge blue", config: `{"type":"ovs"}`,
		},
		"NW-4 an equal one of others": {
			reason: "used, spelled otherwise", spec: `networks: [{name: lan, networkName: blue}]`,
			objects: []string{netconf("blue", "vlan: 7"), definition("blue", "", flatBlue)}, nics: "lan virtio bridge blue", config: flatBlue,
		},
		"NW-4 another one of others": {
			reason: "not changed", spec: `networks: [{name: lan, networkName: blue}]`,
			objects: []string{netconf("blue", "vlan: 8"), definition("blue", "", flatBlue)}, ready: "False NetworkFailed", says: "made by others",
		},
		"NW-4 our own is brought up to date": {
			reason: "the NetworkConfiguration has changed", spec: `networks: [{name: lan, networkName: blue}]`,
			objects: []string{netconf("blue", "vlan: 8"), definition("blue", ", labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/network-configuration: blue}", flatBlue)},
			nics:    "lan virtio bridge blue", config: `{"cniVersion":"1.0.0","name":"blue","plugins":[{"type":"bridge","bridge":"br0","vlan":8}]}`,
		},
		"NW-4 no definitions on the cluster": {
			reason: "said so", spec: `networks: [{name: lan, networkName: blue}]`, objects: []string{netconf("blue", "vlan: 7")}, unserved: true,
			ready: "False NetworkFailed", says: "install Multus",
		},
		"NW-6 no such NetworkNamespace": {
			reason: "no guess is made", spec: `network: {networkNamespaceName: prod}`, ready: "False NetworkFailed", says: `"prod"`,
		},
		"NW-6 a VLAN": {
			reason: "as upstream writes it", spec: `network: {networkNamespaceName: prod}`,
			objects: []string{`{apiVersion: vitistack.io/v1alpha1, kind: NetworkNamespace, metadata: {name: prod}, spec: {ipAllocation: {type: dhcp}}, status: {vlanId: 42}}`},
			nics:    "vlan42 virtio bridge vlan42", config: `{"cniVersion":"1.0.0","name":"br0","plugins":[{"type":"bridge","bridge":"br0","vlan":42}]}`,
			labels: "map[vitistack.io/managed-by:kubevirt-operator vitistack.io/vlan-id:42]",
		},
		"NW-6 static without VLAN": {
			reason: "untagged", spec: `network: {networkNamespaceName: prod}`,
			objects: []string{`{apiVersion: vitistack.io/v1alpha1, kind: NetworkNamespace, metadata: {name: prod}, spec: {ipAllocation: {type: static}}}`},
			nics:    "vlan0 virtio bridge vlan0", config: `{"cniVersion":"1.0.0","name":"br0","plugins":[{"type":"bridge","bridge":"br0"}]}`,
		},
		"NW-6 otherwise": {
			reason: "the pod network", spec: `network: {networkNamespaceName: prod}`,
			objects: []string{`{apiVersion: vitistack.io/v1alpha1, kind: NetworkNamespace, metadata: {name: prod}, spec: {ipAllocation: {type: dhcp}}}`},
			nics:    "default virtio masquerade pod",
		},
		"NW-6 an existing definition is used unchanged": {
			reason: "whatever it says", spec: `network: {networkNamespaceName: prod}`,
			objects: []string{
				`{apiVersion: vitistack.io/v1alpha1, kind: NetworkNamespace, metadata: {name: prod}, status: {vlanId: 42}}`, definition("vlan42", "", `{"type":"ovs"}`),
			},
			nics: "vlan42 virtio bridge vlan42", config: `{"type":"ovs"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.objects...)
			w.unserved[kinds.NetworkAttachmentDefinitions.String()] = c.unserved
			w.machine(c.spec)
			w.settle("web")
			if c.ready != "" {
				sees(t, "Ready ("+c.reason+")", w.ready("web"), c.ready)
				sees(t, "NetworkReady", w.cond("web", v1alpha1.ConditionNetworkReady), "False NetworkFailed")
				holdsText(t, "the message", w.message("web", v1alpha1.ConditionNetworkReady), c.says)
				if len(w.all(kinds.VirtualMachines, "")) > 0 {
					t.Errorf("RC-2: a virtual machine was made (%s)", c.reason)
				}
				return
			}
			sees(t, "the interfaces ("+c.reason+")", nicsOf(w.must(kinds.VirtualMachines, "vm-web")), c.nics)
			definitions := w.all(kinds.NetworkAttachmentDefinitions, "")
			if c.config == "" {
				if len(definitions) > 0 {
					t.Errorf("there is a definition (%s): %v", c.reason, definitions)
				}
				return
			}
			sees(t, "the definition ("+c.reason+")", text(definitions[0].Object, "spec", "config"), c.config)
			if c.labels != "" {
				sees(t, "its labels", fmt.Sprint(definitions[0].GetLabels()), c.labels)
			}
		})
	}
}

// macsOf lists the MAC addresses of a virtual machine's interfaces.
func macsOf(vm *unstructured.Unstructured) string {
	var list []string
	for _, face := range entries(vm.Object, "spec", "template", "spec", "domain", "devices", "interfaces") {
		list = append(list, text(face, "macAddress"))
	}
	return strings.Join(list, " ")
}

func TestMACs(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		spec    string
		objects []string
		want    string
		ready   string
	}{
		"NW-7 stated": {reason: "lower case, with colons", spec: `networks: [{name: a, macAddress: "02-AB-00-00-00-01"}]`, want: "02:ab:00:00:00:01"},
		"NW-7 recorded": {
			reason: "in the NetworkConfiguration of the Machine's name, whoever made it", spec: `networks: [{name: a}]`,
			objects: []string{netconf("web", `networkInterfaces: [{name: a, macAddress: "02:00:00:00:00:09"}]`)}, want: "02:00:00:00:00:09",
		},
		"NW-8 twice in one Machine": {
			reason: "spelled differently", spec: `networks: [{name: a, macAddress: "02:00:00:00:00:0a"}, {name: b, networkName: blue, macAddress: "02-00-00-00-00-0A"}]`, ready: "False InvalidSpec",
		},
		"NW-8 multicast": {reason: "a group of receivers", spec: `networks: [{name: a, macAddress: "01:00:5e:00:00:01"}]`, ready: "False InvalidSpec"},
		"NW-8 all zero":  {reason: "nobody's", spec: `networks: [{name: a, macAddress: "00:00:00:00:00:00"}]`, ready: "False InvalidSpec"},
		"NW-8 an older Machine's": {
			reason: "in its spec", spec: `networks: [{name: a, macAddress: "02:00:00:00:00:0a"}]`, ready: "False InvalidSpec",
			objects: []string{`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: old, creationTimestamp: "2020-01-01T00:00:00Z"}, spec: {networks: [{name: x, macAddress: "02:00:00:00:00:0A"}]}}`},
		},
		"NW-8 an older Machine's record": {
			reason: "derived, not stated", spec: `networks: [{name: a, macAddress: "02:00:00:00:00:0a"}]`, ready: "False InvalidSpec",
			objects: []string{
				`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: old, creationTimestamp: "2020-01-01T00:00:00Z"}}`,
				netconf("old", `networkInterfaces: [{name: default, macAddress: "02:00:00:00:00:0a"}]`),
			},
		},
		"NW-8 a younger Machine's": {
			reason: "the older one keeps it", spec: `networks: [{name: a, macAddress: "02:00:00:00:00:0a"}]`, want: "02:00:00:00:00:0a",
			objects: []string{`{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: young, creationTimestamp: "2050-01-01T00:00:00Z"}, spec: {networks: [{name: x, macAddress: "02:00:00:00:00:0a"}]}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(c.objects, netconf("blue", "vlan: 7"))...)
			w.machine(c.spec)
			w.settle("web")
			if c.ready != "" {
				sees(t, "Ready ("+c.reason+")", w.ready("web"), c.ready)
				return
			}
			sees(t, "the MAC addresses ("+c.reason+")", macsOf(w.must(kinds.VirtualMachines, "vm-web")), c.want)
		})
	}
}

func TestAVMThatIsMadeAgainHasTheSameMACsAndClaims(t *testing.T) {
	w := newWorld(t, netconf("blue", "vlan: 7"))
	w.machine(`template: small, networks: [{name: a}, {name: b, networkName: blue}]`)
	w.settle("web")
	before := w.must(kinds.VirtualMachines, "vm-web")
	w.remove(kinds.VirtualMachines, "vm-web")
	w.remove(kinds.NetworkConfigurations, "web")
	w.remove(kinds.NetworkAttachmentDefinitions, "blue")
	w.settle("web")
	after := w.must(kinds.VirtualMachines, "vm-web")
	sees(t, "UP-8: the MAC addresses", macsOf(after), macsOf(before))
	sees(t, "the claim", volumeClaim(volumes(after)[0]), volumeClaim(volumes(before)[0]))
	w.must(kinds.NetworkConfigurations, "web")
	w.must(kinds.NetworkAttachmentDefinitions, "blue")
}

func TestDerivedMACsDoNotClash(t *testing.T) {
	v := &view{id: identity{uid: "u"}, in: Input{Settings: DefaultSettings()}}
	one := v.derivedMAC("a", map[string]string{})
	two := v.derivedMAC("a", map[string]string{one: "b"})
	if one == two || !usableMAC(one) || !usableMAC(two) {
		t.Errorf("NW-7: on a clash the next four bytes are taken: %s, %s", one, two)
	}
}

func TestRecord(t *testing.T) {
	const mine = `metadata: {name: web, labels: {vitistack.io/managed-by: kubevirt-operator, vitistack.io/source-machine: web}}`
	for name, c := range map[string]struct{ reason, record, want string }{
		"NW-9 one that fits is left alone": {
			reason: "its name too", record: mine + `, spec: {name: kept, networkInterfaces: [{name: a, macAddress: "02:00:00:00:00:01", ipv4Addresses: [10.0.0.9]}]}`,
			want: "kept a=02:00:00:00:00:01 [10.0.0.9]",
		},
		"NW-9 a MAC that differs": {
			reason: "only it is changed", record: mine + `, spec: {name: kept, networkInterfaces: [{name: a, macAddress: "02:00:00:00:00:02", ipv4Addresses: [10.0.0.9]}]}`,
			want: "kept a=02:00:00:00:00:01 [10.0.0.9]",
		},
		"NW-9 an interface that is gone": {
			reason: "it is taken out", record: mine + `, spec: {name: kept, networkInterfaces: [{name: z, macAddress: "02:00:00:00:00:03"}, {name: a, macAddress: "02:00:00:00:00:01"}]}`,
			want: "kept a=02:00:00:00:00:01 []",
		},
		"NW-9 one of others": {
			reason: "left alone", record: `metadata: {name: web}, spec: {name: theirs, networkInterfaces: [{name: z, macAddress: "02:00:00:00:00:03"}]}`,
			want: "theirs z=02:00:00:00:00:03 []",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, `{apiVersion: vitistack.io/v1alpha1, kind: NetworkConfiguration, `+c.record+`}`)
			w.machine(`networks: [{name: a, macAddress: "02:00:00:00:00:01"}]`)
			w.settle("web")
			record := w.must(kinds.NetworkConfigurations, "web")
			got := text(record.Object, "spec", "name")
			for _, n := range entries(record.Object, "spec", "networkInterfaces") {
				got += fmt.Sprintf(" %s=%s %v", text(n, "name"), text(n, "macAddress"), texts(n, "ipv4Addresses"))
			}
			sees(t, "the record ("+c.reason+")", got, c.want)
		})
	}
}

func TestRecordDisplayName(t *testing.T) {
	for machine, want := range map[string]string{
		"web": "web", "w": "ww", "a.b": "a-b", "ab": "ab",
	} {
		sees(t, "NW-10: the name for "+machine, recordDisplayName(machine), want)
	}
	if got := recordDisplayName(strings.Repeat("long.", 50)); len(got) > 32 {
		t.Errorf("NW-10: the name has %d characters", len(got))
	}
}

func TestNetworksOfALiveVM(t *testing.T) {
	w := newWorld(t, netconf("blue", "vlan: 7"), netconf("red", "vlan: 9"))
	w.machine(`template: small`)
	w.settle("web")
	pod := macsOf(w.must(kinds.VirtualMachines, "vm-web"))

	w.respec(`template: small, networks: [{name: default}, {name: lan, networkName: blue}]`)
	w.settle("web")
	vm := w.must(kinds.VirtualMachines, "vm-web")
	sees(t, "UP-1: a network is added", nicsOf(vm), "default virtio masquerade pod, lan virtio bridge blue")
	sees(t, "NW-7: the live MAC address stays", strings.Fields(macsOf(vm))[0], pod)

	w.respec(`template: small, networks: [{name: lan, networkName: red, model: e1000}]`)
	w.settle("web")
	sees(t, "UP-1: it moves, and one is dropped", nicsOf(w.must(kinds.VirtualMachines, "vm-web")), "lan e1000 bridge red")

	w.respec(`template: small, networks: [{name: lan}]`)
	w.settle("web")
	sees(t, "the binding follows the network", nicsOf(w.must(kinds.VirtualMachines, "vm-web")), "lan e1000 masquerade pod")

	w.respec(`template: small`)
	w.settle("web")
	sees(t, "UP-3: without a statement it is the pod network again", nicsOf(w.must(kinds.VirtualMachines, "vm-web")), "default virtio masquerade pod")
}
