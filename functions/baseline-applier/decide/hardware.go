package decide

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Detectors of hardware.
const (
	PCIDevices  = "pciDevicesPresent"
	NUMANodes   = "numaNodesPresent"
	VFIOCapable = "vfioCapable"
	USBDevices  = "usbDevicesPresent"
	GPU         = "gpuPresent"
)

// Detectors are all there are.
func Detectors() []string { return []string{GPU, NUMANodes, PCIDevices, USBDevices, VFIOCapable} }

// HardwareFields are the fields of a Node that Detect looks at, as JSON pointers. The
// others change all the time: the kubelet and KubeVirt leave their heartbeats there.
func HardwareFields() []string {
	return []string{"/metadata/annotations/" + strings.ReplaceAll(topology, "/", "~1"), "/metadata/labels", "/status/capacity"}
}

const topology = "kubevirt.io/topology-manager-policy"

const features = "feature.node.kubernetes.io/"

var (
	pciLabel = regexp.MustCompile(`^feature\.node\.kubernetes\.io/pci-(.+\.)?present$`)
	usbLabel = regexp.MustCompile(`^feature\.node\.kubernetes\.io/usb-(.+\.)?present$`)
	gpus     = []string{"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"}
	ordinary = []string{"cpu", "memory", "pods", "ephemeral-storage"}
	prefixes = []string{"hugepages-", "attachable-volumes-", "devices.kubevirt.io/"}
)

// Detect tells which hardware one node has.
func Detect(node *unstructured.Unstructured) map[string]bool {
	found := map[string]bool{}
	for label, value := range node.GetLabels() {
		switch {
		case pciLabel.MatchString(label):
			found[PCIDevices] = true
		case usbLabel.MatchString(label):
			found[USBDevices] = true
		case label == features+"memory-numa" && value == "true":
			found[NUMANodes] = true
		case label == features+"iommu-enabled" && value == "true":
			found[VFIOCapable] = true
		}
	}
	if node.GetAnnotations()[topology] != "" {
		found[NUMANodes] = true
	}
	capacity, _, _ := unstructured.NestedFieldNoCopy(node.Object, "status", "capacity")
	resources, _ := capacity.(map[string]any)
	for name := range resources {
		if slices.Contains(gpus, name) {
			found[GPU] = true
		}
		if !slices.Contains(ordinary, name) && !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			found[PCIDevices] = true
		}
	}
	return found
}

// Providers names for each detector one node that has the hardware: the first by
// name. So a change of another node, which has nothing new, needs no look at all.
func Providers(nodes []unstructured.Unstructured) map[string]string {
	providers := map[string]string{}
	for i := range nodes {
		name := nodes[i].GetName()
		for detector := range Detect(&nodes[i]) {
			if have, ok := providers[detector]; !ok || name < have {
				providers[detector] = name
			}
		}
	}
	return providers
}

// Matters reports whether a node, as it is now or nil, can change what is known of
// the hardware.
func Matters(providers map[string]string, name string, node *unstructured.Unstructured) bool {
	has := map[string]bool{}
	if node != nil {
		has = Detect(node)
	}
	for _, detector := range Detectors() {
		provider, known := providers[detector]
		if has[detector] && !known || !has[detector] && known && provider == name {
			return true
		}
	}
	return false
}
