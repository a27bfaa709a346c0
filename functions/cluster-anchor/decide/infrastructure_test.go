package decide

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/fault"
)

var faultless = fault.Fault{Class: fault.Unavailable, Call: "get workloads"}

func TestTheInfrastructureOfAClusterAPICluster(t *testing.T) {
	const group = "infrastructure.cluster.x-k8s.io"
	capi := func(version, metadata, spec string) string {
		return "{apiVersion: cluster.x-k8s.io/" + version + ", kind: Cluster, metadata: {namespace: team-a, name: prod, uid: capi" + metadata + "}, spec: {" + spec + "}}"
	}
	kubevirt := func(metadata, serviceType string) string {
		return "{apiVersion: " + group + "/v1alpha1, kind: KubevirtCluster, metadata: {namespace: team-a, name: prod" + metadata + "}, spec: {controlPlaneServiceTemplate: {spec: {type: " + serviceType + "}}}}"
	}
	const owner = ", ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: prod, uid: capi}]"
	const stranger = ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: y}]"
	create, refer, change := "objects: create kubevirtclusters."+group+" team-a/prod", " patch clusters.cluster.x-k8s.io team-a/prod", "objects: patch kubevirtclusters."+group+" team-a/prod"
	for name, c := range map[string]struct {
		reason, capi, kubevirt string
		unserved               bool
		writes                 []string
		ref                    map[string]any
		says                   string
	}{
		"new": {
			reason: "the reference follows what it names", capi: capi("v1beta2", "", "paused: false"), writes: []string{create, "reference:" + refer},
			ref: map[string]any{"apiGroup": group, "kind": "KubevirtCluster", "name": "prod"},
		},
		"new in v1beta1": {
			reason: "references had versions and namespaces", capi: capi("v1beta1", "", ""), writes: []string{create, "reference:" + refer},
			ref: map[string]any{"apiVersion": group + "/v1alpha1", "kind": "KubevirtCluster", "name": "prod", "namespace": "team-a"},
		},
		"without the reference": {
			reason: "nothing is waited for", capi: capi("v1beta2", "", "paused: false"), kubevirt: kubevirt(owner, "ClusterIP"), writes: []string{"objects:" + refer},
			ref: map[string]any{"apiGroup": group, "kind": "KubevirtCluster", "name": "prod"},
		},
		"settled": {
			reason: "nothing to do", capi: capi("v1beta2", "", "infrastructureRef: {apiGroup: "+group+", kind: KubevirtCluster, name: prod}"), kubevirt: kubevirt(owner, "ClusterIP"),
		},
		"settled in v1beta1": {
			reason: "nothing to do", capi: capi("v1beta1", "", "infrastructureRef: {apiVersion: "+group+"/v1alpha1, kind: KubevirtCluster, name: prod, namespace: team-a}"), kubevirt: kubevirt("", "ClusterIP"),
		},
		"exposed in another way": {
			reason: "it is the Cluster's by its owner", capi: capi("v1beta2", "", "infrastructureRef: {apiGroup: "+group+", kind: KubevirtCluster, name: prod}"), kubevirt: kubevirt(owner, "NodePort"), writes: []string{change},
		},
		"another provider": {
			reason: "it is not ours", capi: capi("v1beta2", "", "infrastructureRef: {apiGroup: "+group+", kind: Metal3Cluster, name: prod}"),
		},
		"another group": {
			reason: "a kind of the same name", capi: capi("v1beta2", "", "infrastructureRef: {apiGroup: example.com, kind: KubevirtCluster, name: prod}"),
		},
		"another namespace": {
			reason: "v1beta1 can name one", capi: capi("v1beta1", "", "infrastructureRef: {apiVersion: "+group+"/v1alpha1, kind: KubevirtCluster, name: prod, namespace: team-b}"),
		},
		"an empty reference": {
			reason: "typed clients send empty structs", capi: capi("v1beta1", "", "infrastructureRef: {}"), kubevirt: kubevirt(owner, "ClusterIP"), writes: []string{"objects:" + refer},
			ref: map[string]any{"apiVersion": group + "/v1alpha1", "kind": "KubevirtCluster", "name": "prod", "namespace": "team-a"},
		},
		"going": {
			reason: "nothing is made for what goes", capi: capi("v1beta2", ", deletionTimestamp: '2026-01-01T00:00:00Z'", "paused: false"),
		},
		"foreign": {
			reason: "it has another owner", capi: capi("v1beta2", "", "paused: false"), kubevirt: kubevirt(stranger, "ClusterIP"),
			says: "False NameConflict: KubevirtCluster \"prod\" is not this Cluster's and stays as it is: remove or rename it",
		},
		"a person's": {
			reason: "it is another one than would be made", capi: capi("v1beta2", "", "paused: false"), kubevirt: kubevirt("", "LoadBalancer"),
			says: "False NameConflict: KubevirtCluster \"prod\" is not this Cluster's and stays as it is: remove or rename it",
		},
		"provider missing": {
			reason: "an event of its first object follows", capi: capi("v1beta2", "", "paused: false"), unserved: true,
			says: "True Reconciled: the API server serves no KubevirtClusters: install Cluster API's provider for KubeVirt",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := anInput(t, "noDefaultIngressProvider: true", endpointStatus(present))
			in.Route = aRoute(t, "example.com", present)
			in.Infrastructure = []Infrastructure{{Cluster: parse(t, c.capi)}}
			if c.kubevirt != "" {
				in.Infrastructure[0].Kubevirt = parse(t, c.kubevirt)
			}
			in.ProviderServed = !c.unserved
			decision := Decide(instant, in, nil)
			var got []string
			for _, line := range entries(decision) {
				if !strings.Contains(line, "tlsroutes") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(c.writes, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			conclusion := carry(t, &in)
			want := c.says
			if want == "" {
				want = "True Reconciled: "
			}
			if got := said(conclusion.Status, v1alpha3.ConditionAPIEndpointReconciled); got != want {
				t.Errorf("%s: the condition is %q, want %q", c.reason, got, want)
			}
			if c.ref != nil {
				spec, _ := in.Infrastructure[0].Cluster.Object["spec"].(map[string]any)
				if diff := cmp.Diff(c.ref, spec["infrastructureRef"]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.reason, diff)
				}
			}
		})
	}
}

func TestWithoutClusterAPITheRestGoesOn(t *testing.T) {
	in := anInput(t, "", "")
	in.ClusterAPIServed = false
	conclusion := carry(t, &in)
	if got := said(conclusion.Status, v1alpha3.ConditionAPIEndpointReconciled); got != "True Reconciled: the API server serves no Cluster API Clusters: install Cluster API" {
		t.Errorf("the condition is %q", got)
	}
	if in.Route == nil || in.Workload == nil {
		t.Error("the route or the Workload was not made")
	}
	restsOn(t, in)
}

func TestConcerns(t *testing.T) {
	cluster := aCluster(t, "team-a", "prod", "", "")
	for name, c := range map[string]struct {
		metadata string
		want     bool
	}{
		"by name":                {"name: prod", true},
		"by owner":               {"name: other, ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: prod, uid: team-a/prod}]", true},
		"not by an owner of old": {"name: other, ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: prod, uid: before}]", false},
		"not by nothing":         {"name: other", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Concerns(cluster, parse(t, "{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {namespace: team-a, "+c.metadata+"}}")); got != c.want {
				t.Errorf("%s: %v", c.metadata, got)
			}
		})
	}
}
