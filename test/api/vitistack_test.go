package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/api/vitistack/crds"
	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

var (
	machines = v1alpha1.SchemeGroupVersion.WithResource("machines")

	// kinds are the resources of the group; true means namespaced.
	kinds = map[string]struct {
		resource   schema.GroupVersionResource
		namespaced bool
	}{
		"Machine":              {machines, true},
		"MachineClass":         {v1alpha1.SchemeGroupVersion.WithResource("machineclasses"), false},
		"KubevirtConfig":       {v1alpha1.SchemeGroupVersion.WithResource("kubevirtconfigs"), false},
		"NetworkConfiguration": {v1alpha1.SchemeGroupVersion.WithResource("networkconfigurations"), true},
		"Secret":               {schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, true},
	}
)

// server is an API server with our definitions.
type server struct{ env *kubetest.Env }

// definitions are ours, and what tests need of those of others.
func definitions(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	paths, err := fs.Glob(crds.FS, "*")
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for _, path := range paths {
		content, err := crds.FS.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, decode(t, content))
	}
	foreign, err := os.ReadFile("../../api/vitistack/v1alpha1/testdata/networknamespace-crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, decode(t, foreign))
}

// of is the client for an object: in its namespace, if its kind has one.
func (s server) of(t *testing.T, object *unstructured.Unstructured, namespace string) dynamic.ResourceInterface {
	t.Helper()
	kind, known := kinds[object.GetKind()]
	if !known {
		t.Fatalf("cannot tell the resource of kind %q", object.GetKind())
	}
	if !kind.namespaced {
		return s.env.Client.Resource(kind.resource)
	}
	return s.env.Client.Resource(kind.resource).Namespace(namespace)
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

func TestVitistack(t *testing.T) {
	s := start(t)
	t.Run("AcceptedManifestsAreStoredAsTheyAre", s.accepted)
	t.Run("RejectedManifestsAreRefused", s.rejected)
	t.Run("UnknownFieldsArePruned", s.pruned)
	t.Run("DefaultsAreFilledIn", s.defaulted)
	t.Run("StatusIsWrittenApart", s.statusApart)
	t.Run("StoredNullTimesBlockNothing", s.nullTimes)
	t.Run("NamespaceOfAKubevirtConfigIsCleared", s.clearedNamespace)
	t.Run("ColumnsAreFilled", s.columns)
	t.Run("SamplesApply", s.samples)
}

func (s server) accepted(t *testing.T) {
	for _, file := range archive(t, "accepted.txtar") {
		t.Run(file.Name, func(t *testing.T) {
			manifest := decode(t, file.Data)
			if err := s.store(t, manifest.DeepCopy()); err != nil {
				t.Fatalf("%s\nthe server refuses it: %v", remark(file, 0), err)
			}
		})
	}
}

// store creates an object, writes its status, and checks that what was given has
// been stored.
func (s server) store(t *testing.T, object *unstructured.Unstructured) error {
	t.Helper()
	client := s.of(t, object, s.env.Namespace(t))
	want := object.DeepCopy()
	created, err := client.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return err
	}
	if status, ok := want.Object["status"]; ok {
		created.Object["status"] = status
		_, err := client.UpdateStatus(t.Context(), created, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
		if err != nil {
			return err
		}
	}
	stored, err := client.Get(t.Context(), want.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, part := range []string{"spec", "status"} {
		for _, lost := range missing(part, want.Object[part], stored.Object[part]) {
			t.Error(lost)
		}
	}
	return nil
}

// missing lists what is not in got as it is in want.
func missing(where string, want, got any) []string {
	switch w := want.(type) {
	case nil:
		if got != nil {
			return []string{fmt.Sprintf("%s was null and is %v", where, got)}
		}
		return nil
	case map[string]any:
		g, _ := got.(map[string]any)
		var out []string
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if value, ok := g[key]; ok {
				out = append(out, missing(where+"."+key, w[key], value)...)
				continue
			}
			out = append(out, fmt.Sprintf("%s.%s has not been stored", where, key))
		}
		return out
	default:
		if diff := cmp.Diff(want, got); diff != "" {
			return []string{fmt.Sprintf("%s has been stored differently:\n%s", where, diff)}
		}
		return nil
	}
}

func (s server) rejected(t *testing.T) {
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

func (s server) pruned(t *testing.T) {
	object := decode(t, []byte(`
apiVersion: vitistack.io/v1alpha1
kind: Machine
metadata: {name: pruned}
spec:
  template: small
  colour: blue
  domain: {machine: {type: q35, chipset: none}}
`))
	created, err := s.of(t, object, s.env.Namespace(t)).Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationIgnore})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"template": "small", "domain": map[string]any{"machine": map[string]any{"type": "q35"}}}
	if diff := cmp.Diff(want, created.Object["spec"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func (s server) defaulted(t *testing.T) {
	cases := map[string]struct{ given, want string }{
		"cloud-init is noCloud": {
			given: "{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: d}, spec: {cloudInit: {userData: x}}}",
			want:  "{cloudInit: {userData: x, type: noCloud}}",
		},
		"a machine has no other default": {
			given: "{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: d}, spec: {template: small, disks: [{name: a}], networks: [{name: a}], domain: {}}}",
			want:  "{template: small, disks: [{name: a}], networks: [{name: a}], domain: {}}",
		},
		"a class is enabled, standard, and not the default": {
			given: "{apiVersion: vitistack.io/v1alpha1, kind: MachineClass, metadata: {name: d}, spec: {cpu: {cores: 1}, memory: {quantity: 1Gi}, machineProviders: []}}",
			want:  "{cpu: {cores: 1}, memory: {quantity: 1Gi}, machineProviders: [], enabled: true, default: false, category: Standard}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := decode(t, []byte(tc.given))
			created, err := s.of(t, object, s.env.Namespace(t)).Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Fatal(err)
			}
			want := decode(t, []byte("{apiVersion: v1, kind: Any, spec: "+tc.want+"}"))
			if diff := cmp.Diff(want.Object["spec"], created.Object["spec"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func (s server) statusApart(t *testing.T) {
	client := s.env.Client.Resource(machines).Namespace(s.env.Namespace(t))
	object := decode(t, []byte("{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: m}, spec: {template: small}, status: {phase: Running}}"))
	created, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if status, ok := created.Object["status"]; ok {
		t.Errorf("creating wrote the status %v", status)
	}
	created.Object["status"] = map[string]any{"phase": v1alpha1.PhasePending}
	created.Object["spec"] = map[string]any{"template": "large"}
	updated, err := client.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"template": "small"}, updated.Object["spec"]); diff != "" {
		t.Errorf("writing the status changed the spec:\n%s", diff)
	}
	if updated.GetGeneration() != 1 {
		t.Errorf("writing the status made generation %d", updated.GetGeneration())
	}
}

// nullTimes takes the way of an object that upstream stored, with two conditions
// of one type and without times, through every kind of write.
func (s server) nullTimes(t *testing.T) {
	client := s.env.Client.Resource(machines).Namespace(s.env.Namespace(t))
	object := decode(t, []byte("{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: m}, spec: {name: m}}"))
	stored, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	unknown := map[string]any{"type": "Unknown", "status": "Unknown", "lastTransitionTime": nil}
	stored.Object["status"] = map[string]any{"lastUpdated": nil, "conditions": []any{unknown, unknown}}
	stored, err = client.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatalf("cannot store what upstream stores: %v", err)
	}
	if diff := cmp.Diff([]any{unknown, unknown}, conditions(stored)); diff != "" {
		t.Fatalf("the server has stored something else (-want +got):\n%s", diff)
	}

	stored.Object["spec"].(map[string]any)["template"] = "small"
	stored, err = client.Update(t.Context(), stored, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatalf("cannot change the spec: %v", err)
	}
	stored.Object["status"].(map[string]any)["phase"] = v1alpha1.PhasePending
	if _, err = client.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		t.Fatalf("cannot change the status: %v", err)
	}
	apply := decode(t, []byte("{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: m, annotations: {a: b}}}"))
	if stored, err = client.Apply(t.Context(), "m", apply, metav1.ApplyOptions{FieldManager: "test"}); err != nil {
		t.Fatalf("cannot apply an annotation: %v", err)
	}

	// What the function does: it reads into the types, drops these, sets its own.
	machine := &v1alpha1.Machine{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, machine); err != nil {
		t.Fatal(err)
	}
	ready := v1alpha1.MachineCondition{Type: v1alpha1.ConditionReady, Status: v1alpha1.ConditionFalse, Reason: v1alpha1.ReasonCreating}
	at := metav1.Unix(1_772_359_200, 0)
	machine.Status.Conditions = v1alpha1.SetCondition(v1alpha1.DropUpstreamUnknown(machine.Status.Conditions), ready, at)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(machine)
	if err != nil {
		t.Fatal(err)
	}
	stored, err = client.UpdateStatus(t.Context(), &unstructured.Unstructured{Object: content}, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatalf("cannot write the status through the types: %v", err)
	}
	want := []any{map[string]any{
		"type": "Ready", "status": "False", "reason": "Creating", "lastTransitionTime": "2026-03-01T10:00:00Z",
	}}
	if diff := cmp.Diff(want, conditions(stored)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func conditions(object *unstructured.Unstructured) any {
	status, _ := object.Object["status"].(map[string]any)
	return status["conditions"]
}

func (s server) clearedNamespace(t *testing.T) {
	object := decode(t, []byte("{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: anywhere, namespace: kubevirt-configs}, spec: {kubeconfigSecretRef: s}}"))
	created, err := s.of(t, object, "").Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	if created.GetNamespace() != "" {
		t.Errorf("it has been stored in namespace %q", created.GetNamespace())
	}
}

func (s server) columns(t *testing.T) {
	namespace := s.env.Namespace(t)
	object := decode(t, []byte("{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: m}, spec: {template: small, provider: kubevirt, machineClass: medium}}"))
	client := s.of(t, object, namespace)
	created, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Object["status"] = map[string]any{
		"phase": "Running", "state": "Running", "publicIPAddresses": []any{"10.0.0.7"},
		"kubevirtConfigRef": "cluster-east", "nodeName": "node-1", "vmName": "vm-m",
	}
	if _, err := client.UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	table := s.table(t, "/apis/vitistack.io/v1alpha1/namespaces/"+namespace+"/machines")
	var columns []string
	for i, column := range table.ColumnDefinitions {
		if column.Name != "Age" {
			columns = append(columns, fmt.Sprintf("%s=%v", column.Name, table.Rows[0].Cells[i]))
		}
	}
	want := []string{
		"Name=m", "Phase=Running", "State=Running", `Public IPs=["10.0.0.7"]`, "Provider=kubevirt", "Machine Class=medium",
		"Template=small", "Cluster=cluster-east", "Node=node-1", "VM=vm-m",
	}
	if diff := cmp.Diff(want, columns); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// table is what kubectl get prints.
func (s server) table(t *testing.T, at string) metav1.Table {
	t.Helper()
	client, err := rest.HTTPClientFor(s.env.Config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.env.Config.Host+at, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s: %v", at, response.Status, err)
	}
	var table metav1.Table
	if err := json.Unmarshal(answer, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("%s has %d rows, want 1", at, len(table.Rows))
	}
	return table
}

func (s server) samples(t *testing.T) {
	const folder = "../../deploy/samples/vitistack"
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	namespace := s.env.Namespace(t)
	for _, at := range paths {
		name := filepath.Base(at)
		if name == "kustomization.yaml" {
			continue
		}
		names = append(names, name)
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(at)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(content), "# ") {
				t.Error("it does not begin by saying what it is")
			}
			for _, document := range strings.Split(string(content), "\n---\n") {
				s.apply(t, decode(t, []byte(document)), namespace)
			}
		})
	}
	listed := listedResources(t, filepath.Join(folder, "kustomization.yaml"))
	if diff := cmp.Diff(names, listed); diff != "" {
		t.Errorf("kustomization.yaml does not list the samples (-have +listed):\n%s", diff)
	}
}

func (s server) apply(t *testing.T, object *unstructured.Unstructured, namespace string) {
	t.Helper()
	client := s.of(t, object, namespace)
	// ApplyOptions cannot ask for strict validation; a patch can.
	body, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Patch(t.Context(), object.GetName(), types.ApplyPatchType, body, metav1.PatchOptions{
		FieldManager: "samples", FieldValidation: metav1.FieldValidationStrict,
	})
	if err != nil {
		t.Errorf("%s %q: %v", object.GetKind(), object.GetName(), err)
	}
}

func listedResources(t *testing.T, at string) []string {
	t.Helper()
	content, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct{ Resources []string }
	if err := yaml.Unmarshal(content, &kustomization); err != nil {
		t.Fatal(err)
	}
	return kustomization.Resources
}

func TestKustomizationOfTheDefinitionsListsThemAll(t *testing.T) {
	paths, err := fs.Glob(crds.FS, "*")
	if err != nil {
		t.Fatal(err)
	}
	listed := listedResources(t, "../../api/vitistack/crds/kustomization.yaml")
	if diff := cmp.Diff(paths, listed); diff != "" {
		t.Errorf("-have +listed:\n%s", diff)
	}
}
