package anchor

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/test/suite"
)

// upstream is the field manager of dockyards-kubevirt: the name of its binary.
const upstream = "dockyards-kubevirt"

func owned(cluster *unstructured.Unstructured) string {
	return fmt.Sprintf("ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: %s, uid: %s}]", cluster.GetName(), cluster.GetUID())
}

// upstreamWorkload is the ingress as upstream writes it.
func (w *world) upstreamWorkload(cluster *unstructured.Unstructured) string {
	return "{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: " + ingress + ", labels: {dockyards.io/cluster-name: " + subject + "}, " + owned(cluster) + "}, " +
		"spec: {clusterComponent: true, provenience: Dockyards, targetNamespace: ingress-nginx, " +
		"workloadTemplateRef: {kind: WorkloadTemplate, name: ingress-nginx, namespace: dockyards-public}, input: " + input(address) + "}}"
}

func (w *world) upstreamRoute(cluster *unstructured.Unstructured, host string) string {
	return "{apiVersion: " + routes.APIVersion() + ", kind: TLSRoute, metadata: {name: " + subject + ", labels: {dockyards.io/cluster-name: " + subject + "}, " + owned(cluster) + "}, " +
		"spec: {parentRefs: [{name: " + gateway + ", namespace: " + w.NS + "}], hostnames: [" + host + "], rules: [{backendRefs: [{name: " + subject + "-lb, port: 6443}]}]}}"
}

// upstreamKubevirtCluster is the KubevirtCluster as upstream writes it, with the empty
// structs that its Go types send.
const upstreamKubevirtCluster = `{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: KubevirtCluster, metadata: {name: ` + subject + `},
  spec: {controlPlaneEndpoint: {host: "", port: 0}, controlPlaneServiceTemplate: {metadata: {creationTimestamp: null}, spec: {type: ClusterIP}}, sshKeys: {}}}`

// leftovers is a Cluster as a live system has it. The host's hostname may be an older
// one than the config map's.
func (w *world) leftovers(hostname string) {
	w.TB.Helper()
	cluster := w.cluster(subject, "version: v1.34.1")
	w.capiCluster(subject, cluster, w.refersTo(providers, "v1alpha1", "KubevirtCluster", subject))
	host := w.host(subject, hostname)
	w.CreateAs(upstream, w.upstreamWorkload(cluster), w.upstreamRoute(cluster, host), upstreamKubevirtCluster)
	stored := w.Must(dockyards.Clusters, subject)
	status := map[string]any{
		"apiEndpoint": map[string]any{"host": host, "port": int64(6443)},
		"version":     "v1.34.1", "dnsZones": []any{"prod.example.com."},
		"conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2025-01-01T00:00:00Z", "observedGeneration": int64(1)},
			map[string]any{"type": "APIEndpointReconciled", "status": "True", "reason": "Reconciled", "message": "", "lastTransitionTime": "2025-01-01T00:00:00Z", "observedGeneration": int64(1)},
			map[string]any{"type": "IngressWorkloadReconciled", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2025-01-01T00:00:00Z", "observedGeneration": int64(1)},
			map[string]any{"type": "ClusterReady", "status": "False", "reason": "Theirs", "message": "of others", "lastTransitionTime": "2025-01-01T00:00:00Z"},
		},
	}
	stored.Object["status"] = status
	if _, err := w.In(dockyards.Clusters).UpdateStatus(w.TB.Context(), stored, metav1.UpdateOptions{FieldManager: upstream}); err != nil {
		w.TB.Fatal(err)
	}
	// What Cluster API and its provider have added since.
	capi := w.Must(capis, subject)
	w.Update(dockyards.KubevirtClusters, subject, "manager", func(obj *unstructured.Unstructured) {
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: capis.APIVersion(), Kind: "Cluster", Name: subject, UID: capi.GetUID()}})
		obj.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": subject})
		obj.SetFinalizers([]string{"kubevirtcluster.infrastructure.cluster.x-k8s.io"})
		_ = unstructured.SetNestedMap(obj.Object, map[string]any{"host": "10.96.3.4", "port": int64(6443)}, "spec", "controlPlaneEndpoint")
	})
}

// withoutMark is an object's bytes without what a takeover may add.
func withoutMark(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	bare := obj.DeepCopy()
	annotations := bare.GetAnnotations()
	delete(annotations, v1alpha3.AnnotationRolloutInputs)
	delete(annotations, v1alpha3.AnnotationManagedBy)
	if len(annotations) == 0 {
		annotations = nil
	}
	bare.SetAnnotations(annotations)
	bare.SetManagedFields(nil)
	bare.SetResourceVersion("")
	return suite.Bytes(t, bare)
}

