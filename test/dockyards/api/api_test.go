package api_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/dockyards/api"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// server is an API server with our definitions.
type server struct{ env *kubetest.Env }

func start(t *testing.T) server {
	t.Helper()
	definitions, err := api.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	return server{env: kubetest.Start(t, kubetest.Options{Objects: definitions, Servers: 2})}
}

// resources of the group; true means namespaced.
var resources = map[string]struct {
	plural     string
	namespaced bool
}{
	v1alpha3.KindCluster: {"clusters", true}, v1alpha3.KindDNSZone: {"dnszones", true}, v1alpha3.KindNode: {"nodes", true},
	v1alpha3.KindNodePool: {"nodepools", true}, v1alpha3.KindOrganization: {"organizations", false}, v1alpha3.KindRelease: {"releases", true},
	v1alpha3.KindWorkload: {"workloads", true}, v1alpha3.KindWorkloadInventory: {"workloadinventories", true},
	v1alpha3.KindWorkloadTemplate: {"workloadtemplates", true}, v1alpha3.KindWorktree: {"worktrees", true},
}

func (s server) of(t *testing.T, object *unstructured.Unstructured, namespace string) dynamic.ResourceInterface {
	t.Helper()
	res, known := resources[object.GetKind()]
	if !known {
		t.Fatalf("cannot tell the resource of kind %q", object.GetKind())
	}
	client := s.env.Client.Resource(v1alpha3.SchemeGroupVersion.WithResource(res.plural))
	if !res.namespaced {
		return client
	}
	return client.Namespace(namespace)
}

func decode(t *testing.T, manifest []byte) *unstructured.Unstructured {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(manifest)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(asJSON); err != nil {
		t.Fatal(err)
	}
	return object
}

func archive(t *testing.T, name string) []txtar.File {
	t.Helper()
	parsed, err := txtar.ParseFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Files
}

// remark is the text of the n-th line, which is a comment.
func remark(file txtar.File, n int) string {
	return strings.TrimPrefix(strings.Split(string(file.Data), "\n")[n], "# ")
}

// store creates an object, writes its status, and returns what has been stored.
func (s server) store(t *testing.T, object *unstructured.Unstructured, validation string) *unstructured.Unstructured {
	t.Helper()
	client := s.of(t, object, s.env.Namespace(t))
	status, has := object.Object["status"]
	stored, err := client.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: validation})
	if err != nil {
		t.Fatalf("the server refuses it: %v", err)
	}
	if !resources[object.GetKind()].namespaced {
		t.Cleanup(func() {
			_ = client.Delete(context.WithoutCancel(t.Context()), object.GetName(), metav1.DeleteOptions{})
		})
	}
	if has {
		stored.Object["status"] = status
		if stored, err = client.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{FieldValidation: validation}); err != nil {
			t.Fatalf("the server refuses its status: %v", err)
		}
	}
	return stored
}

func TestAcceptedManifestsAreStoredAsTheyAre(t *testing.T) {
	s := start(t)
	for _, file := range archive(t, "accepted.txtar") {
		t.Run(file.Name, func(t *testing.T) {
			manifest := decode(t, file.Data)
			stored := s.store(t, manifest.DeepCopy(), metav1.FieldValidationStrict)
			for _, part := range []string{"spec", "status"} {
				if diff := cmp.Diff(manifest.Object[part], stored.Object[part]); diff != "" {
					t.Errorf("%s\n%s has been stored differently (-given +stored):\n%s", remark(file, 0), part, diff)
				}
			}
		})
	}
}

func TestRejectedManifestsAreRefused(t *testing.T) {
	s := start(t)
	namespace := s.env.Namespace(t)
	for _, file := range archive(t, "rejected.txtar") {
		t.Run(file.Name, func(t *testing.T) {
			object := decode(t, file.Data)
			_, err := s.of(t, object, namespace).Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			switch {
			case err == nil:
				t.Errorf("%s\nthe server takes it", remark(file, 0))
			case !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
				t.Errorf("%s\nthe server refuses it for another reason: %v", remark(file, 0), err)
			case !strings.Contains(err.Error(), remark(file, 1)):
				t.Errorf("%s\ngot  %v\nwant %s", remark(file, 0), err, remark(file, 1))
			}
		})
	}
}

