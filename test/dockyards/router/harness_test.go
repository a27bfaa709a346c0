package router

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	workloadrouter "github.com/slipway-dev/slipway/functions/workload-router"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	kubetest "github.com/slipway-dev/slipway/test/kube"
	"github.com/slipway-dev/slipway/test/suite"
)

const (
	condition = "WorkloadIngressReconciled"
	// address is the Gateway's at first.
	address = "192.0.2.10"
)

var suit = suite.New(suite.Options{
	Specs:   []reconcile.Spec{workloadrouter.DefaultSpec()},
	CRDs:    []string{crds.ClusterAPI, crds.GatewayAPI},
	Files:   []string{"api/dockyards/crds"},
	Kinds:   []kind.Resource{dockyards.Workloads, dockyards.Clusters, dockyards.CAPIClusters, dockyards.Services, dockyards.HTTPRoutes, dockyards.TLSRoutes},
	Others:  []kind.Resource{kind.CRDs},
	Servers: 2,
	Plain:   plain,
})

// plain takes out the addresses that the API server draws by lot.
func plain(obj *unstructured.Unstructured) {
	for _, field := range []string{"clusterIP", "clusterIPs"} {
		unstructured.RemoveNestedField(obj.Object, "spec", field)
	}
}

func TestMain(m *testing.M) { os.Exit(suit.Main(m)) }

// tenant is one Cluster with one Workload: a namespace of the management cluster, and
// the workload cluster behind a proxy.
type tenant struct {
	*suite.World
	t *testing.T
	// there is the workload cluster, seen from the Workload's target namespace.
	there *suite.World
	proxy *suite.Proxy
	f     *suite.Copy
	// workload and cluster are names; both differ from those of other tests.
	workload, cluster string
	settings          workloadrouter.Settings

	*calls
}

// calls are those that the function makes to the workload cluster.
type calls struct {
	mu   sync.Mutex
	list []kubetest.Request
}

// count keeps a call.
func (c *calls) count(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, kubetest.ParseRequest(req))
	return nil, nil
}

// asked are the calls since the last time.
func (c *calls) asked() (reads, writes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.list {
		if call.Write() {
			writes = append(writes, call.String())
			continue
		}
		reads = append(reads, call.String())
	}
	c.list = nil
	return reads, writes
}

// TestAWorkloadCluster goes through all that needs a workload cluster: one second API
// server is enough, since every scenario has a Workload and namespaces of its own.
func TestAWorkloadCluster(t *testing.T) {
	first := suit.World(t)
	remote := suit.Remote(t, first)
	for _, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) { scenario.do(newTenant(t, suit.World(t), remote)) })
	}
	for _, scenario := range versions {
		t.Run(scenario.name, func(t *testing.T) { scenario.do(t, remote) })
	}
}

type scenario struct {
	name string
	do   func(x *tenant)
}

var scenarios = slices.Concat(serviceScenarios, zoneScenarios, waitingScenarios, hostileScenarios, takeoverScenarios, eventScenarios)

