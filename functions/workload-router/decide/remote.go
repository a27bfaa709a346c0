package decide

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// RemoteSelector finds a Workload's Services in its workload cluster.
func RemoteSelector(workload *unstructured.Unstructured) string {
	return v1alpha3.LabelWorkloadName + "=" + workload.GetName()
}

// versionMax is the length of a resourceVersion that is believed.
const versionMax = 64

// Kept is what is kept of a Service of a workload cluster: nil of one that does not
// count. Whatever a tenant writes into a Service, it takes little room.
func Kept(limits Limits) func(service *unstructured.Unstructured) *unstructured.Unstructured {
	return func(service *unstructured.Unstructured) *unstructured.Unstructured {
		kind, _, _ := unstructured.NestedString(service.Object, "spec", "type")
		namespace, name := service.GetNamespace(), service.GetName()
		if kind != "LoadBalancer" || dockyards.Going(service) || len(service.GetResourceVersion()) > versionMax ||
			len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Label(name)) > 0 {
			return nil
		}
		kept := &unstructured.Unstructured{Object: map[string]any{}}
		kept.SetGroupVersionKind(dockyards.Services.GVK())
		kept.SetNamespace(namespace)
		kept.SetName(name)
		kept.SetResourceVersion(service.GetResourceVersion())
		kept.SetCreationTimestamp(service.GetCreationTimestamp())
		// One more than there may be tells that there are more.
		kept.Object["spec"] = map[string]any{"ports": first(service, limits.Ports+1, portFields, "spec", "ports")}
		kept.Object["status"] = map[string]any{"loadBalancer": map[string]any{
			"ingress": first(service, 2, ingressFields, "status", "loadBalancer", "ingress"),
		}}
		return kept
	}
}

var (
	portFields    = []string{"name", "port", "nodePort", "protocol"}
	ingressFields = []string{"ip", "hostname"}
)

// textMax is the length of a field that is believed: that of a DNS name.
const textMax = 253

// first are the first entries of a list, with the named fields of each.
func first(obj *unstructured.Unstructured, count int, fields []string, path ...string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	list, _ := value.([]any)
	kept := make([]any, 0, min(len(list), count))
	for _, item := range list[:min(len(list), count)] {
		entry, _ := item.(map[string]any)
		part := map[string]any{}
		for _, field := range fields {
			switch value := entry[field].(type) {
			case int64:
				part[field] = value
			case string:
				part[field] = clip.Line(value, textMax)
			}
		}
		kept = append(kept, part)
	}
	return kept
}

// choose takes the oldest of the Workload's Services, as many as may be mirrored:
// those that are there keep their place when more come.
func (v *view) choose() {
	var services []*unstructured.Unstructured
	seen := map[string]bool{} // a server that is not trusted may list one twice
	for i := range v.in.Remote.Services {
		if service := &v.in.Remote.Services[i]; !seen[key(service)] {
			seen[key(service)] = true
			services = append(services, service)
		}
	}
	slices.SortFunc(services, dockyards.Older)
	if limit := v.in.Limits.Services; len(services) > limit {
		v.said.notes = append(v.said.notes, fmt.Sprintf("beyond the limit of %d Services, and not mirrored: %s", limit, some(services[limit:])))
		services = services[:limit]
	}
	if v.in.Remote.Incomplete {
		v.said.notes = append(v.said.notes, fmt.Sprintf(
			"more than %d Services are labelled for the Workload: the others are not looked at, and nothing is removed", v.in.Limits.Read))
	}
	slices.SortFunc(services, byName)
	for _, service := range services {
		v.ways = append(v.ways, &way{service: service})
		v.announce(service)
	}
}

// some names the first of several objects and counts the others.
func some(objects []*unstructured.Unstructured) string {
	const shown = 3
	var names []string
	for _, obj := range objects[:min(shown, len(objects))] {
		names = append(names, quote(key(obj)))
	}
	text := strings.Join(names, ", ")
	if more := len(objects) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// announce tells a Service in the workload cluster where it is reached.
func (v *view) announce(service *unstructured.Unstructured) {
	if v.announced(service) {
		return
	}
	entry := map[string]any{"ip": v.address.IP}
	if v.address.IP == "" {
		entry = map[string]any{"hostname": v.address.Hostname}
	}
	changed := service.DeepCopy()
	changed.Object["status"] = map[string]any{"loadBalancer": map[string]any{"ingress": []any{entry}}}
	v.status = append(v.status, plan.Entry{
		Verb: plan.Patch, Cluster: v.remoteName(), Resource: dockyards.Services, Subresource: "status", Base: service, Object: changed,
		Reason: "the Service is reached at the Gateway's address",
	})
}

// announced tells whether a Service has the Gateway's address and no other. What
// else its entry says does not matter.
func (v *view) announced(service *unstructured.Unstructured) bool {
	list, _, _ := unstructured.NestedSlice(service.Object, "status", "loadBalancer", "ingress")
	if len(list) != 1 {
		return false
	}
	entry, _ := list[0].(map[string]any)
	if v.address.IP == "" {
		return entry["hostname"] == v.address.Hostname
	}
	text, _ := entry["ip"].(string)
	have, err := netip.ParseAddr(text)
	want, wrong := netip.ParseAddr(v.address.IP)
	return err == nil && wrong == nil && have == want
}

func (v *view) remoteName() string { return dockyards.RemoteName(v.namespace, v.clusterName) }
