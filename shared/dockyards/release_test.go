package dockyards

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// release is one that was created some minutes after the hour.
func release(namespace, name string, minutes int, change ...func(*unstructured.Unstructured)) unstructured.Unstructured {
	obj := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"type": TypeTalosInstaller}}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetAnnotations(map[string]string{annotationDefaultRelease: "false"})
	obj.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC)))
	for _, do := range change {
		do(&obj)
	}
	return obj
}

func TestTheDefaultReleaseIsTheOneThatIsMarked(t *testing.T) {
	unmarked := func(obj *unstructured.Unstructured) { obj.SetAnnotations(nil) }
	other := func(obj *unstructured.Unstructured) {
		obj.Object["spec"] = map[string]any{"type": "KubernetesReleases"}
	}
	going := func(obj *unstructured.Unstructured) {
		now := metav1.Now()
		obj.SetDeletionTimestamp(&now)
	}
	cases := map[string]struct {
		reason   string
		releases []unstructured.Unstructured
		want     string
		several  bool
	}{
		"None":          {reason: "that is a normal state"},
		"NotMarked":     {reason: "presence of the annotation counts", releases: []unstructured.Unstructured{release("a", "x", 0, unmarked)}},
		"OtherType":     {reason: "machines cannot boot from it", releases: []unstructured.Unstructured{release("a", "x", 0, other)}},
		"Going":         {reason: "it will not be there", releases: []unstructured.Unstructured{release("a", "x", 0, going)}},
		"AnyValue":      {reason: "even false marks it", releases: []unstructured.Unstructured{release("a", "x", 0)}, want: "a/x"},
		"Preferred":     {reason: "its namespace comes before its age", releases: []unstructured.Unstructured{release("a", "x", 0), release("home", "y", 9)}, want: "home/y", several: true},
		"Oldest":        {reason: "then the oldest", releases: []unstructured.Unstructured{release("a", "x", 5), release("b", "y", 1)}, want: "b/y", several: true},
		"ByNamespace":   {reason: "then the namespace", releases: []unstructured.Unstructured{release("b", "a", 1), release("a", "z", 1)}, want: "a/z", several: true},
		"ByName":        {reason: "then the name", releases: []unstructured.Unstructured{release("a", "z", 1), release("a", "b", 1)}, want: "a/b", several: true},
		"OneAmongMany":  {reason: "others do not make it several", releases: []unstructured.Unstructured{release("a", "x", 1), release("a", "y", 0, unmarked)}, want: "a/x"},
		"TwoInTheFirst": {reason: "age counts within the namespace", releases: []unstructured.Unstructured{release("home", "x", 3), release("home", "y", 2), release("a", "z", 0)}, want: "home/y", several: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				found, several := DefaultRelease(rapid.Permutation(tc.releases).Draw(rt, "order"), "home")
				got := ""
				if found != nil {
					got = found.GetNamespace() + "/" + found.GetName()
				}
				if got != tc.want || several != tc.several {
					rt.Errorf("%s: %q, several: %v", tc.reason, got, several)
				}
			})
		})
	}
}
