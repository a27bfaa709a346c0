package router

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

var zoneScenarios = []scenario{
	{"zones come and go", zonesChange},
	{"without a zone there is no route", noZones},
	{"more zones than a route takes", manyZones},
	{"a zone of two Clusters belongs to the older", sharedZone},
	{"a zone that holds the platform's host is nobody's", platformZone},
	{"a zone that became another's is given up without asking the workload cluster", lostZone},
	{"the Gateway gets other addresses", gatewayMoves},
}

// routed are the hostnames of all routes of a kind, by route.
func (x *tenant) routed(res kind.Resource) map[string][]string {
	x.t.Helper()
	all := map[string][]string{}
	for key, obj := range x.Objects() {
		if name, is := strings.CutPrefix(key, res.Kind+"/"); is {
			all[strings.TrimPrefix(name, x.workload+"-")] = hostnames(obj)
		}
	}
	return all
}

func (x *tenant) wantRouted(why string, want map[string][]string) {
	x.t.Helper()
	for _, res := range []kind.Resource{dockyards.HTTPRoutes, dockyards.TLSRoutes} {
		if diff := cmp.Diff(want, x.routed(res)); diff != "" {
			x.t.Errorf("%s: %s (-want +got):\n%s", why, res.Kind, diff)
		}
	}
}

// zonesChange: WR7.
func zonesChange(x *tenant) {
	x.service(x.there, "front", webPorts)
	x.settle()
	uid := x.Must(dockyards.HTTPRoutes, x.workload+"-front").GetUID()
	x.zones(x.cluster, "Shop.Example", "new.example.", "new.example", "not a zone", "-x.example")
	x.f.Insist(x.Event(dockyards.Clusters, x.cluster))
	x.wantRouted("WR7", map[string][]string{"front": {"*.shop.example", "*.new.example"}})
	x.says("True Reconciled", `zone "not a zone" is no DNS name; zone "-x.example" is no DNS name`)
	if got := x.Must(dockyards.HTTPRoutes, x.workload+"-front").GetUID(); got != uid {
		x.t.Error("the route was made anew")
	}
	x.rests()
	x.zones(x.cluster, "new.example", "shop.example")
	x.f.Insist(x.Event(dockyards.Clusters, x.cluster))
	x.rests()
	x.zones(x.cluster, "new.example")
	x.f.Insist(x.Event(dockyards.Clusters, x.cluster))
	x.wantRouted("WR14", map[string][]string{"front": {"*.new.example"}})
	x.rests()
}

// noZones: WR9, and routes that catch everything go.
func noZones(x *tenant) {
	x.service(x.there, "front", webPorts)
	x.settle()
	x.zones(x.cluster)
	x.f.Insist(x.Event(dockyards.Clusters, x.cluster))
	x.says("False WaitingForDNSZones", "no DNS zone")
	x.wantRouted("WR9", map[string][]string{})
	if got := x.made(); !slices.Equal(got, []string{"Service/" + x.workload + "-front"}) {
		x.t.Errorf("WR9: the mirror stays: %v", got)
	}
	x.rests()
	x.zones(x.cluster, "shop.example")
	x.f.Insist(x.Event(dockyards.Clusters, x.cluster))
	x.wantRouted("WR9", map[string][]string{"front": {"*.shop.example"}})
	x.says("True Reconciled", "")
}

// manyZones: WR10, and a Service whose mirror has the name of a further route.
func manyZones(x *tenant) {
	var zones, want []string
	for i := range 40 {
		zones = append(zones, fmt.Sprintf("z%02d.example", i))
		want = append(want, fmt.Sprintf("*.z%02d.example", i))
	}
	x.service(x.there, "front", webPorts)
	x.service(x.there, "front-2", webPorts)
	x.zones(x.cluster, zones...)
	x.settle()
	x.says("True Reconciled", "")
	for _, res := range []kind.Resource{dockyards.HTTPRoutes, dockyards.TLSRoutes} {
		got := x.routed(res)
		if len(got) != 6 {
			x.t.Errorf("WR10: the %ss are %v", res.Kind, got)
		}
		for _, name := range []string{"front-2", "front-3", "front-2-3"} {
			if got[name] == nil {
				x.t.Errorf("WR10: there is no %s %q", res.Kind, name)
			}
		}
		of := map[string][]string{}
		for name, hosts := range got {
			backend := parts(x, x.Must(res, x.workload+"-"+name))[2]
			if len(hosts) > 16 {
				x.t.Errorf("WR10: %s %q has %d hostnames", res.Kind, name, len(hosts))
			}
			of[backend] = append(of[backend], hosts...)
		}
		if len(of) != 2 {
			x.t.Errorf("the backends are %v", of)
		}
		for backend, hosts := range of {
			slices.Sort(hosts)
			if diff := cmp.Diff(want, hosts); diff != "" {
				x.t.Errorf("WR10: %s of %s (-want +got):\n%s", res.Kind, backend, diff)
			}
		}
	}
	x.rests()
	x.zones(x.cluster, zones[:10]...)
	x.f.Insist(x.Event(dockyards.Clusters, x.cluster))
	x.wantRouted("WR14", map[string][]string{"front": want[:10], "front-2": want[:10]})
	x.rests()
}

