package anchor

import (
	"fmt"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	clusteranchor "github.com/slipway-dev/slipway/functions/cluster-anchor"
	"github.com/slipway-dev/slipway/functions/cluster-anchor/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/test/suite"
)

const (
	// gateway is the shared Gateway, address its first address.
	gateway = "public"
	address = "198.51.100.7"
	// subject is the Cluster of most tests.
	subject = "prod"
)

// ours are the kinds that the function makes for a Cluster.
var ours = []kind.Resource{dockyards.Workloads, routes, dockyards.KubevirtClusters}

// world is a namespace that is a platform of its own: it holds the Gateway and the
// config map too.
type world struct {
	*suite.World
	settings dockyards.Settings
}

// bare is a platform without Gateway and config map.
func bare(t *testing.T) *world {
	t.Helper()
	w := &world{World: suit.World(t), settings: dockyards.DefaultSettings()}
	w.settings.GatewayNamespace, w.settings.GatewayName = w.NS, gateway
	w.settings.ConfigMapNamespace = w.NS
	return w
}

// newWorld is a platform with everything in place.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := bare(t)
	w.configMap("externalURL: https://example.com")
	w.gateway("{type: IPAddress, value: " + address + "}")
	return w
}

// configMap makes the shared config map with its data in YAML.
func (w *world) configMap(data string) {
	w.TB.Helper()
	w.Create(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {%s}}", w.settings.ConfigMapName, data))
}

// setConfigMap changes one key.
func (w *world) externalURL(value string) {
	w.TB.Helper()
	w.Patch(kind.ConfigMaps, w.settings.ConfigMapName, fmt.Sprintf("data: {externalURL: %q}", value))
}

// gateway makes the shared Gateway with addresses.
func (w *world) gateway(addresses ...string) {
	w.TB.Helper()
	w.Create("{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: " + gateway + "}, " +
		"spec: {gatewayClassName: test, listeners: [{name: api, port: 6443, protocol: TLS, tls: {mode: Passthrough}}]}}")
	w.addresses(addresses...)
}

func (w *world) addresses(addresses ...string) {
	w.TB.Helper()
	w.Patch(dockyards.Gateways, gateway, "status: {addresses: ["+strings.Join(addresses, ", ")+"]}", "status")
}

// cluster makes a Cluster.
func (w *world) cluster(name, spec string) *unstructured.Unstructured {
	w.TB.Helper()
	return w.Create(fmt.Sprintf("{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: %s}, spec: {%s}}", name, spec))
}

// capiCluster makes the Cluster API Cluster as dockyards-cluster-api does. Without an
// owner, its namespace and name alone tie it to a Cluster.
func (w *world) capiCluster(name string, owner *unstructured.Unstructured, spec string) *unstructured.Unstructured {
	w.TB.Helper()
	refs := ""
	if owner != nil {
		refs = fmt.Sprintf("{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: %s, uid: %s, controller: true, blockOwnerDeletion: true}", owner.GetName(), owner.GetUID())
	}
	if spec == "" {
		spec = "clusterNetwork: {serviceDomain: cluster.local}"
	}
	return w.Create(fmt.Sprintf("{apiVersion: %s, kind: Cluster, metadata: {name: %s, ownerReferences: [%s]}, spec: {%s}}", capis.APIVersion(), name, refs, spec))
}

// environment is a Cluster with its Cluster API Cluster.
func (w *world) environment(name string) *unstructured.Unstructured {
	w.TB.Helper()
	owner := w.cluster(name, "version: v1.34.1")
	w.capiCluster(name, owner, "")
	return owner
}

// anchor starts a copy of the function. The kinds that it is woken by are named in
// the version that is served.
func (w *world) anchor(options ...suite.Option) *suite.Copy {
	w.TB.Helper()
	return suite.Run(w.World, w.declared(), options...)
}

func (w *world) declared() reconcile.Function[decide.Input] {
	fn := clusteranchor.Declare(w.settings)
	for i := range fn.Spec.Watches {
		for _, res := range []kind.Resource{routes, capis} {
			if fn.Spec.Watches[i].Resource.String() == res.String() {
				fn.Spec.Watches[i].Resource = res
			}
		}
	}
	return fn
}

// converged hands a copy the event of a Cluster until it is done.
func (w *world) converged(f *suite.Copy, name string) {
	w.TB.Helper()
	f.Insist(w.Event(dockyards.Clusters, name))
}

