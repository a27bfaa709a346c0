package router

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

var waitingScenarios = []scenario{
	{"everything that can be awaited", awaited},
	{"Workloads that are not the function's", ignored},
	{"no Gateway is configured", unconfigured},
	{"the workload cluster is lost and comes back", lostAndBack},
	{"a dead workload cluster costs one attempt", oneAttempt},
	{"the kubeconfig is rotated", rotated},
	{"a kubeconfig that is not allowed", refusedKubeconfig},
	{"the workload cluster refuses", refuses},
	{"the Cluster goes", clusterGoes},
	{"the management cluster fails", managementFails},
}

// awaited: section 9, the preconditions in their order, each with its condition.
func awaited(x *tenant) {
	x.service(x.there, "front", webPorts)
	capi := func(body string) func() {
		return func() { x.Patch(dockyards.CAPIClusters, x.cluster, body, "status") }
	}
	for _, step := range []struct {
		name, want, says string
		do               func()
		event            func()
	}{
		{name: "owner and label differ", want: "False WaitingForCluster", says: "let both name the same", do: func() {
			x.Patch(dockyards.Workloads, x.workload, `{metadata: {labels: {dockyards.io/cluster-name: other}}}`)
		}, event: x.settle},
		{name: "no Cluster API Cluster", want: "False WaitingForCluster", says: "no Cluster API Cluster", do: func() {
			x.Patch(dockyards.Workloads, x.workload, `{metadata: {labels: {dockyards.io/cluster-name: `+x.cluster+`}}}`)
			x.Remove(dockyards.CAPIClusters, x.cluster)
		}},
		{name: "a new one", want: "False WaitingForControlPlane", says: "infrastructure", do: func() {
			x.Create(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: ` + x.cluster + `}, spec: {paused: false}}`)
		}},
		{
			name: "control plane not initialized", want: "False WaitingForControlPlane", says: "control plane",
			do: capi(`{status: {initialization: {infrastructureProvisioned: true}, conditions: [{type: ControlPlaneInitialized, status: "False", reason: NotInitialized, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`),
		},
		{name: "all well", want: "True Reconciled", do: capi(`{status: {conditions: [{type: ControlPlaneInitialized, status: "True", reason: Initialized, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`)},
		{name: "no kubeconfig", want: "Unknown ClusterUnreachable", says: `create it with the kubeconfig under key "value"`, do: func() {
			x.Remove(kind.Secrets, "prod-kubeconfig")
		}, event: func() { x.f.Insist(suite.Changed("delete", "v1", "Secret", x.NS, "prod-kubeconfig")) }},
		{name: "a kubeconfig", want: "True Reconciled", do: func() { x.kubeconfig(x.cluster, x.credential()) }, event: func() {
			x.f.Insist(x.Event(kind.Secrets, "prod-kubeconfig"))
		}},
		{name: "no Gateway", want: "False WaitingForGateway", says: "does not exist", do: func() { x.Remove(dockyards.Gateways, "shared") }, event: func() {
			x.f.Insist(suite.Changed("delete", dockyards.Gateways.APIVersion(), "Gateway", x.NS, "shared"))
		}},
	} {
		step.do()
		if step.event == nil {
			x.f.Insist(suite.Changed("update", dockyards.CAPIClusters.APIVersion(), "Cluster", x.NS, x.cluster))
		} else {
			step.event()
		}
		x.says(step.want, step.says)
		x.rests()
		if x.t.Failed() {
			x.t.Fatalf("that was %q", step.name)
		}
	}
	if len(x.made()) != 3 {
		x.t.Errorf("what was made stays: %v", x.made())
	}
}

// ignored: no label, being deleted, and workload-ingress=false.
func ignored(x *tenant) {
	x.service(x.there, "front", webPorts)
	for name, do := range map[string]func(){
		"no label": func() {
			x.Patch(dockyards.Workloads, x.workload, `{metadata: {labels: {dockyards.io/cluster-name: null}}}`)
		},
		"no ingress": func() { x.settings.WorkloadIngress = false },
		"going": func() {
			x.Patch(dockyards.Workloads, x.workload, `{metadata: {finalizers: [test/hold]}}`)
			x.Remove(dockyards.Workloads, x.workload)
		},
	} {
		settings := x.settings
		do()
		x.run()
		x.settle()
		if made := x.made(); len(made) != 0 || x.Condition(dockyards.Workloads, x.workload, condition) != "" {
			x.t.Errorf("%s: made are %v, the condition is %q", name, made, x.Condition(dockyards.Workloads, x.workload, condition))
		}
		x.settings = settings
		if name != "going" {
			x.Patch(dockyards.Workloads, x.workload, `{metadata: {labels: {dockyards.io/cluster-name: `+x.cluster+`}}}`)
			continue
		}
		x.Patch(dockyards.Workloads, x.workload, `{metadata: {finalizers: null}}`)
		x.newWorkload(x.workload, x.cluster)
	}
	x.run()
	x.settle()
	x.says("True Reconciled", "")
}

func unconfigured(x *tenant) {
	x.settings.GatewayName = ""
	x.run()
	x.settle()
	x.says("False WaitingForGateway", "GATEWAY_NAME")
}

// lostAndBack: WR2, WR14: nothing is pruned, nobody waits, the adapter's event brings
// it back.
func lostAndBack(x *tenant) {
	server, err := url.Parse(x.proxy.URL)
	if err != nil {
		x.t.Fatal(err)
	}
	x.settings.RemoteTimeout = time.Second
	x.run()
	way := suite.NewWay(x.t, server.Host)
	x.kubeconfig(x.cluster, suite.Redirect(x.t, x.credential(), "https://"+way.Address, nil))
	x.service(x.there, "front", webPorts)
	x.settle()
	x.says("True Reconciled", "")
	before := x.Lives()
	for name, cut := range map[string]func(){"cut": way.Cut, "stalled": way.Stall} {
		cut()
		x.there.Remove(dockyards.Services, "front")
		started := time.Now()
		if got := x.f.Send(suite.Cluster(event.TypeDisconnected, x.remoteName())); got != http.StatusNoContent {
			x.t.Errorf("WR2, %s: the event was answered %d", name, got)
		}
		if took := time.Since(started); took > x.settings.RemoteTimeout+5*time.Second {
			x.t.Errorf("WR2, %s: one attempt took %s", name, took)
		}
		x.says("Unknown ClusterUnreachable", "does not answer")
		x.f.Insist(x.remoteEvent("delete", x.NS, "front"))
		x.f.Asked()
		x.settle()
		if _, writes := x.f.Asked(); len(writes) > 0 {
			x.t.Errorf("WR14, %s: it writes %v", name, writes)
		}
		for key, uid := range before {
			if x.Lives()[key] != uid {
				x.t.Errorf("WR14, %s: %s is gone", name, key)
			}
		}
		way.Cut()
		way.Open()
		x.service(x.there, "front", webPorts)
		x.f.Insist(suite.Cluster(event.TypeConnected, x.remoteName()))
		x.says("True Reconciled", "")
	}
	x.rests()
}

// oneAttempt: however the workload cluster fails, one event asks it once, and soon
// gives up.
func oneAttempt(x *tenant) {
	const idle = 6 // connections that the Workloads have left
	x.service(x.there, "front", webPorts)
	x.settle()
	for i := range 5 {
		name := "more-" + string(rune('a'+i)) + "-" + x.NS
		x.newWorkload(name, x.cluster)
	}
	for name, fail := range map[string]func(*http.Request) (*http.Response, error){
		"503":          suite.Status(http.StatusServiceUnavailable),
		"401":          suite.Status(http.StatusUnauthorized),
		"later please": retryAfter(http.StatusTooManyRequests),
		"later":        retryAfter(http.StatusServiceUnavailable),
		"nothing":      func(*http.Request) (*http.Response, error) { panic(http.ErrAbortHandler) },
	} {
		var asked atomic.Int32
		x.proxy.Before(func(req *http.Request) (*http.Response, error) {
			asked.Add(1)
			return fail(req)
		})
		started := time.Now()
		x.f.Insist(suite.Cluster(event.TypeDisconnected, x.remoteName()))
		if took := time.Since(started); took > 10*time.Second {
			x.t.Errorf("WR2, %s: six Workloads took %s", name, took)
		}
		x.says("Unknown ClusterUnreachable", "")
		count := int(asked.Load())
		// One Workload asks for all. A cluster that answers 429 is there: each Workload
		// asks it once. Connections that break while they are used once more may just
		// have been old ones: then the same request goes out on the next one.
		most := 1
		switch name {
		case "later please":
			most = 6
		case "nothing":
			most = 1 + idle
		}
		if count > most {
			x.t.Errorf("WR2, %s: the workload cluster was asked %d times", name, count)
		}
	}
	x.proxy.Before(x.count)
	x.f.Insist(suite.Cluster(event.TypeConnected, x.remoteName()))
	x.says("True Reconciled", "")
}

// retryAfter is a server that wants to be asked again.
func retryAfter(code int) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		resp := suite.Answer(req, code)
		resp.Header.Set("Retry-After", "7")
		return resp, nil
	}
}

// rotated: a new kubeconfig counts from the next event on.
func rotated(x *tenant) {
	x.service(x.there, "front", webPorts)
	x.kubeconfig(x.cluster, []byte(strings.Replace(string(x.credential()), "token: ", "token: x", 1)))
	x.f.Insist(x.Event(kind.Secrets, "prod-kubeconfig"))
	x.says("Unknown ClusterUnreachable", "does not answer")
	x.kubeconfig(x.cluster, x.credential())
	x.f.Insist(x.Event(kind.Secrets, "prod-kubeconfig"))
	x.says("True Reconciled", "")
	x.f.Insist(x.Event(kind.Secrets, "other-kubeconfig"))
	if got := x.f.Send(x.Event(kind.Secrets, "prod-ca")); got != http.StatusNoContent {
		x.t.Errorf("another Secret of the cluster was answered %d", got)
	}
}

// refusedKubeconfig: WR2, it runs no program and reads no file.
func refusedKubeconfig(x *tenant) {
	good := string(x.credential())
	for name, content := range map[string]string{
		"exec":      strings.Replace(good, "token: ", "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/false}\n    password: ", 1),
		"tokenFile": strings.Replace(good, "token: ", "tokenFile: /etc/", 1),
		"nothing":   "no kubeconfig",
	} {
		x.kubeconfig(x.cluster, []byte(content))
		x.settle()
		x.says("Unknown ClusterUnreachable", "refused")
		if log := x.f.Log.String(); strings.Contains(log, strings.TrimSpace(strings.SplitN(strings.SplitN(good, "token: ", 2)[1], "\n", 2)[0])) {
			x.t.Errorf("X19, %s: the log holds the credential", name)
		}
	}
	x.kubeconfig(x.cluster, x.credential())
	x.settle()
	x.says("True NoLoadBalancerService", "")
}

// refuses: a tenant who takes the function's rights away.
func refuses(x *tenant) {
	x.service(x.there, "front", webPorts)
	x.service(x.there, "back", webPorts)
	x.settle()
	x.proxy.Before(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "/front/") {
			return suite.Answer(req, http.StatusForbidden), nil
		}
		return nil, nil
	})
	x.gateway(`{type: IPAddress, value: 198.51.100.9}`)
	x.settle()
	x.says("False ErrorReconciling", "refuses with code 403")
	if got := ingress(x.there.Must(dockyards.Services, "back")); !slices.Equal(got, []string{"198.51.100.9"}) {
		x.t.Errorf("X13: the other Service is told %v", got)
	}
	x.proxy.Before(suite.Status(http.StatusForbidden))
	before := x.made()
	x.settle()
	x.says("False ErrorReconciling", "cannot list services: the workload cluster refuses with code 403")
	if !slices.Equal(before, x.made()) {
		x.t.Errorf("WR14: left are %v of %v", x.made(), before)
	}
	x.rests()
	x.wantEvent("ErrorReconciling")
}

// clusterGoes: X9.
func clusterGoes(x *tenant) {
	x.service(x.there, "front", webPorts)
	x.settle()
	before := x.made()
	for _, res := range []kind.Resource{dockyards.CAPIClusters, dockyards.Clusters} {
		x.Patch(res, x.cluster, `{metadata: {finalizers: [test/hold]}}`)
		x.Remove(res, x.cluster)
		x.f.Insist(suite.Changed("update", res.APIVersion(), res.Kind, x.NS, x.cluster))
		x.says("False WaitingForCluster", "is being deleted")
		x.there.Patch(dockyards.Services, "front", `{spec: {ports: [{name: n`+res.Plural[:2]+`, port: 99}]}}`)
		x.f.Insist(x.remoteEvent("update", x.NS, "front"))
		if !slices.Equal(before, x.made()) {
			x.t.Errorf("X9: there are %v, were %v", x.made(), before)
		}
	}
	x.rests()
	for _, res := range []kind.Resource{dockyards.CAPIClusters, dockyards.Clusters} {
		x.Patch(res, x.cluster, `{metadata: {finalizers: null}}`)
		x.Await(res, x.cluster, "to go", suite.Gone)
		x.f.Insist(suite.Changed("delete", res.APIVersion(), res.Kind, x.NS, x.cluster))
	}
	x.says("False WaitingForCluster", "does not exist")
	x.rests()
}

// managementFails: X16. What cannot be read or written is told and tried again.
func managementFails(x *tenant) {
	x.service(x.there, "front", webPorts)
	for name, c := range map[string]struct {
		method, resource string
		says             string
	}{
		"a read":  {method: http.MethodGet, resource: "/configmaps/", says: "configmaps"},
		"a list":  {method: http.MethodGet, resource: "/clusters?", says: "clusters.dockyards.io"},
		"a write": {method: http.MethodPost, resource: "/httproutes?", says: "create httproutes"},
	} {
		for _, code := range []int{http.StatusForbidden, http.StatusServiceUnavailable} {
			x.run(suite.WithConfig(x.Env.As(x.t, suite.Home, "workload-router")), suite.WithTap(func(call suite.Call) (*http.Response, error) {
				if call.HTTP.Method == c.method && strings.Contains(call.HTTP.URL.Path+"?", c.resource) {
					return suite.Answer(call.HTTP, code), nil
				}
				return nil, nil
			}))
			if got := x.f.Send(x.Event(dockyards.Workloads, x.workload)); got != http.StatusServiceUnavailable {
				x.t.Errorf("X16, %s, %d: it was answered %d", name, code, got)
			}
			x.says("False ErrorReconciling", c.says)
		}
	}
	if made := x.made(); !slices.Contains(made, "TLSRoute/"+x.workload+"-front") {
		x.t.Errorf("X13: what could be written is %v", made)
	}
	x.run()
	x.settle()
	x.says("True Reconciled", "")
	x.rests()
}

// wantEvent wants a Kubernetes Event with a reason.
func (x *tenant) wantEvent(reason string) {
	x.t.Helper()
	list, err := x.In(kind.Events).List(x.t.Context(), metav1.ListOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	for _, e := range list.Items {
		if suite.Text(&e, "reason") == reason {
			return
		}
	}
	x.t.Errorf("X18: no Kubernetes Event tells of %s", reason)
}
