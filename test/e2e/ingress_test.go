package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/deploy/local/stack"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
)

const (
	tenant  = "acme"
	ingress = "shop-ingress-nginx"
	inside  = "ingress-nginx"
)

// ingressFixture is the stack with the environment of sample ingress.
type ingressFixture struct {
	*fixture
	there *stack.Remote
}

// TestALoadBalancerOfAWorkloadCluster is one story: each step goes on from the one
// before.
func TestALoadBalancerOfAWorkloadCluster(t *testing.T) {
	f := &ingressFixture{fixture: beginWith(t, stack.Options{Workloads: []string{tenant + "/shop"}})}
	f.there = f.Workloads[0]
	sample := filepath.Join(f.root, "deploy/samples/ingress")
	f.kubectl("apply", "-k", sample)
	f.kubectl("apply", "--server-side", "--subresource=status", "-k", filepath.Join(sample, "status"))
	f.says("before there is a load balancer", "True NoLoadBalancerService")
	f.connected(1)

	for _, step := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"a Service that becomes a load balancer has its route, by its event", f.becomes},
		{"a Service changes", f.changes},
		{"a Service goes", f.goes},
		{"the Gateway gets another address", f.gatewayMoves},
		{"the DNS zones change", f.zonesChange},
		{"the kubeconfig is rotated, and the one before is revoked", f.rotates},
		{"the connection is lost and comes back", f.isLost},
		{"the Cluster goes", f.clusterGoes},
	} {
		t.Run(step.name, func(t *testing.T) {
			f.t = t
			step.do(t)
		})
		if t.Failed() {
			return
		}
	}
}

// says waits until the Workload's condition is "status reason".
func (f *ingressFixture) says(what, want string) {
	f.t.Helper()
	f.eventually(what+": "+want, func() string {
		at := `.status.conditions[?(@.type=="WorkloadIngressReconciled")]`
		return differs(want, f.kubectl("get", "workloads", ingress, "-n", tenant, "--ignore-not-found", "-o", "jsonpath={"+at+".status} {"+at+".reason}"))
	})
}

// connected waits until the adapter has told so often that it watches the cluster.
func (f *ingressFixture) connected(times int) {
	f.t.Helper()
	f.eventually("the adapter to watch the workload cluster", func() string {
		if got := strings.Count(f.out.String(), "workload-router cluster.connected on "+f.there.Name+" -> 204"); got < times {
			return fmt.Sprintf("it said so %d times", got)
		}
		return ""
	})
}

// service makes a Service in the workload cluster.
func (f *ingressFixture) service(name, kindOf string) {
	f.t.Helper()
	objects, err := kube.Decode(strings.NewReader(fmt.Sprintf(`
{apiVersion: v1, kind: Namespace, metadata: {name: %s}}
---
apiVersion: v1
kind: Service
metadata: {name: %s, namespace: %s, labels: {dockyards.io/workload-name: %s}}
spec: {type: %s, ports: [{name: http, port: 80}, {name: https, port: 443}]}`, inside, name, inside, ingress, kindOf)))
	if err != nil {
		f.t.Fatal(err)
	}
	if err := kube.Apply(f.t.Context(), f.there.Cluster.Config, objects...); err != nil {
		f.t.Fatal(err)
	}
}

