package anchor

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// Tests in this file change definitions, so they must not run beside others.

// awaitServed waits until the API server serves a resource in a version, or does not
// any more: nothing tells of that but its answers.
func (w *world) awaitServed(res kind.Resource, want bool) {
	w.TB.Helper()
	ctx, cancel := context.WithTimeout(w.TB.Context(), suite.Patience)
	defer cancel()
	for {
		_, err := w.In(res).List(ctx, metav1.ListOptions{Limit: 1})
		if errors.Is(err, context.DeadlineExceeded) {
			w.TB.Fatalf("%s is served otherwise than wanted (%v)", res, want)
		}
		if (err == nil) == want && (err == nil || apierrors.IsNotFound(err)) {
			return
		}
	}
}

// undefined deletes a definition, with all objects, until it is called for or the test
// ends.
func (w *world) undefined(definition *unstructured.Unstructured, res kind.Resource) (define func()) {
	w.TB.Helper()
	name := definition.GetName()
	w.release(res)
	w.Remove(kind.CRDs, name)
	w.Await(kind.CRDs, name, "is gone", suite.Gone)
	w.awaitServed(res, false)
	defined := false
	define = func() {
		w.TB.Helper()
		if defined {
			return
		}
		defined = true
		ctx := context.WithoutCancel(w.TB.Context())
		if _, err := w.In(kind.CRDs).Create(ctx, definition.DeepCopy(), metav1.CreateOptions{}); err != nil {
			w.TB.Fatal(err)
		}
		if err := kube.WaitEstablished(ctx, w.Env.Config, name); err != nil {
			w.TB.Fatal(err)
		}
	}
	w.TB.Cleanup(define)
	return define
}

// release takes the finalizers from all objects of a resource, those of earlier tests
// too: a definition goes only when its objects are gone.
func (w *world) release(res kind.Resource) {
	w.TB.Helper()
	list, err := w.Client.Resource(res.GVR()).List(w.TB.Context(), metav1.ListOptions{})
	if err != nil {
		w.TB.Fatal(err)
	}
	for i := range list.Items {
		if len(list.Items[i].GetFinalizers()) > 0 {
			w.At(list.Items[i].GetNamespace()).Patch(res, list.Items[i].GetName(), "metadata: {finalizers: null}")
		}
	}
}

// TestAClusterWaitsForDefinitionsThatAreNotThereYet takes the definitions of all other
// projects away, and brings them one by one.
func TestAClusterWaitsForDefinitionsThatAreNotThereYet(t *testing.T) {
	w := bare(t)
	w.configMap("externalURL: https://example.com")
	all, err := definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	define := map[string]func(){}
	for _, definition := range all {
		for _, res := range []kind.Resource{dockyards.Gateways, routes, capis, dockyards.KubevirtClusters} {
			if definition.GetName() == res.String() {
				define[res.String()] = w.undefined(definition, res)
			}
		}
	}
	owner := w.cluster(subject, "")
	f := w.anchor()
	w.converged(f, subject)
	w.endpointIs(subject, "False WaitingForGateway")
	w.ingressIs(subject, "False WaitingForGateway")

	define[dockyards.Gateways.String()]()
	w.awaitServed(dockyards.Gateways, true)
	w.gateway("{value: " + address + "}")
	w.gatewayChanged(f)
	w.endpointIs(subject, "False WaitingForGateway")
	w.says(subject, v1alpha3.ConditionAPIEndpointReconciled, "TLSRoutes")
	w.ingressIs(subject, "True Ready")

	define[routes.String()]()
	w.awaitServed(routes, true)
	w.gatewayChanged(f)
	w.endpointIs(subject, "True Reconciled")
	w.says(subject, v1alpha3.ConditionAPIEndpointReconciled, "Cluster API")
	w.hostIs(subject, w.host(subject, "example.com"))

	define[capis.String()]()
	w.awaitServed(capis, true)
	w.capiCluster(subject, owner, "")
	f.Insist(w.Event(capis, subject))
	w.endpointIs(subject, "True Reconciled")
	w.says(subject, v1alpha3.ConditionAPIEndpointReconciled, "KubevirtClusters")

	define[dockyards.KubevirtClusters.String()]()
	w.awaitServed(dockyards.KubevirtClusters, true)
	f.Insist(w.Event(capis, subject))
	w.says(subject, v1alpha3.ConditionAPIEndpointReconciled, "")
	w.Must(dockyards.KubevirtClusters, subject)
	w.adopt()
	if suite.Text(w.Must(capis, subject), "spec", "infrastructureRef", "name") != subject {
		t.Error("the reference is not set")
	}
	f.Rests(w.events(subject)...)
}

// TestAVersionThatIsNotServedAnyMoreIsLeft: an upgrade takes away the version that a
// copy works with.
func TestAVersionThatIsNotServedAnyMoreIsLeft(t *testing.T) {
	w := newWorld(t)
	w.environment(subject)
	f := w.anchor()
	w.converged(f, subject)

	next := narrowed(dockyards.TLSRoutes, "v1alpha3")
	if routes.Versions[0] == "v1alpha3" {
		next = narrowed(dockyards.TLSRoutes, "v1")
	}
	w.serveRoutes(next.Versions[0])
	defer w.serveRoutes(here.route...)
	w.awaitServed(next, true)
	w.awaitServed(routes, false)
	f.Asked()
	w.converged(f, subject)
	if _, writes := f.Asked(); len(writes) > 0 {
		t.Errorf("nothing but the version has changed, and %v was written", writes)
	}
	w.externalURL("https://example.net")
	w.converged(f, subject)
	w.Remove(next, subject)
	w.converged(f, subject)
	route := w.Must(next, subject)
	if got := suite.Text(route, "spec", "hostnames"); got != "["+w.host(subject, "example.net")+"]" {
		t.Errorf("the route leads to %s", got)
	}
	f.Rests(w.Event(dockyards.Clusters, subject))
}

// serveRoutes sets which versions of TLSRoutes are served; the stored one stays.
func (w *world) serveRoutes(versions ...string) {
	w.TB.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		definition := w.Must(kind.CRDs, dockyards.TLSRoutes.String())
		serve(definition, append([]string{here.route[0]}, versions...))
		all, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		for _, item := range all {
			version := item.(map[string]any)
			version["served"] = slices.Contains(versions, version["name"].(string))
		}
		if err := unstructured.SetNestedSlice(definition.Object, all, "spec", "versions"); err != nil {
			return err
		}
		_, err := w.In(kind.CRDs).Update(context.WithoutCancel(w.TB.Context()), definition, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		w.TB.Fatal(err)
	}
	w.awaitServed(narrowed(dockyards.TLSRoutes, versions[0]), true)
}
