package router

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	workloadrouter "github.com/slipway-dev/slipway/functions/workload-router"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	kubetest "github.com/slipway-dev/slipway/test/kube"
	"github.com/slipway-dev/slipway/test/suite"
)

var eventScenarios = []scenario{
	{"events alone are enough", eventsAlone},
	{"a resync alone is enough", resyncAlone},
	{"a route that somebody else owns wakes nobody", othersRoute},
	{"every call that fails is made good", everyCallFails},
	{"a copy that works on an old reading undoes nothing", oldReading},
}

// eventsAlone: X1: sources on both clusters, and nothing else.
func eventsAlone(x *tenant) {
	x.Source(x.f)
	x.there.Source(x.f, x.remoteName())
	route := x.workload + "-front"
	is := func(hosts ...string) func(*unstructured.Unstructured) bool {
		return func(obj *unstructured.Unstructured) bool { return obj != nil && slices.Equal(hostnames(obj), hosts) }
	}
	started := time.Now()
	x.service(x.there, "front", webPorts)
	x.Await(dockyards.HTTPRoutes, route, "is there", is("*.shop.example"))
	x.t.Logf("a load balancer has its route after %s", time.Since(started).Round(time.Millisecond))
	x.zones(x.cluster, "next.example")
	x.Await(dockyards.HTTPRoutes, route, "has the other zone", is("*.next.example"))
	x.gateway(`{type: IPAddress, value: 198.51.100.77}`)
	x.there.Await(dockyards.Services, "front", "is told the other address", func(obj *unstructured.Unstructured) bool {
		return obj != nil && slices.Equal(ingress(obj), []string{"198.51.100.77"})
	})
	x.Remove(dockyards.TLSRoutes, route)
	x.Await(dockyards.TLSRoutes, route, "is made anew", is("*.next.example"))
	x.there.Patch(dockyards.Services, "front", `{spec: {ports: [{name: https, port: 443}]}}`)
	x.Await(dockyards.HTTPRoutes, route, "is gone", suite.Gone)
	x.there.Remove(dockyards.Services, "front")
	x.Await(dockyards.Services, route, "is gone", suite.Gone)
	x.Await(dockyards.Workloads, x.workload, "says so", func(obj *unstructured.Unstructured) bool {
		_, reason, _ := suite.Condition(obj, condition)
		return reason == "NoLoadBalancerService"
	})
}

// resyncAlone: X2: the same, and no event at all.
func resyncAlone(x *tenant) {
	x.service(x.there, "front", webPorts)
	x.f.Resync()
	x.wantRouted("X2", map[string][]string{"front": {"*.shop.example"}})
	x.there.Remove(dockyards.Services, "front")
	x.zones(x.cluster, "next.example")
	x.service(x.there, "back", webPorts)
	x.f.Resync()
	x.wantRouted("X2", map[string][]string{"back": {"*.next.example"}})
	x.says("True Reconciled", "")
	x.rests()
}