func TestATakeoverChangesNothingButItsMarks(t *testing.T) {
	for _, hostname := range []string{"example.com", "old.example.org"} {
		t.Run(strings.ReplaceAll(hostname, ".", "_"), func(t *testing.T) {
			w := newWorld(t)
			w.leftovers(hostname)
			before, objects := w.Snapshot(), w.Objects()
			f := w.anchor()
			w.converged(f, subject)
			_, writes := f.Asked()
			t.Logf("the takeover writes %v", writes)
			for key, obj := range w.Objects() {
				was, had := objects[key]
				switch {
				case !had:
					t.Errorf("%s was made", key)
				case obj.GetUID() != was.GetUID() || obj.GetGeneration() != was.GetGeneration():
					t.Errorf("%s was made anew, or its spec has changed", key)
				case obj.GetKind() == "Cluster" && dockyards.Clusters.Is(obj.GetAPIVersion(), obj.GetKind()):
				case withoutMark(t, obj) != withoutMark(t, was):
					t.Errorf("%s has changed:\n%s\nit was\n%s", key, withoutMark(t, obj), withoutMark(t, was))
				}
			}
			for _, key := range []string{"KubevirtCluster/" + subject, "CAPICluster/" + subject} {
				if w.Snapshot()[key] != before[key] {
					t.Errorf("%s was written", key)
				}
			}
			if w.record(subject) != "example.com" || w.Must(dockyards.Workloads, ingress).GetAnnotations()[v1alpha3.AnnotationManagedBy] != "cluster-anchor" {
				t.Error("the marks are missing")
			}
			w.hostIs(subject, w.host(subject, hostname))
			w.endpointIs(subject, "True Reconciled")
			w.ingressIs(subject, "True Ready")
			cluster := w.Must(dockyards.Clusters, subject)
			for _, path := range []string{"version", "dnsZones"} {
				if suite.Bytes(t, cluster, "status", path) != suite.Bytes(t, objects["Cluster/"+subject], "status", path) {
					t.Errorf("status.%s has changed", path)
				}
			}
			f.Rests(w.events(subject)...)

			// Starting upstream again, late, changes nothing that lasts.
			late := w.Must(routes, subject)
			w.Update(routes, subject, upstream, func(obj *unstructured.Unstructured) { obj.SetOwnerReferences(late.GetOwnerReferences()[:1]) })
			f.Rests(w.events(subject)...)
		})
	}
}

// TestATakeoverFollowsTheGateway: the address may be another one by the rule for
// choosing it, and what upstream's manager owns does not stand in the way.
func TestATakeoverFollowsTheGateway(t *testing.T) {
	w := newWorld(t)
	w.leftovers("example.com")
	w.addresses("{value: 192.0.2.50}")
	w.externalURL("https://example.net")
	f := w.anchor()
	w.converged(f, subject)
	w.inputIs(input("192.0.2.50"))
	w.hostIs(subject, w.host(subject, "example.com"))
	w.externalURL("https://example.org")
	w.configChanged(f)
	w.hostIs(subject, w.host(subject, "example.org"))
	w.settings.WorkloadIngress = false
	f = w.anchor()
	w.converged(f, subject)
	w.inputIs("null")
	f.Rests(w.events(subject)...)
}

// TestATakeoverOfWhatUpstreamLeavesBehind: states that it cannot get out of.
func TestATakeoverOfWhatUpstreamLeavesBehind(t *testing.T) {
	t.Run("AHostWithAPort", func(t *testing.T) {
		w := newWorld(t)
		w.externalURL("https://example.com:8443")
		cluster := w.cluster(subject, "")
		w.CreateAs(upstream, w.upstreamWorkload(cluster), upstreamKubevirtCluster)
		w.Patch(dockyards.Clusters, subject, "status: {apiEndpoint: {host: '"+w.host(subject, "example.com:8443")+"', port: 6443}, conditions: [{type: APIEndpointReconciled, status: 'False', reason: ErrorReconciling, message: x, lastTransitionTime: '2025-01-01T00:00:00Z'}]}", "status")
		f := w.anchor()
		w.converged(f, subject)
		w.hostIs(subject, w.host(subject, "example.com"))
		w.endpointIs(subject, "True Reconciled")
		w.tells(subject, v1alpha3.ReasonRolloutStarted, 1)
		f.Rests(w.events(subject)...)
	})
	t.Run("AFalseConditionBesideAValidEndpoint", func(t *testing.T) {
		w := newWorld(t)
		w.leftovers("example.com")
		w.Patch(dockyards.Clusters, subject, "status: {conditions: [{type: APIEndpointReconciled, status: 'False', reason: WaitingForListenerHostname, message: '', lastTransitionTime: '2025-01-01T00:00:00Z'}]}", "status")
		f := w.anchor()
		w.converged(f, subject)
		w.endpointIs(subject, "True Reconciled")
		w.hostIs(subject, w.host(subject, "example.com"))
		f.Rests(w.events(subject)...)
	})
	t.Run("AKubevirtClusterOfAForeignCluster", func(t *testing.T) {
		w := newWorld(t)
		w.cluster("other", "")
		w.capiCluster(subject, nil, w.refersTo(providers, "v1beta1", "Metal3Cluster", subject))
		w.CreateAs(upstream, upstreamKubevirtCluster)
		before := w.Snapshot()["KubevirtCluster/"+subject]
		f := w.anchor()
		f.Resync()
		f.Insist(w.Event(dockyards.KubevirtClusters, subject))
		if w.Snapshot()["KubevirtCluster/"+subject] != before {
			t.Error("it was touched")
		}
	})
}
