package anchor

import (
	"testing"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/test/suite"
)

// refersTo is a reference in the form of the platform's version.
func (w *world) refersTo(group, version, kindName, name string) string {
	if capis.Versions[0] == "v1beta1" {
		return "infrastructureRef: {apiVersion: " + group + "/" + version + ", kind: " + kindName + ", name: " + name + ", namespace: " + w.NS + "}"
	}
	return "infrastructureRef: {apiGroup: " + group + ", kind: " + kindName + ", name: " + name + "}"
}

const providers = "infrastructure.cluster.x-k8s.io"

func TestClusterAPIClustersOfOthersAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	owner := w.cluster(subject, "")
	w.capiCluster("foreign", nil, "")
	w.capiCluster("metal", owner, w.refersTo(providers, "v1beta1", "Metal3Cluster", "metal"))
	w.capiCluster("other", owner, w.refersTo(providers, "v1alpha1", "KubevirtCluster", "chosen"))
	w.capiCluster("twin", owner, w.refersTo("example.com", "v1", "KubevirtCluster", "twin"))
	before := w.Snapshot()
	f := w.anchor()
	w.converged(f, subject)
	for _, name := range []string{"foreign", "metal", "other", "twin"} {
		f.Insist(w.Event(capis, name))
		if w.Get(dockyards.KubevirtClusters, name) != nil {
			t.Errorf("Cluster API Cluster %q gets a KubevirtCluster", name)
		}
		if key := "CAPICluster/" + name; w.Snapshot()[key] != before[key] {
			t.Errorf("Cluster API Cluster %q has changed", name)
		}
	}
	w.endpointIs(subject, "True Reconciled")
	w.says(subject, v1alpha3.ConditionAPIEndpointReconciled, "")
	f.Rests(w.events(subject)...)
}

func TestAClusterAPIClusterOfAnotherNameIsKnownByItsOwner(t *testing.T) {
	w := newWorld(t)
	w.capiCluster("renamed", w.cluster(subject, ""), "")
	f := w.anchor()
	f.Insist(w.Event(capis, "renamed"))
	w.Must(dockyards.KubevirtClusters, "renamed")
	w.Remove(dockyards.KubevirtClusters, "renamed")
	f.Insist(w.Event(dockyards.KubevirtClusters, "renamed"))
	w.Must(dockyards.KubevirtClusters, "renamed")
	if w.Get(dockyards.KubevirtClusters, subject) != nil {
		t.Error("there is a KubevirtCluster without a Cluster API Cluster")
	}
	f.Rests(w.events(subject)...)
}

func TestAReferenceThatIsSetGetsItsKubevirtCluster(t *testing.T) {
	w := newWorld(t)
	w.capiCluster(subject, nil, w.refersTo(providers, "v1alpha1", "KubevirtCluster", subject))
	w.cluster(subject, "")
	f := w.anchor()
	before := w.Must(capis, subject).GetResourceVersion()
	w.converged(f, subject)
	w.Must(dockyards.KubevirtClusters, subject)
	if w.Must(capis, subject).GetResourceVersion() != before {
		t.Error("the Cluster API Cluster has changed although its reference was set")
	}
	f.Rests(w.events(subject)...)
}

func TestWhatTheProviderWritesIntoAKubevirtClusterSurvives(t *testing.T) {
	w := newWorld(t)
	w.environment(subject)
	f := w.anchor()
	w.converged(f, subject)
	owner := w.Must(capis, subject)
	w.Patch(dockyards.KubevirtClusters, subject, "{metadata: {ownerReferences: [{apiVersion: "+capis.APIVersion()+", kind: Cluster, name: prod, uid: "+string(owner.GetUID())+"}]}, "+
		"spec: {controlPlaneEndpoint: {host: 10.0.0.1, port: 6443}, controlPlaneServiceTemplate: {metadata: {labels: {a: b}}}}}")
	before := w.Snapshot()
	f.Insist(w.Event(dockyards.KubevirtClusters, subject))
	w.same(before, "what CAPK writes is its own")
	// Only how the API server is exposed is decided here.
	w.Patch(dockyards.KubevirtClusters, subject, "spec: {controlPlaneServiceTemplate: {spec: {type: LoadBalancer}}}")
	f.Insist(w.Event(dockyards.KubevirtClusters, subject))
	kubevirt := w.Must(dockyards.KubevirtClusters, subject)
	if got := suite.Text(kubevirt, "spec", "controlPlaneServiceTemplate", "spec", "type"); got != "ClusterIP" {
		t.Errorf("the service is of type %s", got)
	}
	if got := suite.Text(kubevirt, "spec", "controlPlaneEndpoint", "host"); got != "10.0.0.1" {
		t.Errorf("the endpoint is %q", got)
	}
	f.Rests(w.events(subject)...)
}

