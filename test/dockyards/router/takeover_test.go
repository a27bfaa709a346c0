package router

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/test/suite"
)

// upstream is the field manager of dockyards-kubevirt.
const upstream = "dockyards-kubevirt"

var takeoverScenarios = []scenario{
	{"what upstream has made is taken over as it is", takeover},
	{"what upstream has left behind is put right", leftBehind},
	{"one late write of upstream is survived", lateWrite},
	{"conditions of others survive", otherConditions},
	{"the object's mode is heeded", modes},
}

// byUpstream are the manifests of a mirror and its routes as upstream writes them.
func (x *tenant) byUpstream(service *unstructured.Unstructured, owner string) []string {
	name := x.workload + "-" + service.GetName()
	var list []string
	for _, item := range must(unstructured.NestedSlice(service.Object, "spec", "ports")) {
		p, _ := item.(map[string]any)
		list = append(list, fmt.Sprintf("{name: %v, port: %v, targetPort: %v}", p["name"], p["port"], p["nodePort"]))
	}
	parent := `parentRefs: [{name: shared, namespace: ` + x.NS + `}]`
	route := func(kind, version string, port int) string {
		return fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/%s, kind: %s, metadata: {name: %s%s}, spec: {%s, hostnames: ["*.shop.example"], rules: [{backendRefs: [{name: %s, port: %d}]}]}}`,
			version, kind, name, owner, parent, name, port)
	}
	return []string{
		`{apiVersion: v1, kind: Service, metadata: {name: ` + name + owner + `}, spec: {selector: {cluster.x-k8s.io/cluster-name: prod, cluster.x-k8s.io/role: worker}, ports: [` + strings.Join(list, ",") + `]}}`,
		route("HTTPRoute", "v1", 80), route("TLSRoute", "v1", 443),
	}
}

func must[T any](value T, _ bool, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (x *tenant) owned() string {
	workload := x.Must(dockyards.Workloads, x.workload)
	return fmt.Sprintf(`, ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Workload, name: %s, uid: %s}]`, x.workload, workload.GetUID())
}

// takeover: TK1, TK2: nothing is written where nothing differs; what has no owner is
// known by what it says.
func takeover(x *tenant) {
	front := x.service(x.there, "front", webPorts)
	lost := x.service(x.there, "lost", webPorts)
	x.CreateAs(upstream, x.byUpstream(front, x.owned())...)
	x.CreateAs(upstream, x.byUpstream(lost, "")...)
	before := x.Snapshot()
	x.settle()
	x.says("True Reconciled", "")
	for key, was := range before {
		now := x.Snapshot()[key]
		if strings.HasSuffix(key, "-front") && now.Bytes != was.Bytes {
			x.t.Errorf("TK2: %s was written:\n%s\n%s", key, was.Bytes, now.Bytes)
		}
		if now.UID != was.UID {
			x.t.Errorf("TK1: %s was made anew", key)
		}
	}
	if len(x.made()) != 6 {
		x.t.Errorf("X10: what has no owner is not taken over: %v", x.made())
	}
	x.rests()
}

// leftBehind: TK3, TK5: stale ports, routes that catch everything, stale mirrors. The
// fields are upstream's by managed fields, and go all the same.
func leftBehind(x *tenant) {
	front := x.service(x.there, "front", `[{name: http, port: 80}, {name: quic, port: 443, protocol: UDP}]`)
	objs := x.byUpstream(front, x.owned())
	objs[0] = strings.Replace(objs[0], "ports: [", "ports: [{name: old, port: 8080, targetPort: 30999},", 1)
	for i := range objs[1:] {
		objs[i+1] = strings.Replace(objs[i+1], `hostnames: ["*.shop.example"], `, "", 1)
	}
	objs[2] = strings.Replace(objs[2], "kind: TLSRoute", "kind: HTTPRoute", 1) // TLSRoutes of today need a hostname
	objs[2] = strings.ReplaceAll(objs[2], "-front", "-gone")
	x.CreateAs(upstream, objs...)
	stale := x.service(x.there, "stale", webPorts)
	x.CreateAs(upstream, x.byUpstream(stale, x.owned())...)
	x.there.Remove(dockyards.Services, "stale")
	before := x.mirror("front")
	x.settle()
	mirror := x.mirror("front")
	if mirror.GetUID() != before.GetUID() || suite.Text(mirror, "spec", "clusterIP") != suite.Text(before, "spec", "clusterIP") {
		x.t.Error("TK2: the mirror was made anew")
	}
	if got, want := ports(mirror), wanted(front); !slices.Equal(got, want) {
		x.t.Errorf("TK3: the ports are %v, want %v", got, want)
	}
	if got := hostnames(x.Must(dockyards.HTTPRoutes, mirror.GetName())); !slices.Equal(got, []string{"*.shop.example"}) {
		x.t.Errorf("WR9: the route has %v", got)
	}
	if got := x.made(); !slices.Equal(got, []string{"HTTPRoute/" + mirror.GetName(), "Service/" + mirror.GetName()}) {
		x.t.Errorf("WR14: left are %v", got)
	}
	x.rests()
}

// lateWrite: section 13, upstream overwrites owners and ports once more.
func lateWrite(x *tenant) {
	x.service(x.there, "front", `[{name: http, port: 80}, {name: dns, port: 53, protocol: UDP}]`)
	x.settle()
	x.Update(dockyards.Services, x.workload+"-front", upstream, func(obj *unstructured.Unstructured) {
		list, _, _ := unstructured.NestedSlice(obj.Object, "spec", "ports")
		for _, item := range list {
			p, _ := item.(map[string]any)
			p["protocol"] = "TCP"
		}
		_ = unstructured.SetNestedSlice(obj.Object, list, "spec", "ports")
		obj.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: dockyards.Workloads.APIVersion(), Kind: "Workload", Name: x.workload, UID: x.Must(dockyards.Workloads, x.workload).GetUID(),
		}})
	})
	x.f.Insist(x.Event(dockyards.Services, x.workload+"-front"))
	if got, want := ports(x.mirror("front")), wanted(x.there.Must(dockyards.Services, "front")); !slices.Equal(got, want) {
		x.t.Errorf("WR5: the ports are %v, want %v", got, want)
	}
	x.rests()
}

// otherConditions: X14, X15.
func otherConditions(x *tenant) {
	x.Patch(dockyards.Workloads, x.workload, `{status: {urls: ["https://a.example"], conditions: [
		{type: Ready, status: "False", reason: WaitingForClusterReady, message: x, lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 1},
		{type: WorkloadTemplateReconciled, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-02T00:00:00Z"}]}}`, "status")
	x.settle()
	workload := x.Must(dockyards.Workloads, x.workload)
	list, _, _ := unstructured.NestedSlice(workload.Object, "status", "conditions")
	if len(list) != 3 || suite.Text(workload, "status", "urls") != "[https://a.example]" {
		x.t.Fatalf("X14: the status is %v", workload.Object["status"])
	}
	ours, _ := list[2].(map[string]any)
	if ours["observedGeneration"] != workload.GetGeneration() || ours["message"] != "" {
		x.t.Errorf("X14: the condition is %v", ours)
	}
	then := ours["lastTransitionTime"]
	x.Patch(dockyards.Workloads, x.workload, `{spec: {targetNamespace: elsewhere}}`)
	x.f.Asked()
	x.settle()
	if _, writes := x.f.Asked(); len(writes) != 1 {
		x.t.Errorf("X15: it writes %v", writes)
	}
	after := x.Must(dockyards.Workloads, x.workload)
	again, _, _ := unstructured.NestedSlice(after.Object, "status", "conditions")
	ours, _ = again[2].(map[string]any)
	if ours["lastTransitionTime"] != then || ours["observedGeneration"] != after.GetGeneration() {
		x.t.Errorf("X14: the condition is %v, it was of %v", ours, then)
	}
	if fmt.Sprint(again[:2]) != fmt.Sprint(list[:2]) {
		x.t.Errorf("X14: others' conditions are %v, were %v", again[:2], list[:2])
	}
}

// modes: an object in mode plan is not written.
func modes(x *tenant) {
	x.service(x.there, "front", webPorts)
	x.Patch(dockyards.Workloads, x.workload, `{metadata: {annotations: {slipway.dev/mode: plan}}}`)
	x.asked()
	x.settle()
	_, writes := x.asked()
	if len(writes)+len(x.made()) > 0 || x.Condition(dockyards.Workloads, x.workload, condition) != "" {
		x.t.Errorf("mode plan writes %v and %v", writes, x.made())
	}
	x.Patch(dockyards.Workloads, x.workload, `{metadata: {annotations: null}}`)
	x.settle()
	x.says("True Reconciled", "")
}