func (f *ingressFixture) patchInside(name, patch string) {
	f.t.Helper()
	if _, err := f.there.Client.Resource(dockyards.Services.GVR()).Namespace(inside).Patch(f.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// made are the mirrors and routes by "Kind name hostnames".
func (f *ingressFixture) made() []string {
	f.t.Helper()
	var all []string
	for _, res := range []kind.Resource{dockyards.Services, dockyards.HTTPRoutes, dockyards.TLSRoutes} {
		list, err := f.Client.Resource(res.GVR()).Namespace(tenant).List(f.t.Context(), metav1.ListOptions{})
		if err != nil {
			f.t.Fatal(err)
		}
		for i := range list.Items {
			if name, ours := strings.CutPrefix(list.Items[i].GetName(), ingress+"-"); ours {
				hosts, _, _ := unstructured.NestedStringSlice(list.Items[i].Object, "spec", "hostnames")
				all = append(all, strings.TrimSpace(res.Kind+" "+name+" "+strings.Join(hosts, " ")))
			}
		}
	}
	slices.Sort(all)
	return all
}

func (f *ingressFixture) becomesMade(what string, want ...string) {
	f.t.Helper()
	slices.Sort(want)
	f.eventually(what, func() string { return differs(strings.Join(want, ", "), strings.Join(f.made(), ", ")) })
}

// told waits until a Service in the workload cluster knows its address.
func (f *ingressFixture) told(name, address string) {
	f.t.Helper()
	f.eventually("the Service "+name+" to be told "+address, func() string {
		return differs(address, f.on(f.there, "get", "services", name, "-n", inside, "-o", "jsonpath={.status.loadBalancer.ingress[*].ip}"))
	})
}

// becomes turns Services into load balancers, one after the other. The times are
// reported, not judged: this machine may be busy. That it did not come by the clock is.
func (f *ingressFixture) becomes(t *testing.T) {
	routes, err := f.Client.Resource(dockyards.HTTPRoutes.GVR()).Namespace(tenant).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer routes.Stop()
	const rounds = 20
	var took []time.Duration
	for i := range rounds {
		name := fmt.Sprintf("round-%02d", i)
		f.service(name, "NodePort")
		before := len(f.out.String())
		started := time.Now()
		f.patchInside(name, `{"spec":{"type":"LoadBalancer"}}`)
		if !isThere(routes, ingress+"-"+name) {
			t.Fatalf("the route of %s did not come", name)
		}
		took = append(took, time.Since(started))
		if since := f.out.String()[before:]; strings.Contains(since, "resync") || strings.Contains(since, " ping ") {
			t.Logf("round %d: a resync came in between", i)
		}
		f.eventually("the line about the event", func() string {
			if strings.Contains(f.out.String()[before:], "Service "+inside+"/"+name+" on "+f.there.Name) {
				return ""
			}
			return f.out.String()[before:]
		})
	}
	for i := range rounds {
		f.on(f.there, "delete", "service", fmt.Sprintf("round-%02d", i), "-n", inside)
	}
	f.becomesMade("all of them to go")
	slices.Sort(took)
	t.Logf("from the patch in the workload cluster to the route beside the Gateway: p50 %s, p90 %s, max %s (n=%d, the function from zero at first)",
		took[rounds/2].Round(time.Millisecond), took[rounds*9/10].Round(time.Millisecond), took[rounds-1].Round(time.Millisecond), rounds)
}

// isThere waits until an object of a name is made.
func isThere(seen watch.Interface, name string) bool {
	deadline := time.After(patience)
	for {
		select {
		case event, open := <-seen.ResultChan():
			obj, ok := event.Object.(*unstructured.Unstructured)
			if !open || !ok {
				return false
			}
			if obj.GetName() == name && event.Type != watch.Deleted {
				return true
			}
		case <-deadline:
			return false
		}
	}
}

func (f *ingressFixture) changes(*testing.T) {
	f.service("front", "LoadBalancer")
	f.becomesMade("mirror and routes", "Service front", "HTTPRoute front *.shop.example.test", "TLSRoute front *.shop.example.test")
	f.told("front", "192.0.2.10")
	f.patchInside("front", `{"spec":{"ports":[{"name":"https","port":443}]}}`)
	f.becomesMade("the route of a port that is gone to go", "Service front", "TLSRoute front *.shop.example.test")
	f.patchInside("front", `{"spec":{"ports":[{"name":"https","port":443},{"name":"http","port":80}]}}`)
	f.becomesMade("it to come back", "Service front", "HTTPRoute front *.shop.example.test", "TLSRoute front *.shop.example.test")
	f.says("in the end", "True Reconciled")
}

func (f *ingressFixture) goes(*testing.T) {
	f.service("second", "LoadBalancer")
	f.becomesMade("a second one", "Service front", "HTTPRoute front *.shop.example.test", "TLSRoute front *.shop.example.test",
		"Service second", "HTTPRoute second *.shop.example.test", "TLSRoute second *.shop.example.test")
	f.on(f.there, "delete", "service", "second", "-n", inside)
	f.becomesMade("it to go", "Service front", "HTTPRoute front *.shop.example.test", "TLSRoute front *.shop.example.test")
}

func (f *ingressFixture) gatewayMoves(*testing.T) {
	f.kubectl("patch", "gateways.gateway.networking.k8s.io", "public", "-n", "dockyards-system", "--subresource=status", "--type=merge",
		"-p", `{"status":{"addresses":[{"type":"IPAddress","value":"198.51.100.7"}]}}`)
	f.told("front", "198.51.100.7")
}

func (f *ingressFixture) zonesChange(*testing.T) {
	zones := func(list string) {
		f.kubectl("patch", "clusters.dockyards.io", "shop", "-n", tenant, "--subresource=status", "--type=merge", "-p", `{"status":{"dnsZones":`+list+`}}`)
	}
	zones(`["Other.example.test.","more.example.test"]`)
	f.becomesMade("other hostnames", "Service front", "HTTPRoute front *.other.example.test *.more.example.test", "TLSRoute front *.other.example.test *.more.example.test")
	zones(`[]`)
	f.becomesMade("routes without a hostname to go", "Service front")
	f.says("without a zone", "False WaitingForDNSZones")
	zones(`["shop.example.test"]`)
	f.becomesMade("the routes", "Service front", "HTTPRoute front *.shop.example.test", "TLSRoute front *.shop.example.test")
}

// rotates hands over the kubeconfig of one account and then of another, and deletes
// the first.
func (f *ingressFixture) rotates(t *testing.T) {
	before := strings.Count(f.out.String(), "workload-router cluster.connected on "+f.there.Name)
	for i, account := range []string{"first", "second"} {
		f.on(f.there, "create", "serviceaccount", account, "-n", "default")
		f.on(f.there, "create", "clusterrolebinding", account, "--clusterrole=cluster-admin", "--serviceaccount=default:"+account)
		kubeconfig, err := f.there.Cluster.TokenKubeconfig(t.Context(), "default", account)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.HandOver(t.Context(), f.there, kubeconfig); err != nil {
			t.Fatal(err)
		}
		f.connected(before + i + 1)
	}
	f.on(f.there, "delete", "serviceaccount", "first", "-n", "default")
	f.service("rotated", "LoadBalancer")
	f.becomesMade("what comes after", "Service front", "HTTPRoute front *.shop.example.test", "TLSRoute front *.shop.example.test",
		"Service rotated", "HTTPRoute rotated *.shop.example.test", "TLSRoute rotated *.shop.example.test")
	f.on(f.there, "delete", "service", "rotated", "-n", inside)
	f.becomesMade("it to go", "Service front", "HTTPRoute front *.shop.example.test", "TLSRoute front *.shop.example.test")
}

// isLost stops the workload cluster's API server and starts it again.
func (f *ingressFixture) isLost(t *testing.T) {
	server, err := url.Parse(f.there.Cluster.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(server.Port())
	if err != nil {
		t.Fatal(err)
	}
	f.there.Cluster.Stop()
	f.says("while it is away", "Unknown ClusterUnreachable")
	// Nothing is taken away on a guess.
	f.becomesMade("all to stay", "Service front", "HTTPRoute front *.shop.example.test", "TLSRoute front *.shop.example.test")
	if f.there.Cluster, err = kube.Start(context.WithoutCancel(t.Context()), kube.Options{
		Name: "shop", Binary: filepath.Join(f.root, build.DefaultBin, "kube"), Dir: f.there.Cluster.Dir, Port: port, ControllerManager: true,
	}); err != nil {
		t.Fatal(err)
	}
	f.says("when it is back", "True Reconciled")
	f.on(f.there, "delete", "service", "front", "-n", inside)
	f.becomesMade("what is gone to go")
	f.service("back", "LoadBalancer")
	f.becomesMade("what is new", "Service back", "HTTPRoute back *.shop.example.test", "TLSRoute back *.shop.example.test")
	if strings.Contains(f.out.String(), "DEAD") {
		t.Error("events were given up")
	}
}

// clusterGoes takes the Cluster API Cluster away, and then the Cluster itself.
func (f *ingressFixture) clusterGoes(*testing.T) {
	watches := f.watches()
	f.kubectl("delete", "clusters.cluster.x-k8s.io", "shop", "-n", tenant)
	f.says("without a Cluster API Cluster", "False WaitingForCluster")
	f.eventually("the adapter to leave the workload cluster", func() string { return differs(fmt.Sprint(watches-1), fmt.Sprint(f.watches())) })
	f.kubectl("delete", "clusters.dockyards.io", "shop", "-n", tenant)
	f.becomesMade("all to go with the Cluster")
	f.eventually("the Workload to go", func() string {
		return differs("", f.kubectl("get", "workloads", ingress, "-n", tenant, "--ignore-not-found", "-o", "name"))
	})
}

// watches is how many watches of Services the workload cluster serves. Some are its own.
func (f *ingressFixture) watches() int {
	f.t.Helper()
	for line := range strings.Lines(f.on(f.there, "get", "--raw", "/metrics")) {
		if strings.HasPrefix(line, "apiserver_longrunning_requests{") && strings.Contains(line, `resource="services",scope="cluster"`) {
			fields := strings.Fields(line)
			n, err := strconv.Atoi(fields[len(fields)-1])
			if err != nil {
				f.t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// TestMakeRunWithAnIngress runs the command that the README names.
func TestMakeRunWithAnIngress(t *testing.T) {
	root, err := build.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "run", "SAMPLE=ingress", "ONCE=1")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"workload.dockyards.io/" + ingress, `["*.shop.example.test"]`, "tlsroute.gateway.networking.k8s.io/" + ingress + "-ingress-nginx-controller", "acme/shop:", "192.0.2.10",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the tables do not show %s:\n%s", want, out)
		}
	}
}
