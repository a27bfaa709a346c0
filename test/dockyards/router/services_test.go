package router

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/test/suite"
)

var serviceScenarios = []scenario{
	{"a load balancer becomes reachable", firstService},
	{"UDP and TCP share a number", udpAndTCP},
	{"two namespaces have a Service of one name", sameNames},
	{"a name is too long or no Service's name", longNames},
	{"a Service changes", changes},
	{"a Service goes", goes},
	{"only a LoadBalancer of the Workload counts", others},
	{"a Workload with a long name has no Services", longWorkload},
	{"a Workload in a namespace of many", neighbours},
}

// firstService: WR3, WR4, WR7, WR8, and the fixpoint.
func firstService(x *tenant) {
	x.settle()
	x.says("True NoLoadBalancerService", "")
	service := x.service(x.there, "front", webPorts)
	x.settle()
	x.says("True Reconciled", "")
	if got := ingress(x.there.Must(dockyards.Services, "front")); !slices.Equal(got, []string{address}) {
		x.t.Errorf("WR3: the Service is told %v", got)
	}
	mirror, workload := x.mirror("front"), x.Must(dockyards.Workloads, x.workload)
	if diff := cmp.Diff(wanted(service), ports(mirror)); diff != "" {
		x.t.Errorf("WR4: the ports (-want +got):\n%s", diff)
	}
	owner := fmt.Sprintf(`[{"apiVersion":"dockyards.io/v1alpha3","kind":"Workload","name":%q,"uid":%q}]`, x.workload, workload.GetUID())
	for what, part := range map[string][2]string{
		"WR4: the selector": {suite.Bytes(x.t, mirror, "spec", "selector"), `{"cluster.x-k8s.io/cluster-name":"prod","cluster.x-k8s.io/role":"worker"}`},
		"WR4: the type":     {suite.Text(mirror, "spec", "type"), "ClusterIP"},
		"X8: the owner":     {suite.Bytes(x.t, mirror, "metadata", "ownerReferences"), owner},
		"labels":            {fmt.Sprint(mirror.GetLabels(), mirror.GetAnnotations()), "map[] map[]"},
	} {
		if part[0] != part[1] {
			x.t.Errorf("%s: it is %s, want %s", what, part[0], part[1])
		}
	}
	for _, route := range []struct {
		name string
		got  [4]string
		port string
	}{
		{"HTTPRoute", parts(x, x.Must(dockyards.HTTPRoutes, mirror.GetName())), "80"},
		{"TLSRoute", parts(x, x.Must(dockyards.TLSRoutes, mirror.GetName())), "443"},
	} {
		want := [4]string{`["*.shop.example"]`, "shared " + x.NS, mirror.GetName() + " " + route.port, owner}
		if diff := cmp.Diff(want, route.got); diff != "" {
			x.t.Errorf("WR8: %s (-want +got):\n%s", route.name, diff)
		}
	}
	x.rests()
	x.f.Asked()
	x.settle()
	here, _ := x.f.Asked()
	reads, _ := x.asked()
	if len(here) > 12 || !slices.Equal(reads, []string{"list services 0"}) {
		x.t.Errorf("one event at the fixpoint reads %v here and %v there", here, reads)
	}
}

// parts are hostnames, parent, backend and owner of a route.
func parts(x *tenant, route *unstructured.Unstructured) [4]string {
	spec, _ := route.Object["spec"].(map[string]any)
	parent := firstOf(spec["parentRefs"])
	backend := firstOf(firstOf(spec["rules"])["backendRefs"])
	return [4]string{
		strings.ReplaceAll(fmt.Sprintf("%q", spec["hostnames"]), `" "`, `","`), fmt.Sprint(parent["name"], " ", parent["namespace"]),
		fmt.Sprint(backend["name"], " ", backend["port"]), suite.Bytes(x.t, route, "metadata", "ownerReferences"),
	}
}

// firstOf is the first entry of a list.
func firstOf(value any) map[string]any {
	list, _ := value.([]any)
	if len(list) == 0 {
		return nil
	}
	entry, _ := list[0].(map[string]any)
	return entry
}

