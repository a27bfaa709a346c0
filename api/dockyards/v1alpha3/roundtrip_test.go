package v1alpha3

import (
	stdjson "encoding/json"
	"fmt"
	"math/rand"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// kinds are empty objects of the group, by kind, lists among them.
func kinds(t *testing.T) map[string]runtime.Object {
	t.Helper()
	scheme, out := newScheme(t), map[string]runtime.Object{}
	for kind := range scheme.KnownTypes(SchemeGroupVersion) {
		object, err := scheme.New(SchemeGroupVersion.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		if reflect.TypeOf(object).Elem().PkgPath() == reflect.TypeFor[Cluster]().PkgPath() {
			out[kind] = object
		}
	}
	if len(out) != 20 {
		t.Fatalf("the scheme has %d kinds, want ten and their lists", len(out))
	}
	return out
}

func TestEveryKindSurvivesEncodingAndCopying(t *testing.T) {
	// A fixed seed: a failure can be seen again.
	fill := randfill.New().RandSource(rand.NewSource(1)).NilChance(0.3).NumElements(1, 3).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1<<40), resource.BinarySI)
		},
		func(m *metav1.Time, c randfill.Continue) { *m = metav1.NewTime(time.Unix(1+c.Int63n(1<<32), 0)) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{"f:spec":{}}`) },
		func(m *metav1.TypeMeta, _ randfill.Continue) { *m = metav1.TypeMeta{} },
		func(j *apiextensionsv1.JSON, c randfill.Continue) {
			j.Raw = []byte(fmt.Sprintf(`{"a":[%d,"b"]}`, c.Int63n(1000)))
		},
	)
	for kind, object := range kinds(t) {
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
	// What a schema requires is always written.
	required := map[string]string{"Organization": `{"spec":{}}`}
	for kind, object := range kinds(t) {
		want := "{}"
		if special, ok := required[kind]; ok {
			want = special
		}
		if strings.HasSuffix(kind, "List") {
			want = `{"items":null}`
		}
		encoded, err := stdjson.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(encoded); got != want {
			t.Errorf("an empty %s is written as %s", kind, got)
		}
	}
}

// manifests are those that the API server must accept, as YAML by name.
func manifests(t *testing.T) map[string][]byte {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("..", "..", "..", "test", "dockyards", "api", "testdata", "accepted.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, file := range archive.Files {
		out[file.Name] = file.Data
	}
	return out
}

func TestEncodingAManifestInventsNothing(t *testing.T) {
	decoder := serializer.NewCodecFactory(newScheme(t), serializer.EnableStrict).UniversalDeserializer()
	for name, manifest := range manifests(t) {
		t.Run(name, func(t *testing.T) {
			var given map[string]any
			if err := yaml.Unmarshal(manifest, &given); err != nil {
				t.Fatal(err)
			}
			object, _, err := decoder.Decode(manifest, nil, nil)
			if err != nil {
				t.Fatalf("the types do not hold the manifest: %v", err)
			}
			encoded, err := stdjson.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			var written map[string]any
			if err := stdjson.Unmarshal(encoded, &written); err != nil {
				t.Fatal(err)
			}
			for _, difference := range differences("", given, written) {
				t.Error(difference)
			}
		})
	}
}

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
		// The shared reference types write a missing group as null, which a server
		// drops.
		if _, ok := g[key]; !ok && (key != "apiGroup" || value != nil) {
			out = append(out, fmt.Sprintf("%s.%s: %v was invented", path, key, value))
		}
	}
	for key, value := range g {
		switch kept, ok := w[key]; {
		case ok:
			out = append(out, differences(path+"."+key, value, kept)...)
		case !unset(value):
			out = append(out, fmt.Sprintf("%s.%s: %v was lost", path, key, value))
		}
	}
	slices.Sort(out)
	return out
}

// unset tells whether a value says nothing: a zero, or a struct of zeros.
func unset(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, below := range v {
			if !unset(below) {
				return false
			}
		}
		return true
	}
	return reflect.ValueOf(value).IsZero()
}