func newTenant(t *testing.T, here, remote *suite.World, options ...suite.Option) *tenant {
	t.Helper()
	x := &tenant{World: here, t: t, calls: &calls{}, workload: "web-" + here.NS, cluster: "prod"}
	x.there = at(t, remote, here.NS)
	x.namespace(here.NS)
	x.settings = workloadrouter.DefaultSettings()
	x.settings.GatewayNamespace, x.settings.GatewayName = here.NS, "shared"
	x.settings.ConfigMapNamespace = here.NS
	x.settings.RemoteTimeout = 3 * time.Second
	x.proxy = suite.NewProxy(t, remote.Env.Config)
	x.proxy.Before(x.count)
	x.Create(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared}
spec: {gatewayClassName: test, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: dockyards-system}
data: {externalURL: "https://cloud.example"}
`)
	x.gateway(`{type: IPAddress, value: ` + address + `}`)
	x.newCluster(x.cluster, "shop.example.")
	x.kubeconfig(x.cluster, x.credential())
	x.newWorkload(x.workload, x.cluster)
	x.run(options...)
	return x
}

func at(t *testing.T, w *suite.World, namespace string) *suite.World {
	other := w.At(namespace)
	other.TB = t
	return other
}

// run starts a copy of the function with the settings as they are.
func (x *tenant) run(options ...suite.Option) {
	x.t.Helper()
	options = append(options, suite.WithOptions(func(o *reconcile.Options) {
		set := workloadrouter.Options(x.settings)
		o.Parallel, o.RemoteTimeout, o.RemoteAnswer = set.Parallel, set.RemoteTimeout, set.RemoteAnswer
	}))
	x.f = suite.Run(x.World, workloadrouter.Declare(x.settings), options...)
}

// namespace makes a namespace in the workload cluster.
func (x *tenant) namespace(name string) *suite.World {
	x.t.Helper()
	w := at(x.t, x.there, name)
	if w.Get(kind.Namespaces, name) == nil {
		w.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
	}
	return w
}

// credential is a kubeconfig of the function's account in the workload cluster,
// which has the generated rights there and no others.
func (x *tenant) credential() []byte {
	x.t.Helper()
	content, err := x.there.Env.Cluster.TokenKubeconfig(x.t.Context(), suite.Home, workloadrouter.Name)
	if err != nil {
		x.t.Fatal(err)
	}
	return suite.Redirect(x.t, content, x.proxy.URL, x.proxy.CA)
}

// kubeconfig puts a kubeconfig where Cluster API does.
func (x *tenant) kubeconfig(cluster string, content []byte) {
	x.t.Helper()
	name := cluster + "-kubeconfig"
	if x.Get(kind.Secrets, name) == nil {
		x.Create(`{apiVersion: v1, kind: Secret, type: cluster.x-k8s.io/secret, metadata: {name: ` + name + `, labels: {cluster.x-k8s.io/cluster-name: ` + cluster + `}}}`)
	}
	x.Patch(kind.Secrets, name, fmt.Sprintf(`{data: {value: null}, stringData: {value: %q}}`, content))
}

// newCluster makes a Cluster with its zones, and the Cluster API Cluster beside it.
func (x *tenant) newCluster(name string, zones ...string) {
	x.t.Helper()
	x.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: ` + name + `}, spec: {}}`)
	x.zones(name, zones...)
	x.Create(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: ` + name + `}, spec: {paused: false}}`)
	x.Patch(dockyards.CAPIClusters, name, `{status: {initialization: {infrastructureProvisioned: true, controlPlaneInitialized: true}}}`, "status")
}

func (x *tenant) zones(cluster string, zones ...string) {
	x.t.Helper()
	quoted := make([]string, 0, len(zones))
	for _, zone := range zones {
		quoted = append(quoted, fmt.Sprintf("%q", zone))
	}
	x.Patch(dockyards.Clusters, cluster, `{status: {dnsZones: [`+strings.Join(quoted, ",")+`]}}`, "status")
}

// newWorkload makes a Workload of a Cluster, into the namespace that is called like
// the tenant's own.
func (x *tenant) newWorkload(name, cluster string) {
	x.t.Helper()
	uid := x.Must(dockyards.Clusters, cluster).GetUID()
	x.Create(fmt.Sprintf(`
apiVersion: dockyards.io/v1alpha3
kind: Workload
metadata:
  name: %s
  labels: {dockyards.io/cluster-name: %s}
  ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: %s, uid: %s}]
