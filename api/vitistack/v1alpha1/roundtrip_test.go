package v1alpha1

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"
)

const root = "../../.."

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// manifests are the objects of our group in the samples and in the manifests
// that the API server must accept, as YAML by a name that says where it is from.
func manifests(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	add := func(name string, documents []byte) {
		for i, doc := range bytes.Split(documents, []byte("\n---\n")) {
			if bytes.Contains(doc, []byte("apiVersion: "+SchemeGroupVersion.String())) {
				out[fmt.Sprintf("%s#%d", name, i)] = doc
			}
		}
	}
	samples, err := filepath.Glob(filepath.Join(root, "deploy/samples/vitistack/*.yaml"))
	if err != nil || len(samples) == 0 {
		t.Fatalf("there are no samples: %v", err)
	}
	for _, path := range samples {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		add(filepath.Base(path), content)
	}
	archive, err := txtar.ParseFile(filepath.Join(root, "test/api/testdata/accepted.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		add(file.Name, file.Data)
	}
	return out
}

func TestEncodingAManifestInventsNothing(t *testing.T) {
	decoder := serializer.NewCodecFactory(newScheme(t), serializer.EnableStrict).UniversalDeserializer()
	for name, manifest := range manifests(t) {
		t.Run(name, func(t *testing.T) {
			asJSON, err := yaml.YAMLToJSON(manifest)
			if err != nil {
				t.Fatal(err)
			}
			var given map[string]any
			if err := json.Unmarshal(asJSON, &given); err != nil {
				t.Fatal(err)
			}
			object, _, err := decoder.Decode(manifest, nil, nil)
			if err != nil {
				t.Fatalf("the types do not hold the manifest: %v", err)
			}

			encoded, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			var written map[string]any
			if err := json.Unmarshal(encoded, &written); err != nil {
				t.Fatal(err)
			}
			for _, difference := range differences("", given, written) {
				t.Errorf("as JSON: %s", difference)
			}

			converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				t.Fatal(err)
			}
			for _, difference := range differences("", given, converted) {
				t.Errorf("as unstructured: %s", difference)
			}
		})
	}
}

// requiredWithDefault are the fields of a MachineClass that a manifest may leave
// out because the server fills them in, and that the types always write.
var requiredWithDefault = []string{".spec.enabled", ".spec.default", ".spec.category"}

// differences lists what encoding has invented, and what it has lost although it
// says something: a zero that means unset may go.
func differences(path string, given, written any) []string {
	g, isMap := given.(map[string]any)
	w, alsoMap := written.(map[string]any)
	if !isMap || !alsoMap {
		if fmt.Sprint(given) == fmt.Sprint(written) {
			return nil
		}
		return []string{fmt.Sprintf("%s was %v and became %v", path, given, written)}
	}
	var out []string
	for key, value := range w {
		at := path + "." + key
		if _, ok := g[key]; !ok && !slices.Contains(requiredWithDefault, at) {
			out = append(out, fmt.Sprintf("%s: %v was invented", at, value))
		}
	}
	for key, value := range g {
		at := path + "." + key
		switch kept, ok := w[key]; {
		case !ok && !unset(value):
			out = append(out, fmt.Sprintf("%s: %v was lost", at, value))
		case !ok:
		case isList(value) && isList(kept):
			out = append(out, listDifferences(at, value.([]any), kept.([]any))...)
		default:
			out = append(out, differences(at, value, kept)...)
		}
	}
	slices.Sort(out)
	return out
}

func listDifferences(path string, given, written []any) []string {
	if len(given) != len(written) {
		return []string{fmt.Sprintf("%s had %d entries and has %d", path, len(given), len(written))}
	}
	var out []string
	for i := range given {
		out = append(out, differences(fmt.Sprintf("%s[%d]", path, i), given[i], written[i])...)
	}
	return out
}

func isList(v any) bool { _, ok := v.([]any); return ok }

func unset(v any) bool { return v == nil || reflect.ValueOf(v).IsZero() }

func TestEveryKindSurvivesEncodingAndCopying(t *testing.T) {
	scheme := newScheme(t)
	// A fixed seed: a failure can be seen again.
	fill := randfill.New().RandSource(rand.NewSource(1)).NilChance(0.3).NumElements(1, 3).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1<<40), resource.BinarySI)
		},
		func(m *metav1.Time, c randfill.Continue) { *m = metav1.NewTime(time.Unix(1+c.Int63n(1<<32), 0)) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{"f:spec":{}}`) },
		func(m *metav1.TypeMeta, _ randfill.Continue) { *m = metav1.TypeMeta{} },
	)
	for kind := range scheme.KnownTypes(SchemeGroupVersion) {
		object, err := scheme.New(SchemeGroupVersion.WithKind(kind))
		if err != nil || reflect.TypeOf(object).Elem().PkgPath() != reflect.TypeOf(Machine{}).PkgPath() {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			for range 50 {
				fill.Fill(object)
				checkCopy(t, object)
				checkEncoding(t, object)
			}
		})
	}
}

func checkCopy(t *testing.T, object runtime.Object) {
	t.Helper()
	copied := object.DeepCopyObject()
	if !equality.Semantic.DeepEqual(object, copied) {
		t.Errorf("the copy differs:\n%s", cmp.Diff(object, copied))
	}
	if where := sharedMemory("", reflect.ValueOf(object), reflect.ValueOf(copied)); where != "" {
		t.Errorf("the copy shares its memory at %s", where)
	}
}

func checkEncoding(t *testing.T, object runtime.Object) {
	t.Helper()
	again := reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object)
	encoded, err := stdjson.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := stdjson.Unmarshal(encoded, again); err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(object, again) {
		t.Errorf("JSON changes it:\n%s", cmp.Diff(object, again))
	}

	again = reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, again); err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(object, again) {
		t.Errorf("unstructured changes it:\n%s", cmp.Diff(object, again))
	}
}

// sharedMemory is the path of a pointer, map or slice that both values hold.
// time.Time is left out: its location is a constant.
func sharedMemory(path string, a, b reflect.Value) string {
	if a.Type() == reflect.TypeFor[time.Time]() {
		return ""
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if a.IsNil() {
			return ""
		}
		if a.Pointer() == b.Pointer() {
			return path
		}
	}
	switch a.Kind() {
	case reflect.Pointer:
		return sharedMemory(path, a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if where := sharedMemory(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i)); where != "" {
				return where
			}
		}
	case reflect.Slice:
		for i := range a.Len() {
			if where := sharedMemory(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i)); where != "" {
				return where
			}
		}
	}
	return ""
}

func TestZeroObjectsAreEncodedAsNothing(t *testing.T) {
	for name, object := range map[string]runtime.Object{
		"Machine":              &Machine{},
		"KubevirtConfig":       &KubevirtConfig{},
		"NetworkConfiguration": &NetworkConfiguration{},
		"MachineClass":         &MachineClass{},
	} {
		encoded, err := stdjson.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(encoded); got != "{}" {
			t.Errorf("an empty %s is written as %s", name, got)
		}
	}
}

func TestStatusWithoutTimesHasNoNull(t *testing.T) {
	encoded, err := stdjson.Marshal(Machine{Status: MachineStatus{
		Phase:      PhasePending,
		Conditions: []MachineCondition{{Type: ConditionReady}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(encoded), "null") {
		t.Errorf("a time that is not set is written as null: %s", encoded)
	}
}
