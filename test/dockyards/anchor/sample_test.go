package anchor

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// sampleKinds are all kinds of deploy/samples/dockyards.
var sampleKinds = []kind.Resource{
	kind.Namespaces, kind.ConfigMaps, dockyards.Gateways, dockyards.Releases, dockyards.Organizations, dockyards.Clusters,
	narrowed(dockyards.CAPIClusters, "v1beta2"), dockyards.NodePools,
	{Group: "dockyards.io", Versions: []string{"v1alpha3"}, Kind: "WorkloadTemplate", Plural: "workloadtemplates", Namespaced: true},
	{Group: "dockyards.io", Versions: []string{"v1alpha3"}, Kind: "DNSZone", Plural: "dnszones", Namespaced: true},
}

// TestTheSampleEnvironmentGetsItsPlace applies the sample as its first lines say, and
// the Gateway's address as a Gateway's controller does.
func TestTheSampleEnvironmentGetsItsPlace(t *testing.T) {
	if !slices.Contains(here.capi, "v1beta2") {
		t.Skip("the sample speaks the newest version of Cluster API")
	}
	w := newWorld(t)
	w.sample("deploy/samples/dockyards")
	w.sample("deploy/samples/dockyards/status", "status")
	w.settings.GatewayNamespace, w.settings.ConfigMapNamespace = "dockyards-system", "dockyards-system"
	acme := &world{World: w.At("acme"), settings: w.settings}
	f := acme.anchor()
	acme.converged(f, "shop")
	acme.endpointIs("shop", "True Reconciled")
	acme.ingressIs("shop", "False WaitingForGatewayAddress")

	(&world{World: w.At("dockyards-system")}).addresses("{type: IPAddress, value: 192.0.2.10}")
	acme.converged(f, "shop")
	acme.ingressIs("shop", "True Ready")
	acme.hostIs("shop", "acme-shop.api.example.test")
	acme.Must(dockyards.KubevirtClusters, "shop")
	if got := suite.Text(acme.Must(capis, "shop"), "spec", "infrastructureRef", "name"); got != "shop" {
		t.Errorf("the Cluster API Cluster refers to %q", got)
	}
	if got := suite.Text(acme.Must(dockyards.Clusters, "shop"), "status", "dnsZones"); got != "[shop.example.test.]" {
		t.Errorf("the zones are %s", got)
	}
	f.Rests(acme.events("shop")...)
}

// sample applies a folder of manifests, strictly.
func (w *world) sample(folder string, subresource ...string) {
	w.TB.Helper()
	root, err := build.Root(".")
	if err != nil {
		w.TB.Fatal(err)
	}
	objs, err := kube.ReadFiles(filepath.Join(root, filepath.FromSlash(folder)))
	if err != nil {
		w.TB.Fatal(err)
	}
	for _, namespaces := range []bool{true, false} {
		for _, obj := range objs {
			if (obj.GetKind() == kind.Namespaces.Kind) == namespaces {
				w.submit(obj, subresource...)
			}
		}
	}
}

func (w *world) submit(obj *unstructured.Unstructured, subresource ...string) {
	w.TB.Helper()
	i := slices.IndexFunc(sampleKinds, func(res kind.Resource) bool { return res.Is(obj.GetAPIVersion(), obj.GetKind()) })
	if i < 0 {
		w.TB.Fatalf("%s %s is of no kind of the sample", obj.GetAPIVersion(), obj.GetKind())
	}
	raw, err := json.Marshal(obj.Object)
	if err != nil {
		w.TB.Fatal(err)
	}
	force := true
	client := w.At(obj.GetNamespace()).In(sampleKinds[i])
	_, err = client.Patch(w.TB.Context(), obj.GetName(), types.ApplyPatchType, raw,
		metav1.PatchOptions{FieldManager: "kubectl", Force: &force, FieldValidation: metav1.FieldValidationStrict}, subresource...)
	if err != nil {
		w.TB.Fatalf("%s %q: %v", obj.GetKind(), obj.GetName(), err)
	}
	if len(subresource) == 0 && sampleKinds[i].Plural != kind.Namespaces.Plural {
		w.TB.Cleanup(func() { discard(w.TB, client, obj.GetName()) })
	}
}

// discard removes what other tests would come across.
func discard(tb testing.TB, client dynamic.ResourceInterface, name string) {
	if err := client.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		tb.Error(err)
	}
}
