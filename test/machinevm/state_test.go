package machinevm

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/test/suite"
)

// What differs from run to run besides what the suite takes out, and is no
// difference:
//
//   - MAC addresses are derived from the Machine's UID. Only those that are, by the
//     rule NW-7, are replaced.
//   - status.resourceVersion of a Machine, and the annotations and fields by which
//     KubeVirt tells generations, count writes.
//   - The order of a virtual machine's disks and interfaces, each with its name, tells
//     which came first: a device is added at the end, so that those of a running guest
//     stay where they are. Goldens keep it.
//   - Addresses that the played node gives out, firmware UUID and serial, and names of
//     revisions are derived from UIDs.
var addresses = regexp.MustCompile(`(10\.244|192\.168)\.\d+\.\d+|fd10:244::[0-9a-f:]+`)

// plain takes counters and the played node's addresses out of an object.
func plain(obj *unstructured.Unstructured) {
	for _, path := range [][]string{{"status", "resourceVersion"}, {"metadata", "annotations", "kubevirt.io/vm-generation"}} {
		unstructured.RemoveNestedField(obj.Object, path...)
	}
	suite.EachString(obj.Object, func(s string) string { return addresses.ReplaceAllString(s, "ADDRESS") })
}

// derived turns MAC addresses into what they are derived from.
func derived(_ *suite.World, objs map[string]*unstructured.Unstructured) []string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(objs)) {
		obj := objs[key]
		if obj.GetKind() != kinds.Machines.Kind {
			continue
		}
		for _, name := range interfaceNames(objs, obj) {
			pairs = append(pairs, derivedMAC(string(obj.GetUID()), name), "MAC("+obj.GetName()+"/"+name+")")
		}
	}
	return pairs
}

// interfaceNames are those that a Machine's virtual machine may have.
func interfaceNames(objs map[string]*unstructured.Unstructured, machine *unstructured.Unstructured) []string {
	names := []string{"default", "vlan0"}
	networks, _, _ := unstructured.NestedSlice(machine.Object, "spec", "networks")
	for _, item := range networks {
		if network, ok := item.(map[string]any); ok {
			names = append(names, fmt.Sprint(network["name"]))
		}
	}
	for _, obj := range objs {
		interfaces, _, _ := unstructured.NestedSlice(obj.Object, "spec", "networkInterfaces")
		for _, item := range interfaces {
			if face, ok := item.(map[string]any); ok {
				names = append(names, fmt.Sprint(face["name"]))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// derivedMAC is the rule NW-7 of the function's description.
func derivedMAC(uid, name string) string {
	sum := sha256.Sum256([]byte(uid + "/" + name))
	return fmt.Sprintf("02:12:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3])
}
