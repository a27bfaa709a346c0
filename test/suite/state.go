package suite

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/kind"
)

// What differs from run to run, and is no difference:
//
//   - uid, resourceVersion, generation and managedFields are given by the server.
//     UIDs that stand elsewhere, in owner references and in annotations, become
//     the name of what they belong to.
//   - Times say when a test ran.
//   - The namespace's name, and the UID of kube-system as the installation.
//   - What a suite's Options.Plain takes out and Options.Derived replaces, each with
//     its reason there.
var timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// serverFields are those of metadata that the server gives.
var serverFields = []string{"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp", "deletionGracePeriodSeconds"}

func (w *World) list(res kind.Resource) []unstructured.Unstructured {
	w.TB.Helper()
	list, err := w.In(res).List(w.TB.Context(), metav1.ListOptions{})
	if err != nil {
		w.TB.Fatal(err)
	}
	return list.Items
}

// Objects are all of the world, by "Kind/name".
func (w *World) Objects() map[string]*unstructured.Unstructured {
	w.TB.Helper()
	all := map[string]*unstructured.Unstructured{}
	for _, res := range w.suite.opts.Kinds {
		items := w.list(res)
		for i := range items {
			theirs := !res.Namespaced && w.earlier[string(items[i].GetUID())]
			if !theirs && items[i].GetName() != "kube-root-ca.crt" {
				all[res.Kind+"/"+items[i].GetName()] = &items[i]
			}
		}
	}
	return all
}

// Names are kind and name of everything in the world.
func (w *World) Names() []string {
	w.TB.Helper()
	return slices.Sorted(maps.Keys(w.Objects()))
}

// State is everything in the world, without what differs from run to run.
func (w *World) State() map[string]string {
	w.TB.Helper()
	objs := w.Objects()
	replace := w.Replacer(objs)
	all := map[string]string{}
	for key, obj := range objs {
		if w.suite.opts.Sort != nil {
			obj = obj.DeepCopy()
			w.suite.opts.Sort(obj)
		}
		all[key] = w.Normal(obj, replace)
	}
	return all
}

// Documents are the objects of the world but for some, as a stream of documents for
// [Golden].
func (w *World) Documents(except ...string) string {
	w.TB.Helper()
	var stream strings.Builder
	objs := w.Objects()
	replace := w.Replacer(objs)
	for _, key := range slices.Sorted(maps.Keys(objs)) {
		if !slices.Contains(except, key) {
			fmt.Fprintf(&stream, "---\n# %s\n%s", key, w.Normal(objs[key], replace))
		}
	}
	return stream.String()
}

var update = flag.Bool("update", false, "write the goldens below testdata anew")

// Golden compares a text with a file of the package's testdata; with -update it
// writes that file.
func Golden(tb testing.TB, name, got string) {
	tb.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // it is for everybody to read
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(path) //nolint:gosec // a file of the test's own
	if err != nil {
		tb.Fatalf("%v: run the tests with -update", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		tb.Errorf("%s is not what its golden says; if it should be, run the tests with -update (-golden +got):\n%s", name, diff)
	}
}

// Normal is one object as text, without what differs from run to run.
func (w *World) Normal(obj *unstructured.Unstructured, replace *strings.Replacer) string {
	w.TB.Helper()
	plain := Bare(obj)
	if w.suite.opts.Plain != nil {
		w.suite.opts.Plain(plain)
	}
	raw, err := yaml.Marshal(EachString(plain.Object, func(s string) string {
		return timestamps.ReplaceAllString(replace.Replace(s), "TIME")
	}))
	if err != nil {
		w.TB.Fatal(err)
	}
	return string(raw)
}

// Bare is an object without what the server gave it.
func Bare(obj *unstructured.Unstructured) *unstructured.Unstructured {
	bare := obj.DeepCopy()
	for _, field := range serverFields {
		unstructured.RemoveNestedField(bare.Object, "metadata", field)
	}
	return bare
}

// EachString is a value with every string in it changed.
func EachString(value any, change func(string) string) any {
	switch v := value.(type) {
	case string:
		return change(v)
	case map[string]any:
		for key, child := range v {
			v[key] = EachString(child, change)
		}
	case []any:
		for i, child := range v {
			v[i] = EachString(child, change)
		}
	}
	return value
}

// Replacer turns what is derived from UIDs into what it is derived from.
func (w *World) Replacer(objs map[string]*unstructured.Unstructured) *strings.Replacer {
	w.TB.Helper()
	pairs := []string{w.NS, "NAMESPACE", w.Installation(), "INSTALLATION"}
	for _, key := range slices.Sorted(maps.Keys(objs)) {
		pairs = append(pairs, string(objs[key].GetUID()), "UID("+key+")")
	}
	if w.suite.opts.Derived != nil {
		pairs = append(pairs, w.suite.opts.Derived(w, objs)...)
	}
	return strings.NewReplacer(pairs...)
}

// Installation is the UID of the cluster's namespace kube-system.
func (w *World) Installation() string {
	w.TB.Helper()
	return string(w.Must(kind.Namespaces, "kube-system").GetUID())
}

// Life is an object at one moment: an object that was made anew has another UID,
// one that was written another version.
type Life struct {
	UID, Version, Bytes string
	Generation          int64
}

// Snapshot is every object of the world at this moment, byte for byte.
func (w *World) Snapshot() map[string]Life {
	w.TB.Helper()
	all := map[string]Life{}
	for key, obj := range w.Objects() {
		raw, err := json.Marshal(obj.Object)
		if err != nil {
			w.TB.Fatal(err)
		}
		all[key] = Life{UID: string(obj.GetUID()), Version: obj.GetResourceVersion(), Bytes: string(raw), Generation: obj.GetGeneration()}
	}
	return all
}

// Lives are the UIDs of everything in the world: what is deleted and made anew looks
// the same but for them.
func (w *World) Lives() map[string]string {
	w.TB.Helper()
	all := map[string]string{}
	for key, obj := range w.Objects() {
		all[key] = string(obj.GetUID())
	}
	return all
}

// Versions are the resource versions of everything in the world.
func (w *World) Versions() map[string]string {
	w.TB.Helper()
	all := map[string]string{}
	for key, obj := range w.Objects() {
		all[key] = string(obj.GetUID()) + " " + obj.GetResourceVersion()
	}
	return all
}