// othersRoute: every Cluster has a route of its own to its API endpoint, whose name may
// look like that of a Workload's. With a look at each Workload for each of them, work
// would grow with the square of their number.
func othersRoute(x *tenant) {
	name := x.workload + "-1"
	x.Create(fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: %s, ownerReferences: [
		{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: %s, uid: %s}]}, spec: {hostnames: [api.example]}}`,
		name, x.cluster, x.Must(dockyards.Clusters, x.cluster).GetUID()))
	x.run()
	x.f.Insist(x.Event(dockyards.HTTPRoutes, name))
	if reads, writes := x.f.Asked(); len(reads) != 1 || len(writes) != 0 {
		x.t.Errorf("it cost more than the look at it:\n%s", strings.Join(append(reads, writes...), "\n"))
	}
	x.Patch(dockyards.HTTPRoutes, name, `{metadata: {ownerReferences: null}}`)
	x.run()
	x.f.Insist(x.Event(dockyards.HTTPRoutes, name))
	if reads, _ := x.f.Asked(); len(reads) < 3 {
		x.t.Errorf("one that nobody owns may be the Workload's, which was not looked at: %v", reads)
	}
	x.Remove(dockyards.HTTPRoutes, name)
}

// everyCallFails: whichever call fails, or whose answer is lost, the same state is
// reached by sending the event again.
// The node ports are the same each time, from the band below 30086, of which an API
// server gives out none by itself as long as it has others.
func everyCallFails(x *tenant) {
	play := func(options ...suite.Option) (calls []kubetest.Request, state map[string]string) {
		for _, name := range []string{"front", "old"} {
			if x.there.Get(dockyards.Services, name) != nil {
				x.there.Remove(dockyards.Services, name)
			}
		}
		x.run()
		x.settle()
		x.service(x.there, "old", `[{name: http, port: 80}]`)
		x.settle()
		x.there.Remove(dockyards.Services, "old")
		x.service(x.there, "front", `[{name: http, port: 80, nodePort: 30080}, {name: https, port: 443, nodePort: 30043}]`)
		x.run(options...)
		for try := 0; x.f.Send(x.Event(dockyards.Workloads, x.workload)) != http.StatusNoContent; try++ {
			if try == 5 {
				x.t.Fatalf("it is never done; the log:\n%s", x.f.Log)
			}
		}
		return x.f.Calls(), x.State()
	}
	calls, want := play()
	for i, c := range calls {
		n := i + 1
		for name, option := range map[string]suite.Option{
			"fails": suite.WithTap(func(call suite.Call) (*http.Response, error) {
				if call.N == n {
					return suite.Answer(call.HTTP, http.StatusServiceUnavailable), nil
				}
				return nil, nil
			}),
			"is lost": suite.WithAfter(func(call suite.Call) error {
				if call.N == n {
					return suite.ErrBroken
				}
				return nil
			}),
		} {
			// Reads are much like each other.
			if !c.Write() && !suite.Exhaustive() && (name != "fails" || i%3 != 0) {
				continue
			}
			if _, got := play(option); !cmp.Equal(want, got) {
				x.t.Errorf("call %d %s (-want +got):\n%s", n, name, cmp.Diff(want, got))
			}
		}
	}
	x.t.Logf("%d calls", len(calls))
}

// oldReading: X12: a copy that is held at any call while the world changes.
func oldReading(x *tenant) {
	reset := func() {
		x.zones(x.cluster, "shop.example")
		if x.there.Get(dockyards.Services, "front") != nil {
			x.there.Remove(dockyards.Services, "front")
		}
		x.run()
		x.settle()
		x.service(x.there, "front", webPorts)
	}
	step := 3
	if suite.Exhaustive() {
		step = 1
	}
	for at := 1; ; at += step {
		reset()
		gate := suite.NewGate(at)
		slow := suite.Run(x.World, workloadrouter.Declare(x.settings), suite.WithTap(gate.Tap))
		finish, held := gate.Begin(slow, x.Event(dockyards.Workloads, x.workload))
		if !held {
			x.t.Logf("a copy was held at one in %d of its calls, up to call %d", step, at-step)
			return
		}
		x.zones(x.cluster, "next.example")
		x.f.Insist(x.Event(dockyards.Clusters, x.cluster))
		finish()
		// What the slow one has made is an event of its own.
		for key := range x.Objects() {
			kindOf, name, _ := strings.Cut(key, "/")
			for _, res := range []kind.Resource{dockyards.Services, dockyards.HTTPRoutes, dockyards.TLSRoutes} {
				if res.Kind == kindOf {
					x.f.Insist(x.Event(res, name))
				}
			}
		}
		x.wantRouted(fmt.Sprintf("X12, held at call %d", at), map[string][]string{"front": {"*.next.example"}})
		x.says("True Reconciled", "")
		if x.t.Failed() {
			return
		}
	}
}

// versions are scenarios on a management cluster that serves other versions: the
// second API server plays both parts.
var versions = []struct {
	name string
	do   func(t *testing.T, remote *suite.World)
}{
	{"TLSRoute v1alpha2 and Cluster API v1beta1", olderVersions},
}

// olderVersions: D1, section 15.
func olderVersions(t *testing.T, remote *suite.World) {
	w := at(t, remote, "older-"+remote.NS)
	w.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + w.NS + `}}`)
	x := newTenant(t, w, remote, suite.WithConfig(admin(remote)))
	x.service(x.there, "front", webPorts)
	x.settle()
	x.says("True Reconciled", "")
	x.rests()
	uid := x.Must(dockyards.TLSRoutes, x.workload+"-front").GetUID()

	// The platform goes back: what is stored is the same object.
	serve(x, "tlsroutes.gateway.networking.k8s.io", "v1alpha2")
	serve(x, "clusters.cluster.x-k8s.io", "v1beta1")
	routes := dockyards.TLSRoutes
	routes.Versions = []string{"v1alpha2"}
	clusters := dockyards.CAPIClusters
	clusters.Versions = []string{"v1beta1"}
	x.run(suite.WithConfig(admin(remote)))
	x.f.Insist(suite.Changed("update", clusters.APIVersion(), "Cluster", x.NS, x.cluster))
	x.says("False WaitingForControlPlane", "infrastructure")
	x.patchAt(clusters, x.cluster, `{"status": {"infrastructureReady": true}}`)
	x.f.Insist(suite.Changed("update", clusters.APIVersion(), "Cluster", x.NS, x.cluster))
	x.says("True Reconciled", "")
	if got := x.routeAt(routes, x.workload+"-front"); got == nil || got.GetUID() != uid {
		t.Error("D1: the TLSRoute was made anew")
	}
	x.service(x.there, "back", webPorts)
	x.zones(x.cluster, "next.example")
	x.settle()
	for _, name := range []string{"front", "back"} {
		if got := x.routeAt(routes, x.workload+"-"+name); got == nil || !slices.Equal(hostnames(got), []string{"*.next.example"}) {
			t.Errorf("D1: the TLSRoute %q is %v", name, got)
		}
	}
	x.there.Remove(dockyards.Services, "front")
	x.f.Insist(x.remoteEvent("delete", x.NS, "front"))
	if got := x.routeAt(routes, x.workload+"-front"); got != nil {
		t.Error("WR14: the TLSRoute stays")
	}
	x.f.Asked()
	x.settle()
	if _, writes := x.f.Asked(); len(writes) > 0 {
		t.Errorf("at the fixpoint: %v", writes)
	}
	// A running copy learns of the next version by itself.
	serve(x, "tlsroutes.gateway.networking.k8s.io", "v1")
	x.zones(x.cluster, "last.example")
	x.settle()
	if got := hostnames(x.Must(dockyards.TLSRoutes, x.workload+"-back")); !slices.Equal(got, []string{"*.last.example"}) {
		t.Errorf("D1: the TLSRoute has %v", got)
	}
}

// serve lets a definition serve one version alone.
func serve(x *tenant, definition, version string) {
	x.t.Helper()
	x.Update(kind.CRDs, definition, "person", func(crd *unstructured.Unstructured) {
		list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, item := range list {
			v, _ := item.(map[string]any)
			v["served"], v["storage"] = v["name"] == version, v["name"] == version
		}
		_ = unstructured.SetNestedSlice(crd.Object, list, "spec", "versions")
	})
	group := strings.SplitN(definition, ".", 2)
	res := kind.Resource{Group: group[1], Versions: []string{version}, Plural: group[0], Namespaced: true}
	deadline := time.Now().Add(suite.Patience)
	for time.Now().Before(deadline) {
		if _, err := x.In(res).List(x.t.Context(), metav1.ListOptions{Limit: 1}); err == nil {
			return
		}
	}
	x.t.Fatalf("%s is not served", definition)
}

func (x *tenant) patchAt(res kind.Resource, name, body string) {
	x.t.Helper()
	if _, err := x.In(res).Patch(x.t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status"); err != nil {
		x.t.Fatal(err)
	}
}

func (x *tenant) routeAt(res kind.Resource, name string) *unstructured.Unstructured {
	x.t.Helper()
	obj, err := x.In(res).Get(x.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return obj
}