// udpAndTCP: WR5, WR11.
func udpAndTCP(x *tenant) {
	web := x.service(x.there, "quic", `[{name: web, port: 80, protocol: TCP}, {name: tls, port: 443, protocol: TCP}, {name: quic, port: 443, protocol: UDP}]`)
	dns := x.service(x.there, "dns", `[{name: udp, port: 53, protocol: UDP}, {name: tcp, port: 53, protocol: TCP}, {name: quic, port: 443, protocol: UDP}]`)
	x.settle()
	x.says("True Reconciled", "")
	if diff := cmp.Diff(wanted(web), ports(x.mirror("quic"))); diff != "" {
		x.t.Errorf("WR5: (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wanted(dns), ports(x.mirror("dns"))); diff != "" {
		x.t.Errorf("WR5: (-want +got):\n%s", diff)
	}
	want := []string{"HTTPRoute/" + x.workload + "-quic", "Service/" + x.workload + "-dns", "Service/" + x.workload + "-quic", "TLSRoute/" + x.workload + "-quic"}
	if diff := cmp.Diff(want, x.made()); diff != "" {
		x.t.Errorf("WR11: a route is for TCP alone (-want +got):\n%s", diff)
	}
	x.rests()
}

// sameNames: WR6, the one in the target namespace keeps the plain name.
func sameNames(x *tenant) {
	before := x.namespace("a-" + x.NS)
	x.service(before, "front", `[{name: http, port: 80}]`)
	x.settle()
	plain := x.mirror("front")
	one := x.service(x.there, "front", `[{name: http, port: 80}]`)
	x.settle()
	x.says("True Reconciled", "")
	mirror := x.mirror("front")
	if diff := cmp.Diff(wanted(one), ports(mirror)); diff != "" || mirror.GetUID() != plain.GetUID() {
		x.t.Errorf("WR6: the plain name is not the target namespace's, or was made anew (-want +got):\n%s", diff)
	}
	services := slices.DeleteFunc(x.made(), func(name string) bool { return !strings.HasPrefix(name, "Service/") })
	if len(services) != 2 || len(services[1]) != len("Service/"+x.workload+"-front-")+8 {
		x.t.Errorf("WR6: the mirrors are %v", services)
	}
	x.rests()
}

// longNames: WR6.
func longNames(x *tenant) {
	long := strings.Repeat("long-names", 6)
	x.service(x.there, long, `[{name: http, port: 80}]`)
	x.service(x.there, long[:59], `[{name: http, port: 80}]`)
	dotted, digit := x.workload+".v2", "1"+x.workload
	x.settle()
	for _, name := range []string{dotted, digit} {
		x.newWorkload(name, x.cluster)
		w := *x
		w.workload = name
		w.service(w.there, "front-"+name[:1], `[{name: http, port: 80}]`)
		w.settle()
		w.says("True Reconciled", "")
		w.rests()
	}
	count := 0
	for key := range x.Objects() {
		name, is := strings.CutPrefix(key, "Service/")
		if !is {
			continue
		}
		count++
		if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
			x.t.Errorf("WR6: the name %q: %v", name, problems)
		}
	}
	if count != 4 {
		x.t.Errorf("WR6: there are %d mirrors, want 4: %v", count, x.Names())
	}
	x.rests()
}

// changes: WR4, WR11, WR14: ports come and go, the mirror stays the same object.
func changes(x *tenant) {
	x.service(x.there, "front", webPorts)
	x.settle()
	uid := x.mirror("front").GetUID()
	service := x.there.Patch(dockyards.Services, "front", `{spec: {ports: [{name: http, port: 8080}, {name: https, port: 443}]}}`)
	x.f.Insist(x.remoteEvent("update", x.NS, "front"))
	if diff := cmp.Diff(wanted(service), ports(x.mirror("front"))); diff != "" {
		x.t.Errorf("WR4: (-want +got):\n%s", diff)
	}
	if x.mirror("front").GetUID() != uid || x.Get(dockyards.HTTPRoutes, x.workload+"-front") != nil || x.Get(dockyards.TLSRoutes, x.workload+"-front") == nil {
		x.t.Errorf("WR11: without port 80 there is no HTTPRoute: %v", x.made())
	}
	x.rests()
	x.there.Patch(dockyards.Services, "front", `{spec: {ports: [{name: only, port: 9000}]}}`)
	x.f.Insist(x.remoteEvent("update", x.NS, "front"))
	if diff := cmp.Diff([]string{"Service/" + x.workload + "-front"}, x.made()); diff != "" {
		x.t.Errorf("WR11: (-want +got):\n%s", diff)
	}
	// What others change is brought back, what they add to its metadata stays.
	x.Patch(dockyards.Services, x.workload+"-front", `{metadata: {labels: {mine: "1"}}, spec: {selector: {other: pods}, ports: [{name: x, port: 1}]}}`)
	x.f.Insist(x.Event(dockyards.Services, x.workload+"-front"))
	if mirror := x.mirror("front"); len(ports(mirror)) != 1 || mirror.GetLabels()["mine"] != "1" || strings.Contains(suite.Bytes(x.t, mirror, "spec", "selector"), "other") {
		x.t.Errorf("the mirror is %v", mirror.Object)
	}
	x.rests()
}