// sharedZone: WR12.
func sharedZone(x *tenant) {
	x.service(x.there, "front", webPorts)
	x.newCluster("young", "other.example", "Shop.example.")
	x.kubeconfig("young", x.credential())
	x.newWorkload("young-web-"+x.NS, "young")
	younger := *x
	younger.workload, younger.cluster = "young-web-"+x.NS, "young"
	younger.service(younger.there, "young-front", webPorts)
	younger.settle()
	younger.says("False HostConflict", `zone "shop.example" belongs to an older Cluster`)
	if strings.Contains(suite.Bytes(x.t, x.Must(dockyards.Workloads, younger.workload), "status"), "prod") {
		x.t.Error("X20: the condition names another tenant's Cluster")
	}
	x.settle()
	got := x.routed(dockyards.HTTPRoutes)
	if diff := cmp.Diff(map[string][]string{"front": {"*.shop.example"}, younger.workload + "-young-front": {"*.other.example"}}, got); diff != "" {
		x.t.Errorf("WR12 (-want +got):\n%s", diff)
	}
	x.rests()
	younger.rests()
	x.wantEvent("HostConflict")

	// The older gives it up: the younger is told by the older's event.
	x.zones(x.cluster, "left.example")
	x.f.Insist(x.Event(dockyards.Clusters, x.cluster))
	younger.says("True Reconciled", "")
	if got := hostnames(x.Must(dockyards.HTTPRoutes, younger.workload+"-young-front")); len(got) != 2 {
		x.t.Errorf("WR12: the younger one has %v", got)
	}
	x.zones(x.cluster, "shop.example")
	x.f.Insist(x.Event(dockyards.Clusters, x.cluster))
	younger.says("False HostConflict", "")
	// The older one goes: nobody knows its zones any more.
	x.Remove(dockyards.Workloads, x.workload)
	x.Remove(dockyards.Clusters, x.cluster)
	x.f.Insist(suite.Changed("delete", dockyards.Clusters.APIVersion(), "Cluster", x.NS, x.cluster))
	younger.says("True Reconciled", "")
}

// platformZone: WR12, for the host itself and for what it lies in.
func platformZone(x *tenant) {
	x.service(x.there, "front", webPorts)
	for _, zone := range []string{"cloud.example", "example", "CLOUD.Example."} {
		x.zones(x.cluster, zone, "shop.example")
		x.f.Insist(x.Event(dockyards.Clusters, x.cluster))
		x.says("False HostConflict", "platform")
		x.wantRouted("WR12", map[string][]string{"front": {"*.shop.example"}})
	}
	x.rests()
	x.Patch(kind.ConfigMaps, "dockyards-system", `{data: {externalURL: "https://api.elsewhere.test:8443/x"}}`)
	x.f.Insist(x.Event(kind.ConfigMaps, "dockyards-system"))
	x.says("True Reconciled", "")
	x.wantRouted("WR12", map[string][]string{"front": {"*.cloud.example", "*.shop.example"}})
	x.zones(x.cluster, "sub.cloud.example")
	x.Patch(kind.ConfigMaps, "dockyards-system", `{data: {externalURL: "cloud.example"}}`)
	x.settle()
	x.says("True Reconciled", "")
}

// lostZone: X20. A tenant who keeps the workload cluster from answering does not
// thereby keep a hostname.
func lostZone(x *tenant) {
	x.zones(x.cluster, "shop.example", "mine.example")
	x.service(x.there, "front", webPorts)
	x.settle()
	x.proxy.Before(suite.Status(503))
	x.settle()
	x.says("Unknown ClusterUnreachable", "")
	x.rests()
	x.zones(x.cluster, "mine.example")
	x.settle()
	x.wantRouted("WR14: nothing is pruned", map[string][]string{"front": {"*.shop.example", "*.mine.example"}})
	x.newCluster("next", "shop.example")
	x.settle()
	x.wantRouted("X20", map[string][]string{"front": {"*.mine.example"}})
	x.says("Unknown ClusterUnreachable", "")
	x.rests()
}

// gatewayMoves: WR1, WR3.
func gatewayMoves(x *tenant) {
	x.service(x.there, "front", webPorts)
	x.settle()
	for _, step := range []struct {
		name      string
		addresses []string
		want      string
	}{
		{"another IPv4", []string{`{type: IPAddress, value: 198.51.100.7}`}, "198.51.100.7"},
		{"IPv4 before IPv6", []string{`{type: IPAddress, value: "2001:db8::1"}`, `{type: Hostname, value: gw.example}`, `{value: 198.51.100.8}`}, "198.51.100.8"},
		{"IPv6", []string{`{type: Hostname, value: gw.example}`, `{type: IPAddress, value: "2001:db8::1"}`, `{type: IPAddress, value: "2001:db8::2"}`}, "2001:db8::1"},
		{"a hostname", []string{`{type: Hostname, value: gw.example}`, `{type: Hostname, value: gw2.example}`}, "gw.example"},
		{"an address again", []string{`{type: IPAddress, value: ` + address + `}`}, address},
	} {
		x.gateway(step.addresses...)
		x.f.Insist(suite.Changed("update", dockyards.Gateways.APIVersion(), "Gateway", x.NS, "shared"))
		if got := ingress(x.there.Must(dockyards.Services, "front")); !slices.Equal(got, []string{step.want}) {
			x.t.Errorf("WR3, %s: the Service is told %v, want %s", step.name, got, step.want)
		}
		x.says("True Reconciled", "")
		x.rests()
	}
	// Somebody else writes there.
	x.there.Patch(dockyards.Services, "front", `{status: {loadBalancer: {ingress: [{ip: 10.0.0.1}, {ip: `+address+`}]}}}`, "status")
	x.f.Insist(x.remoteEvent("update", x.NS, "front"))
	if got := ingress(x.there.Must(dockyards.Services, "front")); !slices.Equal(got, []string{address}) {
		x.t.Errorf("WR3: the Service is told %v", got)
	}
	x.gateway()
	x.f.Insist(suite.Changed("update", dockyards.Gateways.APIVersion(), "Gateway", x.NS, "shared"))
	x.says("False WaitingForGatewayAddress", "has no address yet")
	x.wantRouted("nothing goes", map[string][]string{"front": {"*.shop.example"}})
}