spec: {provenience: Dockyards, targetNamespace: %s}`, name, cluster, cluster, uid, x.NS))
}

// gateway sets the Gateway's addresses.
func (x *tenant) gateway(addresses ...string) {
	x.t.Helper()
	x.Patch(dockyards.Gateways, "shared", `{status: {addresses: [`+strings.Join(addresses, ",")+`]}}`, "status")
}

const webPorts = `[{name: http, port: 80}, {name: https, port: 443}]`

// service makes a load balancer for the Workload in a namespace of the workload
// cluster. Node ports are given out by the API server.
func (x *tenant) service(w *suite.World, name, ports string) *unstructured.Unstructured {
	x.t.Helper()
	return w.Create(`{apiVersion: v1, kind: Service, metadata: {name: ` + name + `, labels: {dockyards.io/workload-name: ` + x.workload + `}}, spec: {type: LoadBalancer, ports: ` + ports + `}}`)
}

// remoteEvent is what the adapter sends of a Service of the workload cluster.
func (x *tenant) remoteEvent(what, namespace, name string) cloudevents.Event {
	ce := suite.Changed(what, "v1", "Service", namespace, name)
	ce.SetExtension(event.ExtCluster, x.remoteName())
	return ce
}

func (x *tenant) remoteName() string { return x.NS + "/" + x.cluster }

// settle hands the function the Workload's event until it is done.
func (x *tenant) settle() {
	x.t.Helper()
	x.f.Insist(x.Event(dockyards.Workloads, x.workload))
}

// rests wants nothing at all to be written any more, here or there.
func (x *tenant) rests() {
	x.t.Helper()
	x.asked()
	x.f.Rests(x.Event(dockyards.Workloads, x.workload), x.Event(dockyards.Clusters, x.cluster))
	if _, writes := x.asked(); len(writes) > 0 {
		x.t.Errorf("at the fixpoint the workload cluster is written: %v", writes)
	}
}

// says wants "status reason" of the condition and a text in its message.
func (x *tenant) says(want, text string) {
	x.t.Helper()
	is, reason, message := suite.Condition(x.Must(dockyards.Workloads, x.workload), condition)
	if is+" "+reason != want || !strings.Contains(message, text) {
		x.t.Errorf("the condition is %s %s (%s), want %s (%s); the log:\n%s", is, reason, message, want, text, x.f.Log)
	}
}

// mirror is the Service on the management cluster.
func (x *tenant) mirror(service string) *unstructured.Unstructured {
	x.t.Helper()
	return x.Must(dockyards.Services, x.workload+"-"+service)
}

// ports are those of a Service: "name 80/TCP>30080", sorted.
func ports(obj *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(obj.Object, "spec", "ports")
	var out []string
	for _, item := range list {
		p, _ := item.(map[string]any)
		out = append(out, fmt.Sprintf("%v %v/%v>%v", p["name"], p["port"], p["protocol"], p["targetPort"]))
	}
	slices.Sort(out)
	return out
}

// wanted are the ports that a mirror of a Service has.
func wanted(service *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	var out []string
	for _, item := range list {
		p, _ := item.(map[string]any)
		out = append(out, fmt.Sprintf("%v %v/%v>%v", p["name"], p["port"], p["protocol"], p["nodePort"]))
	}
	slices.Sort(out)
	return out
}

func hostnames(route *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedStringSlice(route.Object, "spec", "hostnames")
	return list
}

// ingress are the addresses in a Service's status.
func ingress(service *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(service.Object, "status", "loadBalancer", "ingress")
	var out []string
	for _, item := range list {
		entry, _ := item.(map[string]any)
		for _, field := range []string{"ip", "hostname"} {
			if value, ok := entry[field]; ok {
				out = append(out, fmt.Sprint(value))
			}
		}
	}
	return out
}

// admin is the configuration of an administrator of a world's server.
func admin(w *suite.World) *rest.Config { return rest.CopyConfig(w.Env.Config) }

// made are all objects of the Workload by "Kind/name".
func (x *tenant) made() []string {
	x.t.Helper()
	var names []string
	for key, obj := range x.Objects() {
		if len(obj.GetOwnerReferences()) > 0 && obj.GetOwnerReferences()[0].Kind == "Workload" {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}