// goes: WR14, by deletion, by another type, by another label.
func goes(x *tenant) {
	for _, way := range []struct {
		name, event string
		do          func()
	}{
		{"deleted", "delete", func() { x.there.Remove(dockyards.Services, "front") }},
		{"another type", "update", func() { x.there.Patch(dockyards.Services, "front", `{spec: {type: ClusterIP}}`) }},
		{"another label", "update", func() {
			x.there.Patch(dockyards.Services, "front", `{metadata: {labels: {dockyards.io/workload-name: else}}}`)
		}},
		{"no label", "delete", func() {
			x.there.Patch(dockyards.Services, "front", `{metadata: {labels: {dockyards.io/workload-name: null}}}`)
		}},
	} {
		if x.there.Get(dockyards.Services, "front") != nil {
			x.there.Remove(dockyards.Services, "front")
		}
		x.service(x.there, "front", webPorts)
		x.f.Insist(x.remoteEvent("add", x.NS, "front"))
		if len(x.made()) != 3 {
			x.t.Fatalf("%s: there are %v", way.name, x.made())
		}
		way.do()
		x.f.Insist(x.remoteEvent(way.event, x.NS, "front"))
		if made := x.made(); len(made) != 0 {
			x.t.Errorf("WR14, %s: left are %v", way.name, made)
		}
		x.says("True NoLoadBalancerService", "")
	}
}

// others: section 9, what is listed.
func others(x *tenant) {
	x.there.Create(`{apiVersion: v1, kind: Service, metadata: {name: unlabelled}, spec: {type: LoadBalancer, ports: [{port: 80}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: inside, labels: {dockyards.io/workload-name: `+x.workload+`}}, spec: {ports: [{port: 80}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: nodes, labels: {dockyards.io/workload-name: `+x.workload+`}}, spec: {type: NodePort, ports: [{port: 80}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: elses, labels: {dockyards.io/workload-name: other}}, spec: {type: LoadBalancer, ports: [{port: 80}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: portless, labels: {dockyards.io/workload-name: `+x.workload+`}}, spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 80}]}}`)
	x.settle()
	x.says("True Reconciled", `"`+x.NS+`/portless": port 80/TCP has no node port`)
	if made := x.made(); len(made) != 0 {
		x.t.Errorf("made are %v", made)
	}
	x.rests()
}

// longWorkload: a name that no label can have.
func longWorkload(x *tenant) {
	x.settle()
	x.workload = strings.Repeat("long-", 14) + x.NS
	x.newWorkload(x.workload, x.cluster)
	x.asked()
	x.settle()
	x.says("True NoLoadBalancerService", "")
	if reads, _ := x.asked(); len(reads) > 0 {
		x.t.Errorf("the workload cluster is asked for nothing: %v", reads)
	}
	x.rests()
}

// neighbours: WR6, X20. A tenant cannot take the name of another Workload's mirror.
func neighbours(x *tenant) {
	longer := x.workload + "-b"
	x.newCluster("staging", "stage.example")
	x.kubeconfig("staging", x.credential())
	x.newWorkload(longer, "staging")
	x.service(x.there, "b-front", `[{name: http, port: 80}]`)
	x.settle()
	x.says("True Reconciled", "")
	if x.Get(dockyards.Services, longer+"-front") != nil {
		x.t.Error("WR6: the name of another Workload's mirror is taken")
	}
	theirs := *x
	theirs.workload, theirs.cluster = longer, "staging"
	theirs.service(theirs.there, "front", `[{name: http, port: 80}]`)
	theirs.settle()
	theirs.says("True Reconciled", "")
	if got := hostnames(x.Must(dockyards.HTTPRoutes, longer+"-front")); !slices.Equal(got, []string{"*.stage.example"}) {
		x.t.Errorf("the other Workload's route has %v", got)
	}
	x.rests()
	theirs.rests()
}

func TestTheFunctionsManifest(t *testing.T) {
	if testing.Short() {
		t.Skip("the manifest is generated")
	}
	suit.CheckManifest(t)
}
