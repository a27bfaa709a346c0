package adapter

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func clusterOf(t *testing.T, status string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte("{metadata: {annotations: {a: b}}, spec: {paused: false}, status: "+status+"}"), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetNamespace("acme")
	object.SetName("shop")
	return object
}

func TestAClusterCountsOnceItsControlPlaneIsInitialized(t *testing.T) {
	settings := Remote{Provider: ProviderClusterAPI, Resources: testConfig.Resources}
	if err := settings.complete(); err != nil {
		t.Fatal(err)
	}
	for status, want := range map[string]bool{
		"{}": false,
		"{initialization: {infrastructureProvisioned: true}}":                                                               false,
		"{initialization: {controlPlaneInitialized: true}}":                                                                 true,
		"{conditions: [{type: ControlPlaneInitialized, status: 'True'}]}":                                                   true,
		"{conditions: [{type: ControlPlaneInitialized, status: 'False'}, {type: Ready, status: 'True'}]}":                   false,
		"{conditions: [{type: ControlPlaneInitialized, status: Unknown}]}":                                                  false,
		"{infrastructureReady: true}":                                                                                       false,
		"{infrastructureReady: true, controlPlaneReady: true}":                                                              true,
		"{v1beta2: {conditions: [{type: ControlPlaneInitialized, status: 'True'}]}}":                                        true,
		"{deprecated: {v1beta1: {conditions: [{type: ControlPlaneInitialized, status: 'True'}]}}}":                          true,
		"{initialization: {controlPlaneInitialized: true}, conditions: [{type: ControlPlaneInitialized, status: Unknown}]}": true,
		"{initialization: [], conditions: {a: b}, controlPlaneReady: 'yes'}":                                                false,
		"{conditions: [1, null, x]}":                                                                                        false,
	} {
		cluster := clusterOf(t, status)
		at, ok := locateCluster(settings, cluster)
		if ok != want {
			t.Errorf("%s: %t, want %t", status, ok, want)
		}
		if whole := (location{cluster: "acme/shop", namespace: "acme", secret: "shop-kubeconfig", key: "value"}); ok && at != whole {
			t.Errorf("%s: it is at %v", status, at)
		}
		f := newFinder(settings, silentLog)
		kept, err := f.trim(cluster)
		if err != nil {
			t.Fatal(err)
		}
		short, is := kept.(*unstructured.Unstructured)
		if !is || len(short.GetAnnotations()) > 0 || short.Object["spec"] != nil {
			t.Errorf("%s: kept is %v", status, kept)
			continue
		}
		if again, ok := locateCluster(settings, short); ok != want || again != at {
			t.Errorf("%s: what is kept of it reads %v %t", status, again, ok)
		}
	}
	going := clusterOf(t, "{initialization: {controlPlaneInitialized: true}}")
	going.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	if _, ok := locateCluster(settings, going); ok {
		t.Error("a cluster that is being deleted counts")
	}
	settings.Namespace = "other"
	if _, ok := locateCluster(settings, clusterOf(t, "{controlPlaneReady: true}")); ok {
		t.Error("a cluster of another namespace counts, and one namespace was asked for")
	}
}

// TestAWorkloadClusterIsFollowedWithItsSecret is one story.
func TestAWorkloadClusterIsFollowedWithItsSecret(t *testing.T) {
	seekAs(t, ProviderClusterAPI, func(t *testing.T, s *sought) {
		set := func(status string) {
			_ = s.store.Add(clusterOf(t, status))
			s.poke()
		}
		set("{}")
		s.listed()
		s.expect(t, "its control plane is not there yet")
		if len(s.labels) > 0 {
			t.Errorf("Secrets are watched for nobody: %v", s.labels)
		}
		set("{controlPlaneReady: true}")
		s.expect(t, "its Secret is not there yet")
		if diff := cmp.Diff([]string{""}, slices.Sorted(maps.Keys(s.labels))); diff != "" {
			t.Errorf("one watch of Secrets is enough for all namespaces (-want +got):\n%s", diff)
		}
		touch := func(name string) {
			s.touch(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: name}})
		}
		s.put("acme/shop-kubeconfig", kubeconfigOf("https://shop"))
		touch("shop-kubeconfig")
		s.expect(t, "its Secret came", "add acme/shop")
		reads := s.reads
		set("{controlPlaneReady: true, conditions: [{type: Ready, status: 'True'}]}")
		touch("shop-ca")
		s.expect(t, "what is of no interest changed")
		if s.reads != reads {
			t.Errorf("the Secret was read %d times more than needed", s.reads-reads)
		}
		s.put("acme/shop-kubeconfig", kubeconfigOf("https://shop-2"))
		touch("shop-kubeconfig")
		s.expect(t, "it was rotated", "add acme/shop")
		s.put("acme/shop-kubeconfig", "{apiVersion: v1, kind: Config, users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: id}}}]}")
		touch("shop-kubeconfig")
		s.expect(t, "it would run a program", "remove acme/shop")
		s.put("acme/shop-kubeconfig", kubeconfigOf("https://shop"))
		touch("shop-kubeconfig")
		s.expect(t, "it was mended", "add acme/shop")
		_ = s.store.Delete(clusterOf(t, "{}"))
		s.poke()
		s.expect(t, "the Cluster is gone", "remove acme/shop")
		if len(s.labels) > 0 {
			t.Errorf("Secrets are watched for nobody: %v", s.labels)
		}
	})
}
