package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

func stamp(seconds int) metav1.Time { return metav1.Unix(1_800_000_000+int64(seconds), 0) }

func TestAServiceGetsMirrorAndRoutes(t *testing.T) {
	in := newInput(t, "shop.example.")
	in.Remote.Services = []unstructured.Unstructured{remoteService(t, "target", "front", web)}
	want := []string{"create services team/web-front", "create httproutes.gateway.networking.k8s.io team/web-front", "create tlsroutes.gateway.networking.k8s.io team/web-front"}
	if diff := cmp.Diff(want, planned(in)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for i, golden := range []string{`
apiVersion: v1
kind: Service
metadata:
  name: web-front
  namespace: team
  ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Workload, name: web, uid: workload}]
spec:
  selector: {cluster.x-k8s.io/cluster-name: prod, cluster.x-k8s.io/role: worker}
  ports:
  - {name: http, port: 80, protocol: TCP, targetPort: 30080}
  - {name: https, port: 443, protocol: TCP, targetPort: 30443}
`, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web-front
  namespace: team
  ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Workload, name: web, uid: workload}]
spec:
  hostnames: ["*.shop.example"]
  parentRefs: [{name: shared, namespace: gateways}]
  rules: [{backendRefs: [{name: web-front, port: 80}]}]
`} {
		var expected map[string]any
		if err := yaml.Unmarshal([]byte(golden), &expected); err != nil {
			t.Fatal(err)
		}
		got, err := yaml.Marshal(entries(in)[i].Object.Object)
		if err != nil {
			t.Fatal(err)
		}
		var plain map[string]any
		if err := yaml.Unmarshal(got, &plain); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected, plain); diff != "" {
			t.Errorf("WR4, WR8 (-want +got):\n%s", diff)
		}
	}
	if got := planned(settled(t, in)); len(got) > 0 {
		t.Errorf("X7: at the fixpoint it plans %v", got)
	}
}

func TestWhatIsAwaited(t *testing.T) {
	condition := func(in *Input, version, status string) {
		in.CAPICluster = object(t, `{apiVersion: cluster.x-k8s.io/`+version+`, kind: Cluster, metadata: {name: prod, namespace: team}, status: `+status+`}`)
	}
	for name, c := range map[string]struct {
		reason   string
		do       func(in *Input)
		want     string
		says     string
		class    plan.Class
		connects bool
	}{
		"all there": {reason: "section 9", want: "True NoLoadBalancerService", do: func(*Input) {}, class: plan.Done, connects: true},
		"no Cluster": {reason: "an owner that is gone", want: "False WaitingForCluster", says: `Cluster "prod" does not exist`, class: plan.Waiting, do: func(in *Input) {
			in.Clusters = nil
		}},
		"no Cluster API Cluster": {reason: "it is not made yet", want: "False WaitingForCluster", class: plan.Waiting, do: func(in *Input) { in.CAPICluster = nil }},
		"a Cluster that goes": {reason: "X9", want: "False WaitingForCluster", says: "being deleted", class: plan.Waiting, do: func(in *Input) {
			at := stamp(0)
			in.Clusters[0].SetDeletionTimestamp(&at)
		}},
		"v1beta1 ready": {reason: "section 15", want: "True NoLoadBalancerService", class: plan.Done, connects: true, do: func(in *Input) {
			condition(in, "v1beta1", `{infrastructureReady: true, conditions: [{type: ControlPlaneInitialized, status: "True"}]}`)
		}},
		"v1beta1 not ready": {reason: "section 15", want: "False WaitingForControlPlane", class: plan.Waiting, do: func(in *Input) {
			condition(in, "v1beta1", `{infrastructureReady: false}`)
		}},
		"v1beta2 not ready": {reason: "section 15", want: "False WaitingForControlPlane", class: plan.Waiting, do: func(in *Input) { condition(in, "v1beta2", `{}`) }},
		"control plane unknown": {reason: "only False counts", want: "True NoLoadBalancerService", class: plan.Done, connects: true, do: func(in *Input) {
			condition(in, "v1beta2", `{initialization: {infrastructureProvisioned: true}, conditions: [{type: ControlPlaneInitialized, status: Unknown}]}`)
		}},
		"control plane False": {reason: "only False counts", want: "False WaitingForControlPlane", class: plan.Waiting, do: func(in *Input) {
			condition(in, "v1beta1", `{infrastructureReady: true, conditions: [{type: ControlPlaneInitialized, status: "False"}]}`)
		}},
		"no Gateway":                  {reason: "it may come", want: "False WaitingForGateway", class: plan.Waiting, do: func(in *Input) { in.Gateway = nil }},
		"a Gateway without addresses": {reason: "it may get one", want: "False WaitingForGatewayAddress", class: plan.Waiting, do: func(in *Input) { in.Gateway.Object["status"] = map[string]any{} }},
		"no kubeconfig": {reason: "Cluster API makes it", want: "Unknown ClusterUnreachable", says: "no Secret", class: plan.Waiting, connects: true, do: func(in *Input) {
			in.Remote.Connection = plan.Connection{Refused: plan.SecretNotFound, Message: "there is no Secret"}
		}},
		"silence": {reason: "WR2; why changes from one attempt to the next", want: "Unknown ClusterUnreachable", says: `the API server of workload cluster "prod" does not answer`, class: plan.Waiting, connects: true, do: func(in *Input) {
			in.Remote.Fault = &fault.Fault{Class: fault.Unavailable, Cluster: "team/prod", Call: "list services", Message: "read tcp 127.0.0.1:53412: reset"}
		}},
		"refused there": {reason: "the tenant's rights are the tenant's", want: "False ErrorReconciling", says: "refuses with code 403", class: plan.Waiting, connects: true, do: func(in *Input) {
			in.Remote.Fault = &fault.Fault{Class: fault.Refused, Code: 403, Cluster: "team/prod", Call: "list services", Message: "call me"}
		}},
		"a read refused here": {reason: "X16", want: "False ErrorReconciling", says: "cannot list services: no", class: plan.Retry, do: func(in *Input) {
			in.Faults = []fault.Fault{{Class: fault.Refused, Code: 403, Call: "list services", Message: "no"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t, "shop.example")
			c.do(&in)
			is, message := concluded(in)
			if is != c.want || !strings.Contains(message, c.says) {
				t.Errorf("%s: the condition is %s (%s), want %s (%s)", c.reason, is, message, c.want, c.says)
			}
			if got := Conclude(time.Time{}, in, nil, nil).Class; got != c.class {
				t.Errorf("%s: the class is %s, want %s", c.reason, got, c.class)
			}
			if got := Connects(in); got != c.connects {
				t.Errorf("%s: the workload cluster is asked: %t", c.reason, got)
			}
			if got := planned(in); len(got) > 0 {
				t.Errorf("%s: it plans %v", c.reason, got)
			}
		})
	}
}

func TestPorts(t *testing.T) {
	for name, c := range map[string]struct {
		reason, ports string
		want          []string
		says          string
	}{
		"two protocols":   {reason: "WR5", ports: `[{name: a, port: 53, nodePort: 1, protocol: UDP}, {name: b, port: 53, nodePort: 2}]`, want: []string{"53/UDP", "53/TCP"}},
		"no node port":    {reason: "WR5", ports: `[{name: a, port: 80}, {name: b, port: 81, nodePort: 2}]`, want: []string{"81/TCP"}, says: "port 80/TCP has no node port"},
		"a single one":    {reason: "it needs no name", ports: `[{port: 80, nodePort: 1}]`, want: []string{"80/TCP"}},
		"a nameless one":  {reason: "the API server would refuse all", ports: `[{name: a, port: 80, nodePort: 1}, {port: 81, nodePort: 2}]`, want: []string{"80/TCP"}, says: "port 81/TCP has no name"},
		"the same twice":  {reason: "the API server would refuse all", ports: `[{name: a, port: 80, nodePort: 1}, {name: b, port: 80, nodePort: 2}]`, want: []string{"80/TCP"}, says: "is there twice"},
		"one name twice":  {reason: "the API server would refuse all", ports: `[{name: a, port: 80, nodePort: 1}, {name: a, port: 81, nodePort: 2}]`, want: []string{"80/TCP"}, says: "has the name of another port"},
		"no numbers":      {reason: "X17", ports: `[{name: a, port: 0, nodePort: 1}, {name: b, port: 99999, nodePort: 1}, {name: c, port: 80, nodePort: -3}, null, 7]`, says: "is no port"},
		"a strange name":  {reason: "X17", ports: `[{name: "a b", port: 80, nodePort: 1}]`, says: "has no usable name"},
		"a strange proto": {reason: "X17", ports: `[{name: a, port: 80, nodePort: 1, protocol: HOPOPT}]`, says: "has an unknown protocol"},
		"none":            {reason: "WR5", ports: `[]`, says: "has no port that can be reached"},
		"too many":        {reason: "WR13", ports: "[" + strings.Repeat(`{name: a, port: 80, nodePort: 1},`, 200) + "]", want: []string{"80/TCP"}, says: "more than 100 ports"},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t, "shop.example")
			in.Remote.Services = []unstructured.Unstructured{remoteService(t, "target", "front", c.ports)}
			v := look(in)
			var got []string
			for _, p := range v.ways[0].ports {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if !strings.Contains(strings.Join(v.said.notes, "; "), c.says) {
				t.Errorf("%s: it says %v, want %q", c.reason, v.said.notes, c.says)
			}
			if mirrors := len(v.wanted["Service"]); (mirrors > 0) != (len(c.want) > 0) {
				t.Errorf("%s: there are %d mirrors", c.reason, mirrors)
			}
		})
	}
}

func TestHostnames(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		zones    []string
		others   []*unstructured.Unstructured
		external string
		want     []string
		is, says string
	}{
		"plain":          {reason: "WR7", zones: []string{"b.example.", "a.example"}, want: []string{"*.b.example", "*.a.example"}, is: "True Reconciled"},
		"twice and case": {reason: "WR7", zones: []string{"A.example", "a.example."}, want: []string{"*.a.example"}, is: "True Reconciled", says: `zone "a.example." is listed twice`},
		"no names":       {reason: "WR7", zones: []string{"", ".", "*", "*.a.example", "a..b", "-a.example", strings.Repeat("a.", 130) + "b", "a b", "ä.example"}, is: "False WaitingForDNSZones", says: "is no DNS name"},
		"none":           {reason: "WR9", is: "False WaitingForDNSZones", says: "no DNS zone"},
		"an older one has it": {
			reason: "WR12", zones: []string{"a.example", "b.example"}, others: []*unstructured.Unstructured{newCluster(t, "x", "x", 9, "A.example.")}, want: []string{"*.b.example"},
			is: "False HostConflict", says: `zone "a.example" belongs to an older Cluster`,
		},
		"a younger one has it": {reason: "WR12", zones: []string{"a.example"}, others: []*unstructured.Unstructured{newCluster(t, "x", "x", -9, "a.example")}, want: []string{"*.a.example"}, is: "True Reconciled"},
		"of the same age":      {reason: "WR12: then namespace and name", zones: []string{"a.example"}, others: []*unstructured.Unstructured{newCluster(t, "tea", "z", 0, "a.example")}, is: "False HostConflict"},
		"below another's zone": {reason: "it is a zone of its own", zones: []string{"sub.a.example"}, others: []*unstructured.Unstructured{newCluster(t, "x", "x", 9, "a.example")}, want: []string{"*.sub.a.example"}, is: "True Reconciled"},
		"the platform's host":  {reason: "WR12", zones: []string{"cloud.example"}, external: "https://Cloud.example:8443/", is: "False HostConflict", says: "platform"},
		"around it":            {reason: "WR12", zones: []string{"example"}, external: "https://api.cloud.example", is: "False HostConflict", says: "platform"},
		"below it":             {reason: "its routes match nothing of the platform's", zones: []string{"x.cloud.example"}, external: "cloud.example", want: []string{"*.x.cloud.example"}, is: "True Reconciled"},
		"no URL":               {reason: "C4", zones: []string{"a.example"}, external: "https://", want: []string{"*.a.example"}, is: "True Reconciled"},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t, c.zones...)
			for _, other := range c.others {
				in.Clusters = append(in.Clusters, *other)
			}
			in.Config = dockyards.ReadConfig(object(t, `{kind: ConfigMap, apiVersion: v1, data: {externalURL: "`+c.external+`"}}`))
			in.Remote.Services = []unstructured.Unstructured{remoteService(t, "target", "front", web)}
			if diff := cmp.Diff(c.want, look(in).zones.hostnames); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if is, message := concluded(settled(t, in)); is != c.is || !strings.Contains(message, c.says) {
				t.Errorf("%s: the condition is %s (%s), want %s (%s)", c.reason, is, message, c.is, c.says)
			}
			if got := planned(settled(t, in)); len(got) > 0 {
				t.Errorf("X7: it plans %v", got)
			}
		})
	}
}
