package anchor

import (
	"testing"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/functions/cluster-anchor/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

var ingress = decide.WorkloadName(subject)

func (w *world) gatewayChanged(f *suite.Copy) {
	w.TB.Helper()
	f.Insist(w.Event(dockyards.Gateways, gateway))
}

// inputIs wants the ingress Workload's input, as JSON; null for none.
func (w *world) inputIs(want string) {
	w.TB.Helper()
	if got := suite.Bytes(w.TB, w.Must(dockyards.Workloads, ingress), "spec", "input"); got != want {
		w.TB.Errorf("the Workload's input is %s, want %s", got, want)
	}
}

func input(ip string) string { return `{"service":{"loadBalancerIP":"` + ip + `"}}` }

func TestWithoutAGatewayNothingIsMade(t *testing.T) {
	w := bare(t)
	w.configMap("externalURL: https://example.com")
	w.environment(subject)
	f := w.anchor()
	w.converged(f, subject)
	w.endpointIs(subject, "False WaitingForGateway")
	w.ingressIs(subject, "False WaitingForGateway")
	w.says(subject, v1alpha3.ConditionAPIEndpointReconciled, w.NS+"/"+gateway)
	w.hostIs(subject, "")
	// The infrastructure does not wait for the Gateway.
	w.Must(dockyards.KubevirtClusters, subject)
	f.Rests(w.events(subject)...)

	w.gateway("{value: " + address + "}")
	w.gatewayChanged(f)
	w.endpointIs(subject, "True Reconciled")
	w.ingressIs(subject, "True Ready")
	before := w.Snapshot()
	w.Remove(dockyards.Gateways, gateway)
	w.gatewayChanged(f)
	w.endpointIs(subject, "False WaitingForGateway")
	w.hostIs(subject, w.host(subject, "example.com"))
	for key, life := range w.Snapshot() {
		if key != "Cluster/"+subject && life != before[key] {
			t.Errorf("%s has changed although the Gateway is gone", key)
		}
	}
	f.Rests(w.events(subject)...)
}

func TestSettingsWithoutAGatewaySaySo(t *testing.T) {
	w := newWorld(t)
	w.settings.GatewayName = ""
	w.cluster(subject, "")
	w.converged(w.anchor(), subject)
	w.endpointIs(subject, "False WaitingForGateway")
	w.says(subject, v1alpha3.ConditionAPIEndpointReconciled, "GATEWAY_NAME")
}

func TestTheIngressFollowsTheGatewaysAddress(t *testing.T) {
	w := bare(t)
	w.configMap("externalURL: https://example.com")
	w.gateway()
	w.cluster(subject, "")
	f := w.anchor()
	w.converged(f, subject)
	w.ingressIs(subject, "False WaitingForGatewayAddress")
	w.endpointIs(subject, "True Reconciled")
	if w.Get(dockyards.Workloads, ingress) != nil {
		t.Error("the Workload is made although there is no address")
	}
	for _, c := range []struct {
		reason, want string
		addresses    []string
	}{
		{"the first IPv4 address counts", input("192.0.2.1"), []string{"{value: '2001:db8::1'}", "{type: IPAddress, value: 192.0.2.1}", "{value: 192.0.2.2}"}},
		{"without one, the first IPv6 address", input("2001:db8::1"), []string{"{type: Hostname, value: gw.example.com}", "{value: '2001:db8::1'}"}},
		{"a hostname is no IP address", "null", []string{"{type: Hostname, value: gw.example.com}"}},
		{"and back", input("192.0.2.9"), []string{"{type: IPAddress, value: 192.0.2.9}"}},
	} {
		w.addresses(c.addresses...)
		w.gatewayChanged(f)
		w.ingressIs(subject, "True Ready")
		t.Log(c.reason)
		w.inputIs(c.want)
		f.Rests(w.events(subject)...)
	}
	before := w.Snapshot()
	w.addresses()
	w.gatewayChanged(f)
	w.ingressIs(subject, "False WaitingForGatewayAddress")
	if key := "Workload/" + ingress; w.Snapshot()[key] != before[key] {
		t.Error("the Workload has changed although there is no address to change to")
	}
}

func TestWithoutWorkloadIngressTheAddressIsTakenOut(t *testing.T) {
	w := newWorld(t)
	w.cluster(subject, "")
	w.converged(w.anchor(), subject)
	w.inputIs(input(address))
	w.Patch(dockyards.Workloads, ingress, "spec: {input: {replicas: 3, service: {annotations: {a: b}}}}")
	w.settings.WorkloadIngress = false
	f := w.anchor()
	w.converged(f, subject)
	w.inputIs(`{"replicas":3,"service":{"annotations":{"a":"b"}}}`)
	w.addresses()
	w.gatewayChanged(f)
	w.ingressIs(subject, "True Ready")
	f.Rests(w.events(subject)...)
	w.cluster("later", "")
	w.converged(f, "later")
	if got := suite.Bytes(t, w.Must(dockyards.Workloads, decide.WorkloadName("later")), "spec", "input"); got != "null" {
		t.Errorf("without workload-ingress the input is %s", got)
	}
}

func TestWhatOthersWriteIntoTheWorkloadSurvives(t *testing.T) {
	w := newWorld(t)
	w.cluster(subject, "")
	f := w.anchor()
	w.converged(f, subject)
	w.Patch(dockyards.Workloads, ingress, `{metadata: {labels: {team: a}, annotations: {note: b}, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: 1-2-3}, `+
		`{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: prod, uid: `+string(w.Must(dockyards.Clusters, subject).GetUID())+`}]}, `+
		`spec: {targetNamespace: elsewhere, input: {replicas: 3, service: {loadBalancerIP: 192.0.2.99, other: true}}}}`)
	f.Insist(w.Event(dockyards.Workloads, ingress))
	w.inputIs(`{"replicas":3,"service":{"loadBalancerIP":"` + address + `","other":true}}`)
	workload := w.Must(dockyards.Workloads, ingress)
	for path, want := range map[string]string{"targetNamespace": "ingress-nginx"} {
		if got := suite.Text(workload, "spec", path); got != want {
			t.Errorf("spec.%s is %q, want %q", path, got, want)
		}
	}
	if workload.GetLabels()["team"] != "a" || workload.GetAnnotations()["note"] != "b" || len(workload.GetOwnerReferences()) != 2 {
		t.Errorf("labels, annotations or owners of others are gone: %v", workload.Object["metadata"])
	}
	f.Rests(w.events(subject)...)
}

func TestAnInputThatIsNoObjectIsSaidAndKept(t *testing.T) {
	for name, bad := range map[string]string{"Text": `"text"`, "List": `[1]`, "Service": `{"service":"x"}`} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cluster(subject, "")
			f := w.anchor()
			w.converged(f, subject)
			w.Patch(dockyards.Workloads, ingress, "spec: {input: null}")
			w.Patch(dockyards.Workloads, ingress, "spec: {input: "+bad+"}")
			f.Insist(w.Event(dockyards.Workloads, ingress))
			w.ingressIs(subject, "False InvalidSpec")
			w.inputIs(bad)
			w.endpointIs(subject, "True Reconciled")
			f.Rests(w.events(subject)...)
		})
	}
}