// is wants a Cluster's condition to be "status reason".
func (w *world) is(name, conditionType, want string) {
	w.TB.Helper()
	cluster := w.Must(dockyards.Clusters, name)
	is, reason, message := suite.Condition(cluster, conditionType)
	if got := is + " " + reason; got != want {
		w.TB.Errorf("%s of Cluster %q is %q, want %q: %s", conditionType, name, got, want, message)
	}
}

func (w *world) endpointIs(name, want string) {
	w.TB.Helper()
	w.is(name, v1alpha3.ConditionAPIEndpointReconciled, want)
}

func (w *world) ingressIs(name, want string) {
	w.TB.Helper()
	w.is(name, v1alpha3.ConditionIngressWorkloadReconciled, want)
}

// says wants the message of a Cluster's condition to hold a text.
func (w *world) says(name, conditionType, want string) {
	w.TB.Helper()
	_, _, message := suite.Condition(w.Must(dockyards.Clusters, name), conditionType)
	if !strings.Contains(message, want) || (want == "" && message != "") {
		w.TB.Errorf("%s of Cluster %q says %q, want %q", conditionType, name, message, want)
	}
}

// host is the first label of a Cluster's host, under a hostname.
func (w *world) host(name, hostname string) string { return w.NS + "-" + name + "." + hostname }

// hostIs wants status and route to agree on a host; empty for none of both.
func (w *world) hostIs(name, want string) {
	w.TB.Helper()
	cluster := w.Must(dockyards.Clusters, name)
	if got := suite.Text(cluster, "status", "apiEndpoint", "host"); got != want {
		w.TB.Errorf("the host of Cluster %q is %q, want %q", name, got, want)
	}
	if port := suite.Text(cluster, "status", "apiEndpoint", "port"); want != "" && port != "6443" {
		w.TB.Errorf("the port of Cluster %q is %q", name, port)
	}
	route := w.Get(routes, name)
	if want == "" {
		if route != nil {
			w.TB.Errorf("Cluster %q has a route: %s", name, suite.Bytes(w.TB, route, "spec"))
		}
		return
	}
	if route == nil {
		w.TB.Errorf("Cluster %q has no route", name)
		return
	}
	if got := suite.Text(route, "spec", "hostnames"); got != "["+want+"]" {
		w.TB.Errorf("the route of Cluster %q leads to %s, want %s", name, got, want)
	}
}

// record is the hostname that a route's host was made from.
func (w *world) record(name string) string {
	w.TB.Helper()
	return w.Must(routes, name).GetAnnotations()[v1alpha3.AnnotationRolloutInputs]
}

// told are "reason: note" of the Kubernetes Events on a Cluster, sorted by name.
func (w *world) told(name string) []string {
	w.TB.Helper()
	list, err := w.In(kind.Events).List(w.TB.Context(), metav1.ListOptions{})
	if err != nil {
		w.TB.Fatal(err)
	}
	var all []string
	for i := range list.Items {
		if suite.Text(&list.Items[i], "regarding", "name") == name {
			all = append(all, suite.Text(&list.Items[i], "reason")+": "+suite.Text(&list.Items[i], "note"))
		}
	}
	return all
}

// tells wants an Event of a reason, so many times.
func (w *world) tells(name, reason string, want int) {
	w.TB.Helper()
	got := 0
	for _, line := range w.told(name) {
		if strings.HasPrefix(line, reason+": ") {
			got++
		}
	}
	if got != want {
		w.TB.Errorf("Cluster %q has %d Events %s, want %d: %v", name, got, reason, want, w.told(name))
	}
}

// same wants nothing to have changed since a snapshot.
func (w *world) same(before map[string]suite.Life, why string) {
	w.TB.Helper()
	if diff := cmp.Diff(before, w.Snapshot()); diff != "" {
		w.TB.Errorf("%s (-before +after):\n%s", why, diff)
	}
}

// events are those of everything that the subject's function is woken by.
func (w *world) events(name string) []cloudevents.Event {
	return []cloudevents.Event{
		w.Event(dockyards.Clusters, name), w.Event(capis, name), w.Event(dockyards.KubevirtClusters, name),
		w.Event(routes, name), w.Event(dockyards.Workloads, decide.WorkloadName(name)),
		w.Event(dockyards.Gateways, gateway), w.Event(kind.ConfigMaps, w.settings.ConfigMapName),
	}
}