func TestNamesThatOthersHaveTakenStayTheirs(t *testing.T) {
	const stranger = "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: somebody, uid: 1-2-3}]"
	const spec = "targetNamespace: elsewhere, provenience: User"
	for name, c := range map[string]struct{ reason, object, endpoint, ingress string }{
		"OwnedWorkload": {
			reason: "another owner", endpoint: "True Reconciled", ingress: "False NameConflict",
			object: "{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: prod-ingress-nginx, " + stranger + "}, spec: {" + spec + "}}",
		},
		"OtherWorkload": {
			reason: "nobody's, and another one than would be made", endpoint: "True Reconciled", ingress: "False NameConflict",
			object: "{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {name: prod-ingress-nginx}, spec: {" + spec + "}}",
		},
		"OwnedRoute": {
			reason: "another owner", endpoint: "False NameConflict", ingress: "True Ready",
			object: "{apiVersion: " + routes.APIVersion() + ", kind: TLSRoute, metadata: {name: prod, " + stranger + "}, spec: {hostnames: [a.example.com], rules: [{backendRefs: [{name: a, port: 443}]}]}}",
		},
		"OtherRoute": {
			reason: "nobody's, and another one than would be made", endpoint: "False NameConflict", ingress: "True Ready",
			object: "{apiVersion: " + routes.APIVersion() + ", kind: TLSRoute, metadata: {name: prod}, spec: {hostnames: [a.example.com], rules: [{backendRefs: [{name: a, port: 443}]}]}}",
		},
		"OwnedKubevirtCluster": {
			reason: "another owner", endpoint: "False NameConflict", ingress: "True Ready",
			object: "{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: KubevirtCluster, metadata: {name: prod, " + stranger + "}, spec: {controlPlaneServiceTemplate: {spec: {type: ClusterIP}}}}",
		},
		"OtherKubevirtCluster": {
			reason: "nobody's, and another one than would be made", endpoint: "False NameConflict", ingress: "True Ready",
			object: "{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: KubevirtCluster, metadata: {name: prod}, spec: {controlPlaneServiceTemplate: {spec: {type: NodePort}}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			theirs := w.Create(c.object)
			w.environment(subject)
			f := w.anchor()
			w.converged(f, subject)
			w.endpointIs(subject, c.endpoint)
			w.ingressIs(subject, c.ingress)
			w.tells(subject, v1alpha3.ReasonNameConflict, 1)
			res := map[string]func() string{
				"Workload":        func() string { return w.Must(dockyards.Workloads, ingress).GetResourceVersion() },
				"TLSRoute":        func() string { return w.Must(routes, subject).GetResourceVersion() },
				"KubevirtCluster": func() string { return w.Must(dockyards.KubevirtClusters, subject).GetResourceVersion() },
			}
			if res[theirs.GetKind()]() != theirs.GetResourceVersion() {
				t.Errorf("%s: it was changed", c.reason)
			}
			// Everything else of the Cluster is there.
			for kindName, version := range res {
				if kindName != theirs.GetKind() {
					version()
				}
			}
			f.Rests(w.events(subject)...)
		})
	}
}

// TestWhatHasLostItsOwnerIsTakenBack: it is what would be made, and nobody's.
func TestWhatHasLostItsOwnerIsTakenBack(t *testing.T) {
	w := newWorld(t)
	w.environment(subject)
	f := w.anchor()
	w.converged(f, subject)
	before := w.State()
	w.Patch(dockyards.Workloads, ingress, "metadata: {ownerReferences: null, annotations: null}")
	w.Patch(routes, subject, "metadata: {ownerReferences: null, annotations: null}")
	f.Resync()
	after := w.State()
	for key, want := range before {
		if after[key] != want {
			t.Errorf("%s is\n%s\nwant\n%s", key, after[key], want)
		}
	}
	f.Rests(w.events(subject)...)
}

func TestADeletionIsNoReasonToMakeAnything(t *testing.T) {
	t.Run("OfTheCluster", func(t *testing.T) {
		w := newWorld(t)
		w.environment(subject)
		w.Patch(dockyards.Clusters, subject, "metadata: {finalizers: [example.com/hold]}")
		w.Remove(dockyards.Clusters, subject)
		before := w.Snapshot()
		f := w.anchor()
		w.converged(f, subject)
		f.Resync()
		w.same(before, "a Cluster that goes")
	})
	t.Run("OfTheClusterAPICluster", func(t *testing.T) {
		w := newWorld(t)
		w.environment(subject)
		f := w.anchor()
		w.converged(f, subject)
		w.Patch(capis, subject, "metadata: {finalizers: [cluster.cluster.x-k8s.io]}")
		w.Remove(capis, subject)
		w.Remove(dockyards.KubevirtClusters, subject)
		before := w.Snapshot()
		for _, ce := range w.events(subject) {
			f.Insist(ce)
		}
		w.same(before, "a Cluster API Cluster that goes")
		w.endpointIs(subject, "True Reconciled")
		// It is made again under the same name.
		w.Patch(capis, subject, "metadata: {finalizers: null}")
		w.capiCluster(subject, w.Must(dockyards.Clusters, subject), "")
		f.Insist(w.Event(capis, subject))
		w.Must(dockyards.KubevirtClusters, subject)
	})
	t.Run("OfWhatWasMade", func(t *testing.T) {
		w := newWorld(t)
		w.environment(subject)
		f := w.anchor()
		w.converged(f, subject)
		hold := "metadata: {finalizers: [example.com/hold]}"
		w.Patch(dockyards.Workloads, ingress, hold)
		w.Patch(routes, subject, hold)
		w.Patch(dockyards.KubevirtClusters, subject, hold)
		w.Remove(dockyards.Workloads, ingress)
		w.Remove(routes, subject)
		w.Remove(dockyards.KubevirtClusters, subject)
		f.Resync()
		w.endpointIs(subject, "False Deleting")
		w.ingressIs(subject, "False Deleting")
		if got := suite.Text(w.Must(dockyards.Clusters, subject), "status", "apiEndpoint", "host"); got != w.host(subject, "example.com") {
			t.Errorf("the host is %q", got)
		}
		f.Rests(w.events(subject)...)
		release := "metadata: {finalizers: null}"
		w.Patch(dockyards.Workloads, ingress, release)
		w.Patch(routes, subject, release)
		w.Patch(dockyards.KubevirtClusters, subject, release)
		f.Insist(w.Event(routes, subject))
		w.endpointIs(subject, "True Reconciled")
		w.ingressIs(subject, "True Ready")
		f.Rests(w.events(subject)...)
	})
}