func TestTheTemplatesNamespaceFollowsTheConfigMap(t *testing.T) {
	w := newWorld(t)
	w.cluster(subject, "")
	f := w.anchor()
	w.converged(f, subject)
	namespaceIs := func(want string) {
		t.Helper()
		if got := suite.Text(w.Must(dockyards.Workloads, ingress), "spec", "workloadTemplateRef", "namespace"); got != want {
			t.Errorf("the template's namespace is %q, want %q", got, want)
		}
	}
	w.Patch(kind.ConfigMaps, w.settings.ConfigMapName, "data: {publicNamespace: shop}")
	w.configChanged(f)
	namespaceIs("shop")
	f.Rests(w.events(subject)...)
	w.Patch(kind.ConfigMaps, w.settings.ConfigMapName, "data: {publicNamespace: null}")
	w.configChanged(f)
	namespaceIs("shop")
	w.says(subject, v1alpha3.ConditionIngressWorkloadReconciled, "publicNamespace")
	f.Rests(w.events(subject)...)
}

func TestSkipRemediationLeavesTheWorkloadAlone(t *testing.T) {
	w := newWorld(t)
	w.cluster(subject, "")
	f := w.anchor()
	w.converged(f, subject)
	w.Patch(dockyards.Workloads, ingress, "{metadata: {annotations: {dockyards.io/skip-remediation: 'false'}}, spec: {input: {mine: true, service: null}}}")
	before := w.Snapshot()
	f.Insist(w.Event(dockyards.Workloads, ingress))
	w.addresses()
	w.gatewayChanged(f)
	w.same(before, "a Workload that is to be left alone, and everything else")
	w.ingressIs(subject, "True Ready")
	w.Patch(dockyards.Clusters, subject, "spec: {noDefaultIngressProvider: true}")
	w.converged(f, subject)
	w.ingressIs(subject, "True NoDefaultIngressProvider")
	w.says(subject, v1alpha3.ConditionIngressWorkloadReconciled, "stays")
	w.Must(dockyards.Workloads, ingress)
	f.Rests(w.events(subject)...)
}

func TestAClusterThatWantsNoIngressLosesItsOwn(t *testing.T) {
	w := newWorld(t)
	w.cluster(subject, "")
	w.cluster("never", "noDefaultIngressProvider: true")
	f := w.anchor()
	w.converged(f, subject)
	w.converged(f, "never")
	w.ingressIs("never", "True NoDefaultIngressProvider")
	if w.Get(dockyards.Workloads, decide.WorkloadName("never")) != nil {
		t.Error("a Workload is made although none is wanted")
	}
	w.Patch(dockyards.Clusters, subject, "spec: {noDefaultIngressProvider: true}")
	w.converged(f, subject)
	w.ingressIs(subject, "True NoDefaultIngressProvider")
	if w.Get(dockyards.Workloads, ingress) != nil {
		t.Error("the Workload stays although it is not wanted any more")
	}
	f.Rests(w.events(subject)...)
	w.Patch(dockyards.Clusters, subject, "spec: {noDefaultIngressProvider: false}")
	w.converged(f, subject)
	w.Must(dockyards.Workloads, ingress)
}

// TestAWorkloadThatWasFoundStays is a takeover with the flag set: upstream would not
// have removed it either.
func TestAWorkloadThatWasFoundStays(t *testing.T) {
	w := newWorld(t)
	cluster := w.cluster(subject, "noDefaultIngressProvider: true")
	w.CreateAs("dockyards-kubevirt", w.upstreamWorkload(cluster))
	before := w.Must(dockyards.Workloads, ingress)
	f := w.anchor()
	w.converged(f, subject)
	w.ingressIs(subject, "True NoDefaultIngressProvider")
	w.says(subject, v1alpha3.ConditionIngressWorkloadReconciled, "stays")
	if after := w.Must(dockyards.Workloads, ingress); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("the Workload has changed")
	}
	f.Rests(w.events(subject)...)
}
