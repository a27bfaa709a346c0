package decide

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
)

// modelVirtio is the interface model unless another is stated.
const modelVirtio = "virtio"

// allocationStatic is the allocation type of a NetworkNamespace whose
// addresses are given out one by one.
const allocationStatic = "static"

// nic is one network interface that a Machine asks for.
type nic struct {
	name        string
	model       string
	modelStated bool
	mac         string
	macStated   bool
	// macMoved: the address that the interface had is another's now.
	macMoved bool
	// attachment is the NetworkAttachmentDefinition; empty for the pod network.
	attachment string
}

// Attachments are the NetworkAttachmentDefinitions that a Machine's networks
// may use, as far as the spec alone tells.
func Attachments(machine *unstructured.Unstructured) []string {
	var names []string
	for _, network := range entries(machine.Object, "spec", "networks") {
		if name := text(network, "networkName"); name != "" {
			names = append(names, v1alpha1.AttachmentName(name))
		}
	}
	return names
}

// NamespaceAttachment is the NetworkAttachmentDefinition of a NetworkNamespace;
// empty if that uses the pod network.
func NamespaceAttachment(ns *unstructured.Unstructured) string {
	if ns == nil {
		return ""
	}
	if id, _ := number(ns.Object, "status", "vlanId"); id > 0 {
		return v1alpha1.VLANAttachmentName(int(id))
	}
	if Static(ns) {
		return v1alpha1.VLANAttachmentName(0)
	}
	return ""
}

// resolveNetworks makes the list of interfaces and the definitions that they
// need.
func (v *view) resolveNetworks() {
	spec := v.machine.Spec
	switch {
	case len(spec.Networks) > 0:
		v.namedNetworks(spec.Networks)
	case spec.Network.NetworkNamespaceName != "":
		v.namespaceNetwork(spec.Network.NetworkNamespaceName)
	default:
		v.nics = []nic{{name: v1alpha1.PodNetworkName, model: modelVirtio}}
	}
	v.resolveMACs()
}

func (v *view) namedNetworks(networks []v1alpha1.MachineNetworkAttachment) {
	v.networksStated = true
	onPod := ""
	for _, network := range networks {
		n := nic{
			name: network.Name, model: modelVirtio, modelStated: network.Model != "",
			mac: normalMAC(network.MACAddress), macStated: network.MACAddress != "",
		}
		if n.modelStated {
			n.model = network.Model
		}
		if network.NetworkName == "" {
			if onPod != "" {
				v.problem(invalid(PartNetwork, fmt.Sprintf("networks %q and %q both use the pod network: give one a networkName", onPod, n.name)))
			}
			onPod = n.name
		} else {
			n.attachment = v1alpha1.AttachmentName(network.NetworkName)
			v.attachTo(network.NetworkName)
		}
		v.nics = append(v.nics, n)
	}
}

// attachTo looks up a NetworkConfiguration and what its definition must be.
func (v *view) attachTo(name string) {
	config := find(v.in.Networks, name)
	if config == nil {
		v.problem(Problem{
			Part: PartNetwork, Reason: v1alpha1.ReasonNetworkConfigurationNotFound, Network: name,
			Message: fmt.Sprintf("NetworkConfiguration %q does not exist in namespace %q: create it, or change spec.networks", name, v.namespace),
		})
		return
	}
	wanted := bridgeNetwork{bridge: text(config.Object, "spec", "bridge")}
	vlan, hasVLAN := number(config.Object, "spec", "vlan")
	wanted.vlan = int(vlan)
	if hasVLAN && wanted.bridge == "" {
		wanted.bridge = v.in.Settings.DefaultBridge
	}
	v.configAttachment(name, wanted)
}

// namespaceNetwork is the one interface of a Machine in a NetworkNamespace.
func (v *view) namespaceNetwork(name string) {
	v.networksStated = true
	ns := v.in.NetworkNamespace
	if ns == nil || ns.GetName() != name {
		v.problem(networkFailed(name, fmt.Sprintf("NetworkNamespace %q does not exist in namespace %q: create it, or change spec.network", name, v.namespace)))
		return
	}
	attachment := NamespaceAttachment(ns)
	if attachment == "" {
		v.nics = []nic{{name: v1alpha1.PodNetworkName, model: modelVirtio}}
		return
	}
	v.nics = []nic{{name: attachment, model: modelVirtio, attachment: attachment}}
	id, _ := number(ns.Object, "status", "vlanId")
	v.namespaceAttachment(attachment, max(int(id), 0))
}

// static tells whether the Machine's addresses are given out one by one.
func (v *view) static() bool {
	ns := v.in.NetworkNamespace
	return len(v.machine.Spec.Networks) == 0 && Static(ns) && ns.GetName() == v.machine.Spec.Network.NetworkNamespaceName
}

// Static tells whether a NetworkNamespace gives its addresses out one by one.
func Static(ns *unstructured.Unstructured) bool {
	return ns != nil && text(ns.Object, "spec", "ipAllocation", "type") == allocationStatic
}

func networkFailed(network, message string) Problem {
	return Problem{Part: PartNetwork, Reason: v1alpha1.ReasonNetworkFailed, Network: network, Message: message}
}
