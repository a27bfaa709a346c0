package decide

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/plan"
)

// bridgeNetwork is what a NetworkAttachmentDefinition comes down to.
type bridgeNetwork struct {
	bridge string
	vlan   int
}

// pluginBridge is the CNI plugin behind every definition that is made.
const pluginBridge = "bridge"

// namespaceBridge is the bridge, and the CNI name, of every NetworkNamespace.
const namespaceBridge = "br0"

// configAttachment makes sure of the definition of a NetworkConfiguration.
func (v *view) configAttachment(name string, wanted bridgeNetwork) {
	attachment := v1alpha1.AttachmentName(name)
	live := find(v.in.Attachments, attachment)
	switch {
	case live == nil && wanted.bridge == "":
		v.problem(networkFailed(name, fmt.Sprintf("NetworkConfiguration %q states neither vlan nor bridge, and no NetworkAttachmentDefinition %q exists: set one of them", name, attachment)))
	case live == nil && !v.in.AttachmentsServed:
		v.noDefinitions(attachment)
	case live == nil:
		v.attach(attachment, attachment, wanted, nil, map[string]string{
			v1alpha1.LabelNetworkConfiguration: v1alpha1.LabelValue(name),
		}, fmt.Sprintf("network %q has no definition", name))
	case live.GetDeletionTimestamp() != nil:
		v.problem(terminating(PartNetwork, "NetworkAttachmentDefinition", attachment))
	case wanted.bridge == "":
		// Somebody else says what the network is.
	default:
		v.compareAttachment(name, wanted, live)
	}
}

func (v *view) compareAttachment(name string, wanted bridgeNetwork, live *unstructured.Unstructured) {
	have, readable := bridgeOf(live)
	if readable && have == wanted {
		return
	}
	if v.madeAttachment(live) && live.GetLabels()[v1alpha1.LabelNetworkConfiguration] == v1alpha1.LabelValue(name) {
		v.attach(live.GetName(), live.GetName(), wanted, live, map[string]string{
			v1alpha1.LabelNetworkConfiguration: v1alpha1.LabelValue(name),
		}, fmt.Sprintf("NetworkConfiguration %q has changed", name))
		return
	}
	v.problem(networkFailed(name, fmt.Sprintf("NetworkAttachmentDefinition %q was made by others and is not bridge %q with vlan %d: change it, or NetworkConfiguration %q",
		live.GetName(), wanted.bridge, wanted.vlan, name)))
}

// namespaceAttachment makes sure of the definition of a NetworkNamespace. One
// that exists is used as it is.
func (v *view) namespaceAttachment(attachment string, vlan int) {
	live := find(v.in.Attachments, attachment)
	switch {
	case live == nil && !v.in.AttachmentsServed:
		v.noDefinitions(attachment)
	case live == nil:
		v.attach(attachment, namespaceBridge, bridgeNetwork{bridge: namespaceBridge, vlan: vlan}, nil,
			map[string]string{v1alpha1.LabelVLANID: strconv.Itoa(vlan)}, fmt.Sprintf("vlan %d has no definition", vlan))
	case live.GetDeletionTimestamp() != nil:
		v.problem(terminating(PartNetwork, "NetworkAttachmentDefinition", attachment))
	}
}

func (v *view) noDefinitions(attachment string) {
	v.problem(networkFailed(attachment, fmt.Sprintf("the cluster does not know NetworkAttachmentDefinitions, and network %q needs one: install Multus", attachment)))
}

// attach plans a definition. cniName is the network's name for CNI.
func (v *view) attach(name, cniName string, network bridgeNetwork, live *unstructured.Unstructured, labels map[string]string, reason string) {
	if slices.ContainsFunc(v.attachments, func(e plan.Entry) bool { return e.Object.GetName() == name }) {
		return
	}
	labels = with(labels, map[string]string{v1alpha1.LabelManagedBy: v.in.Settings.ManagedBy})
	if network.vlan > 0 {
		labels[v1alpha1.LabelVLANID] = strconv.Itoa(network.vlan)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"config": cniConfig(v.in.Settings.CNIVersion, cniName, network)},
	}}
	obj.SetGroupVersionKind(kinds.NetworkAttachmentDefinitions.GVK())
	obj.SetNamespace(v.namespace)
	obj.SetName(name)
	obj.SetLabels(labels)
	v.attachments = append(v.attachments, plan.Entry{
		Verb: plan.Apply, Cluster: v.in.Target.Cluster, Resource: kinds.NetworkAttachmentDefinitions,
		Object: obj, Base: live, Reason: reason,
	})
}

type cniPlugin struct {
	Type   string `json:"type"`
	Bridge string `json:"bridge"`
	VLAN   int    `json:"vlan,omitempty"`
}

type cniList struct {
	CNIVersion string      `json:"cniVersion"`
	Name       string      `json:"name"`
	Plugins    []cniPlugin `json:"plugins"`
}

func cniConfig(version, name string, network bridgeNetwork) string {
	// A struct of strings and numbers always encodes.
	raw, _ := json.Marshal(cniList{
		CNIVersion: version, Name: name,
		Plugins: []cniPlugin{{Type: pluginBridge, Bridge: network.bridge, VLAN: network.vlan}},
	})
	return string(raw)
}

// bridgeOf reads a definition, written with a list of plugins or as one. It is
// not readable unless exactly one plugin is there, and is a bridge.
func bridgeOf(obj *unstructured.Unstructured) (bridgeNetwork, bool) {
	var config struct {
		cniPlugin
		Plugins []cniPlugin `json:"plugins"`
	}
	if json.Unmarshal([]byte(text(obj.Object, "spec", "config")), &config) != nil {
		return bridgeNetwork{}, false
	}
	plugin := config.cniPlugin
	if len(config.Plugins) == 1 {
		plugin = config.Plugins[0]
	}
	return bridgeNetwork{bridge: plugin.Bridge, vlan: plugin.VLAN}, plugin.Type == pluginBridge && len(config.Plugins) <= 1
}

// madeAttachment tells whether the function, or upstream, made a definition.
func (v *view) madeAttachment(obj *unstructured.Unstructured) bool {
	labels := obj.GetLabels()
	_, fromConfig := labels[v1alpha1.LabelNetworkConfiguration]
	_, fromVLAN := labels[v1alpha1.LabelVLANID]
	return v.id.managed(labels) && (fromConfig || fromVLAN)
}

// attachmentsOf are the definitions that a virtual machine's networks use, as
// names in its namespace.
func attachmentsOf(vm *unstructured.Unstructured) []string {
	names := map[string]bool{}
	for _, network := range entries(vm.Object, "spec", "template", "spec", "networks") {
		if name := text(network, "multus", "networkName"); name != "" {
			names[localName(name, vm.GetNamespace())] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// localName strips the namespace from a reference to a definition if it is
// the given one.
func localName(reference, namespace string) string {
	prefix := namespace + "/"
	if len(reference) > len(prefix) && reference[:len(prefix)] == prefix {
		return reference[len(prefix):]
	}
	return reference
}
