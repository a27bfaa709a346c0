package decide

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/shared/clip"
)

// port is one port of a mirror.
type port struct {
	name     string
	number   int64
	nodePort int64
	protocol string
}

// String is the port as people write it.
func (p port) String() string { return fmt.Sprintf("%d/%s", p.number, p.protocol) }

// has tells whether a mirror has a port.
func (w *way) has(number int64, protocol corev1.Protocol) bool {
	for _, p := range w.ports {
		if p.number == number && p.protocol == string(protocol) {
			return true
		}
	}
	return false
}

// resolvePorts finds the ports that a mirror can have: each leads to a node port,
// and what the API server would refuse is left out alone.
func (v *view) resolvePorts(w *way) {
	list, _, _ := unstructured.NestedSlice(w.service.Object, "spec", "ports")
	if limit := v.in.Limits.Ports; len(list) > limit {
		v.note(w, "has more than %d ports, the limit", limit)
		list = list[:limit]
	}
	numbers, names := map[string]bool{}, map[string]bool{}
	for _, item := range list {
		p, problem := readPort(item)
		switch {
		case problem != "":
		case numbers[p.String()]:
			problem = "is there twice"
		case names[p.name]:
			problem = "has the name of another port"
		}
		if problem != "" {
			v.note(w, "port %s %s", p, problem)
			continue
		}
		numbers[p.String()], names[p.name] = true, true
		w.ports = append(w.ports, p)
	}
	// Only a single port may be without a name, which a real API server sees to.
	if len(w.ports) > 1 && names[""] {
		for i, p := range w.ports {
			if p.name == "" {
				v.note(w, "port %s has no name", p)
				w.ports = append(w.ports[:i:i], w.ports[i+1:]...)
				break
			}
		}
	}
	if len(w.ports) == 0 {
		v.note(w, "has no port that can be reached")
	}
}

// readPort reads a port of a Service of a workload cluster, which need not be valid.
func readPort(item any) (p port, problem string) {
	entry, _ := item.(map[string]any)
	p.name, _ = entry["name"].(string)
	p.protocol, _ = entry["protocol"].(string)
	p.number, _ = entry["port"].(int64)
	p.nodePort, _ = entry["nodePort"].(int64)
	if p.protocol == "" {
		p.protocol = string(corev1.ProtocolTCP)
	}
	switch corev1.Protocol(p.protocol) {
	case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
	default:
		p.protocol = clip.Line(p.protocol, len(corev1.ProtocolSCTP))
		return p, "has an unknown protocol"
	}
	switch {
	case p.nodePort == 0:
		return p, "has no node port"
	case len(validation.IsValidPortNum(int(p.number))) > 0 || len(validation.IsValidPortNum(int(p.nodePort))) > 0:
		return p, "is no port"
	case p.name != "" && len(validation.IsDNS1123Label(p.name)) > 0:
		return p, "has no usable name"
	}
	return p, ""
}

// note tells of a Service what changes nothing for the others.
func (v *view) note(w *way, format string, args ...any) {
	v.said.notes = append(v.said.notes, fmt.Sprintf("Service %q: ", key(w.service))+fmt.Sprintf(format, args...))
}
