package anchor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/functions/cluster-anchor/decide"
	"github.com/slipway-dev/slipway/shared/dockyards"
)

// TestAClusterGetsItsPlaceOnThePlatform compares all that is made, byte for byte but
// for what the server gives.
func TestAClusterGetsItsPlaceOnThePlatform(t *testing.T) {
	w := newWorld(t)
	w.environment(subject)
	f := w.anchor()
	w.converged(f, subject)

	w.endpointIs(subject, "True Reconciled")
	w.ingressIs(subject, "True Ready")
	w.hostIs(subject, w.host(subject, "example.com"))
	state := w.State()
	want := map[string]string{
		"TLSRoute/prod": `
apiVersion: ` + routes.APIVersion() + `
kind: TLSRoute
metadata:
  annotations: {slipway.dev/rollout-inputs: example.com}
  labels: {dockyards.io/cluster-name: prod}
  name: prod
  namespace: NAMESPACE
  ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: prod, uid: UID(Cluster/prod)}]
spec:
  hostnames: [NAMESPACE-prod.example.com]
  parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: public, namespace: NAMESPACE}]
  rules: [{backendRefs: [{group: "", kind: Service, name: prod-lb, port: 6443, weight: 1}]}]
`,
		"Workload/prod-ingress-nginx": `
apiVersion: dockyards.io/v1alpha3
kind: Workload
metadata:
  annotations: {slipway.dev/managed-by: cluster-anchor}
  labels: {dockyards.io/cluster-name: prod}
  name: prod-ingress-nginx
  namespace: NAMESPACE
  ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: prod, uid: UID(Cluster/prod)}]
spec:
  clusterComponent: true
  input: {service: {loadBalancerIP: ` + address + `}}
  provenience: Dockyards
  targetNamespace: ingress-nginx
  workloadTemplateRef: {kind: WorkloadTemplate, name: ingress-nginx, namespace: dockyards-public}
`,
		"KubevirtCluster/prod": `
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: KubevirtCluster
metadata: {name: prod, namespace: NAMESPACE}
spec: {controlPlaneServiceTemplate: {spec: {type: ClusterIP}}}
`,
	}
	for key, text := range want {
		if diff := cmp.Diff(plain(t, text), plain(t, state[key])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	reference := map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "KubevirtCluster", "name": "prod"}
	if capis.Versions[0] == "v1beta1" {
		reference = map[string]any{
			"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "KubevirtCluster", "name": "prod", "namespace": w.NS,
		}
	}
	capi := w.Must(capis, subject).Object["spec"].(map[string]any)
	if diff := cmp.Diff(reference, capi["infrastructureRef"]); diff != "" {
		t.Errorf("the infrastructure of the Cluster API Cluster (-want +got):\n%s", diff)
	}
	f.Rests(w.events(subject)...)
}

// plain is YAML as plain values.
func plain(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestWhatIsRemovedIsMadeAnew(t *testing.T) {
	w := newWorld(t)
	w.environment(subject)
	f := w.anchor()
	w.converged(f, subject)
	before := w.State()
	w.Remove(routes, subject)
	f.Insist(w.Event(routes, subject))
	w.Remove(dockyards.Workloads, decide.WorkloadName(subject))
	f.Insist(w.Event(dockyards.Workloads, decide.WorkloadName(subject)))
	w.Remove(dockyards.KubevirtClusters, subject)
	f.Insist(w.Event(dockyards.KubevirtClusters, subject))
	if diff := cmp.Diff(before, w.State()); diff != "" {
		t.Errorf("each event should bring back what went (-before +after):\n%s", diff)
	}
	f.Rests(w.events(subject)...)
}
