package dockyards

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func object(namespace, name string, refs ...metav1.OwnerReference) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetUID(types.UID(namespace + "/" + name))
	obj.SetOwnerReferences(refs)
	return obj
}

func TestReferenceHasUpstreamsShape(t *testing.T) {
	want := metav1.OwnerReference{APIVersion: "dockyards.io/v1alpha3", Kind: "Cluster", Name: "prod", UID: "a/prod"}
	if diff := cmp.Diff(want, Reference(Clusters, object("a", "prod"))); diff != "" {
		t.Errorf("neither controller nor blocking (-want +got):\n%s", diff)
	}
}

func TestOwners(t *testing.T) {
	cluster := object("a", "prod")
	mine, foreign := Reference(Clusters, cluster), metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "prod", UID: "other"}
	older := mine
	older.APIVersion = "dockyards.io/v1alpha2"
	labelled := object("a", "x", foreign)
	labelled.SetLabels(map[string]string{"dockyards.io/cluster-name": "stage"})
	for name, c := range map[string]struct {
		reason string
		obj    *unstructured.Unstructured
		owned  bool
		of     string
	}{
		"owned":                    {reason: "by UID", obj: object("a", "x", foreign, mine), owned: true, of: "prod"},
		"owned in another version": {reason: "a group's versions are the same objects", obj: object("a", "x", older), owned: true, of: "prod"},
		"foreign":                  {reason: "Cluster API has a kind of that name", obj: object("a", "x", foreign)},
		"labelled":                 {reason: "the label stands in for a missing owner", obj: labelled, of: "stage"},
		"nobody's":                 {reason: "no owner, no label", obj: object("a", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OwnedBy(c.obj, cluster); got != c.owned {
				t.Errorf("%s: owned is %v", c.reason, got)
			}
			if got := ClusterOf(c.obj); got != c.of {
				t.Errorf("%s: it belongs to %q, want %q", c.reason, got, c.of)
			}
		})
	}
}

func TestSetOwnerKeepsOthersAndFlags(t *testing.T) {
	yes := true
	mine := Reference(Clusters, object("a", "prod"))
	flagged := mine
	flagged.APIVersion, flagged.Controller = "dockyards.io/v1alpha2", &yes
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "1"}
	want := mine
	want.Controller = &yes
	for name, c := range map[string]struct {
		reason     string
		have, want []metav1.OwnerReference
	}{
		"first":  {"there is none yet", nil, []metav1.OwnerReference{mine}},
		"beside": {"those of others stay", []metav1.OwnerReference{other}, []metav1.OwnerReference{other, mine}},
		"again":  {"the same UID keeps its place and flags", []metav1.OwnerReference{flagged, other}, []metav1.OwnerReference{want, other}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := object("a", "x", c.have...)
			SetOwner(obj, mine)
			if diff := cmp.Diff(c.want, obj.GetOwnerReferences()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestSetLabelsAndAnnotationsMerge(t *testing.T) {
	obj := object("a", "x")
	SetLabels(obj, nil)
	if obj.GetLabels() != nil {
		t.Error("no labels are no labels")
	}
	SetLabels(obj, map[string]string{"a": "1", "b": "2"})
	SetLabels(obj, map[string]string{"b": "3"})
	SetAnnotation(obj, "c", "4")
	SetAnnotation(obj, "d", "")
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "3"}, obj.GetLabels()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"c": "4", "d": ""}, obj.GetAnnotations()); diff != "" {
		t.Error(diff)
	}
}

func TestOlderDecidesEveryPair(t *testing.T) {
	at := func(second int, namespace, name string) *unstructured.Unstructured {
		obj := object(namespace, name)
		obj.SetCreationTimestamp(metav1.NewTime(time.Unix(int64(second), 0)))
		return obj
	}
	inOrder := []*unstructured.Unstructured{at(1, "z", "z"), at(2, "a", "b"), at(2, "a", "c"), at(2, "b", "a"), at(3, "a", "a")}
	for i, a := range inOrder {
		for j, b := range inOrder {
			got := Older(a, b)
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s/%s against %s/%s gives %d", a.GetNamespace(), a.GetName(), b.GetNamespace(), b.GetName(), got)
			}
		}
	}
}

func TestGoing(t *testing.T) {
	obj := object("a", "x")
	if Going(nil) || Going(obj) {
		t.Error("it is not going")
	}
	now := metav1.Now()
	obj.SetDeletionTimestamp(&now)
	if !Going(obj) {
		t.Error("it is going")
	}
}
