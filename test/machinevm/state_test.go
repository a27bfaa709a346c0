package machinevm

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
)

// What differs from run to run, and is no difference:
//
//   - uid, resourceVersion, generation and managedFields are given by the server.
//     UIDs that stand elsewhere, in owner references and in the annotation
//     machine-uid, become the name of what they belong to.
//   - Times say when a test ran.
//   - The namespace's name, and the UID of kube-system as the installation.
//   - MAC addresses are derived from the Machine's UID. Only those that are, by the
//     rule NW-7, are replaced.
//   - status.resourceVersion of a Machine, and the annotations and fields by which
//     KubeVirt tells generations, count writes.
//   - The order of a virtual machine's disks and interfaces, each with its name, tells
//     which came first: a device is added at the end, so that those of a running guest
//     stay where they are. Goldens keep it.
//   - Addresses that the played node gives out, firmware UUID and serial, and names of
//     revisions are derived from UIDs.
var (
	timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	addresses  = regexp.MustCompile(`(10\.244|192\.168)\.\d+\.\d+|fd10:244::[0-9a-f:]+`)
)

// serverFields are those of metadata that the server gives.
var serverFields = []string{"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp", "deletionGracePeriodSeconds"}

// state is everything in the namespace, normalised.
func (w *world) state() map[string]string {
	w.t.Helper()
	objs := w.objects()
	replace := w.replacements(objs)
	all := map[string]string{}
	for key, obj := range objs {
		all[key] = normal(w.t, inOrder(obj), replace)
	}
	return all
}

// inOrder is a virtual machine with its devices sorted by name.
func inOrder(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj.GetKind() != kinds.VirtualMachines.Kind {
		return obj
	}
	sorted := obj.DeepCopy()
	spec, _, _ := unstructured.NestedMap(sorted.Object, "spec", "template", "spec")
	for _, path := range [][]string{{"volumes"}, {"networks"}, {"domain", "devices", "disks"}, {"domain", "devices", "interfaces"}} {
		items, found, _ := unstructured.NestedSlice(spec, path...)
		if !found {
			continue
		}
		slices.SortFunc(items, func(a, b any) int { return strings.Compare(nameOf(a), nameOf(b)) })
		_ = unstructured.SetNestedSlice(spec, items, path...)
	}
	_ = unstructured.SetNestedMap(sorted.Object, spec, "spec", "template", "spec")
	return sorted
}

func nameOf(item any) string {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// normal is one object as text, without what differs from run to run.
func normal(t testing.TB, obj *unstructured.Unstructured, replace *strings.Replacer) string {
	t.Helper()
	bare := obj.DeepCopy()
	for _, field := range serverFields {
		unstructured.RemoveNestedField(bare.Object, "metadata", field)
	}
	for _, path := range [][]string{{"status", "resourceVersion"}, {"metadata", "annotations", "kubevirt.io/vm-generation"}} {
		unstructured.RemoveNestedField(bare.Object, path...)
	}
	raw, err := yaml.Marshal(each(bare.Object, func(s string) string {
		return addresses.ReplaceAllString(timestamps.ReplaceAllString(replace.Replace(s), "TIME"), "ADDRESS")
	}))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// each is a value with every string in it changed.
func each(value any, change func(string) string) any {
	switch v := value.(type) {
	case string:
		return change(v)
	case map[string]any:
		for key, child := range v {
			v[key] = each(child, change)
		}
	case []any:
		for i, child := range v {
			v[i] = each(child, change)
		}
	}
	return value
}

// replacements turn what is derived from UIDs into what it is derived from.
func (w *world) replacements(objs map[string]*unstructured.Unstructured) *strings.Replacer {
	w.t.Helper()
	pairs := []string{w.ns, "NAMESPACE", w.installation(), "INSTALLATION"}
	for _, key := range slices.Sorted(maps.Keys(objs)) {
		obj := objs[key]
		pairs = append(pairs, string(obj.GetUID()), "UID("+key+")")
		if obj.GetKind() != kinds.Machines.Kind {
			continue
		}
		for _, name := range interfaceNames(objs, obj) {
			pairs = append(pairs, derivedMAC(string(obj.GetUID()), name), "MAC("+obj.GetName()+"/"+name+")")
		}
	}
	return strings.NewReplacer(pairs...)
}

// installation is the UID of the cluster's namespace kube-system.
func (w *world) installation() string {
	w.t.Helper()
	obj, err := w.client.Resource(namespaces).Get(w.t.Context(), "kube-system", getOptions)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(obj.GetUID())
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

// bytesOf is a part of an object as the server holds it.
func bytesOf(t testing.TB, obj *unstructured.Unstructured, path ...string) string {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
