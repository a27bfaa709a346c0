package decide

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
)

// Labels of the virtual machines' pods, which Cluster API's provider for KubeVirt
// writes.
const (
	labelRole  = "cluster.x-k8s.io/role"
	roleWorker = "worker"
)

// mirror brings the Services on the management cluster.
func (v *view) mirror() {
	version := dockyards.Services.Versions[0]
	for _, w := range v.ways {
		v.resolvePorts(w)
		if len(w.ports) == 0 {
			continue
		}
		live := find(v.in.Services, v.namespace, w.name)
		ours := v.bring(dockyards.Services, live, version, w.name, "the Service of the workload cluster is reached through the Gateway",
			func(live *unstructured.Unstructured) bool { return v.asUpstream(live, w) },
			func(obj *unstructured.Unstructured) { v.setMirror(obj, w) })
		if !ours {
			w.ports = nil // no route leads to somebody else's Service
		}
	}
}

func (v *view) selector() map[string]any {
	return map[string]any{dockyards.LabelCAPIClusterName: v.in.CAPICluster.GetName(), labelRole: roleWorker}
}

// setMirror writes what a mirror is into a Service.
func (v *view) setMirror(obj *unstructured.Unstructured, w *way) {
	spec := specOf(obj)
	if !same(spec["selector"], v.selector()) {
		spec["selector"] = v.selector()
	}
	if have, _ := spec["type"].(string); have != "" && have != string(corev1.ServiceTypeClusterIP) {
		spec["type"] = string(corev1.ServiceTypeClusterIP)
	}
	if have, _ := spec["ports"].([]any); !samePorts(have, w.ports) {
		spec["ports"] = ports(have, w.ports)
	}
}

// ports are those of a mirror. What a port that stays has besides stays, but for the
// node port that it had while the Service was of another type.
func ports(have []any, want []port) []any {
	list := make([]any, 0, len(want))
	for _, p := range want {
		entry := map[string]any{}
		for _, item := range have {
			if read, number, _, ok := readLive(item); ok && read == p.protocol && number == p.number {
				fields, _ := item.(map[string]any)
				for field, value := range fields {
					entry[field] = value
				}
			}
		}
		delete(entry, "nodePort")
		delete(entry, "name")
		if p.name != "" {
			entry["name"] = p.name
		}
		entry["port"], entry["protocol"], entry["targetPort"] = p.number, p.protocol, p.nodePort
		list = append(list, entry)
	}
	return list
}

// samePorts tells whether ports say the same in any order.
func samePorts(have []any, want []port) bool {
	if len(have) != len(want) {
		return false
	}
	return !slices.ContainsFunc(want, func(p port) bool {
		return !slices.ContainsFunc(have, func(item any) bool {
			fields, _ := item.(map[string]any)
			name, _ := fields["name"].(string)
			protocol, number, target, ok := readLive(item)
			return ok && name == p.name && protocol == p.protocol && number == p.number && target == p.nodePort
		})
	})
}

// readLive reads a port of a mirror as the API server has completed it.
func readLive(item any) (protocol string, number, target int64, ok bool) {
	fields, ok := item.(map[string]any)
	protocol, _ = fields["protocol"].(string)
	if protocol == "" {
		protocol = string(corev1.ProtocolTCP)
	}
	number, _ = fields["port"].(int64)
	target, _ = fields["targetPort"].(int64)
	return protocol, number, target, ok
}

// asUpstream tells whether a Service without an owner is what dockyards-kubevirt
// would have made for the same Service: all ports of it, without their protocol.
func (v *view) asUpstream(live *unstructured.Unstructured, w *way) bool {
	spec, _, _ := unstructured.NestedMap(live.Object, "spec")
	have, _ := spec["ports"].([]any)
	all, _, _ := unstructured.NestedSlice(w.service.Object, "spec", "ports")
	var theirs []port
	for _, item := range all {
		p, _ := readPort(item)
		p.protocol = string(corev1.ProtocolTCP)
		theirs = append(theirs, p)
	}
	return spec["type"] == string(corev1.ServiceTypeClusterIP) && same(spec["selector"], v.selector()) &&
		(samePorts(have, theirs) || samePorts(have, w.ports))
}

// specOf is an object's spec, made if it is not there.
func specOf(obj *unstructured.Unstructured) map[string]any {
	have, _ := obj.Object["spec"].(map[string]any)
	if have == nil {
		have = map[string]any{}
		obj.Object["spec"] = have
	}
	return have
}