func TestDefinitionsAreStructural(t *testing.T) {
	s := start(t)
	list, err := s.env.Client.Resource(kind.CRDs.GVR()).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, crd := range list.Items {
		if !strings.HasSuffix(crd.GetName(), "."+v1alpha3.GroupName) {
			continue
		}
		found++
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, item := range conditions {
			condition, _ := item.(map[string]any)
			if condition["type"] == "NonStructuralSchema" && condition["status"] != "False" {
				t.Errorf("%s: %v", crd.GetName(), condition["message"])
			}
		}
	}
	if found != len(resources) {
		t.Errorf("%d definitions are installed, want %d", found, len(resources))
	}
}

func TestUnknownFieldsArePruned(t *testing.T) {
	s := start(t)
	object := decode(t, []byte(`
apiVersion: dockyards.io/v1alpha3
kind: NodePool
metadata: {name: pruned}
spec: {replicas: 1, colour: blue, security: {enableAppArmor: true, level: high}}
`))
	stored := s.store(t, object, metav1.FieldValidationIgnore)
	want := map[string]any{"replicas": int64(1), "security": map[string]any{"enableAppArmor": true}}
	if diff := cmp.Diff(want, stored.Object["spec"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnyJSONIsKept(t *testing.T) {
	s := start(t)
	object := decode(t, []byte(`
apiVersion: dockyards.io/v1alpha3
kind: Workload
metadata: {name: kept}
spec: {targetNamespace: a, provenience: User, input: {deep: {er: [1, {a: b}]}, text: c}}
`))
	want := object.DeepCopy().Object["spec"]
	stored := s.store(t, object, metav1.FieldValidationStrict)
	if diff := cmp.Diff(want, stored.Object["spec"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOnlyTheNamespaceReferenceHasADefault(t *testing.T) {
	s := start(t)
	object := decode(t, []byte("{apiVersion: dockyards.io/v1alpha3, kind: Organization, metadata: {name: defaulted}, spec: {namespaceRef: {}}}"))
	stored := s.store(t, object, metav1.FieldValidationStrict)
	want := map[string]any{"namespaceRef": map[string]any{"name": ""}}
	if diff := cmp.Diff(want, stored.Object["spec"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStatusIsWrittenApart(t *testing.T) {
	s := start(t)
	object := decode(t, []byte("{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: apart}, spec: {type: TalosInstaller}, status: {latestVersion: v1}}"))
	client := s.of(t, object, s.env.Namespace(t))
	stored, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if status, ok := stored.Object["status"]; ok {
		t.Errorf("creating wrote the status %v", status)
	}
	stored.Object["spec"] = map[string]any{"type": "KubernetesReleases"}
	stored.Object["status"] = map[string]any{"latestVersion": "v2"}
	if stored, err = client.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"type": "TalosInstaller"}, stored.Object["spec"]); diff != "" || stored.GetGeneration() != 1 {
		t.Errorf("writing the status changed the spec, or the generation %d:\n%s", stored.GetGeneration(), diff)
	}
}

// TestTheFirstRevisionStoresAllButWhatWasAdded takes the same manifests to a server
// with the definitions of the first revision.
func TestTheFirstRevisionStoresAllButWhatWasAdded(t *testing.T) {
	definitions, err := api.FirstRevision()
	if err != nil {
		t.Fatal(err)
	}
	s := server{env: start(t).env.Remote(t, kubetest.Options{Objects: definitions})}
	for _, file := range archive(t, "accepted.txtar") {
		t.Run(file.Name, func(t *testing.T) {
			want := decode(t, file.Data)
			stored := s.store(t, want.DeepCopy(), metav1.FieldValidationIgnore)
			for _, path := range map[string][][]string{
				v1alpha3.KindCluster:  {{"spec", "authenticationConfig"}, {"spec", "advanced"}},
				v1alpha3.KindNodePool: {{"spec", "nodeLabels"}},
				v1alpha3.KindNode:     {{"status", "systemInfo", "swap"}},
			}[want.GetKind()] {
				unstructured.RemoveNestedField(want.Object, path...)
			}
			for _, part := range []string{"spec", "status"} {
				if diff := cmp.Diff(want.Object[part], stored.Object[part]); diff != "" {
					t.Errorf("%s has been stored differently (-given +stored):\n%s", part, diff)
				}
			}
		})
	}
}
