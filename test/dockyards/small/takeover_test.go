package small

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/test/suite"
)

// leftBehind are the objects as upstream leaves them: an image of the version before,
// the image in use, the data source that was pointed at once, and rights for
// everybody. UID stands for the Release's.
const leftBehind = `
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata:
  name: talos-v1.11.0
  annotations: {cdi.kubevirt.io/storage.bind.immediate.requested: ""}
  labels: {dockyards.io/release-name: talos}
  ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Release, name: talos, uid: UID}]
spec:
  source: {http: {url: "https://factory.example.org/image/a/v1.11.0/nocloud-amd64.raw.xz"}}
  storage: {accessModes: [ReadWriteMany], resources: {requests: {storage: 8Gi}}, storageClassName: rook-ceph-block, volumeMode: Block}
status: {phase: Succeeded, progress: 100.0%}
---
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata:
  name: talos-v1.12.0
  annotations: {cdi.kubevirt.io/storage.bind.immediate.requested: ""}
  labels: {dockyards.io/release-name: talos}
  ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Release, name: talos, uid: UID}]
spec:
  source: {http: {url: "https://factory.example.org/image/a/v1.12.0/nocloud-amd64.raw.xz"}}
  storage: {accessModes: [ReadWriteMany], resources: {requests: {storage: 8Gi}}, storageClassName: rook-ceph-block, volumeMode: Block}
status: {phase: PHASE, progress: 100.0%}
---
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataSource
metadata:
  name: talos
  labels: {dockyards.io/release-name: talos}
spec: {source: {pvc: {name: talos-v1.12.0, namespace: NAMESPACE}}}
status: {conditions: [{type: Ready, status: "True", lastHeartbeatTime: "2026-03-01T10:00:00Z", lastTransitionTime: "2026-03-01T10:00:00Z"}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: talos}
rules: [{apiGroups: [cdi.kubevirt.io], resources: [datavolumes/source], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: talos}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: talos}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts"}]
`

// takenOver is a world as upstream leaves it, with one pool.
func takenOver(t *testing.T, phase string, change func(string) string) *world {
	t.Helper()
	w := newWorld(t)
	w.CreateAs(upstream, `{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: talos}, spec: {type: TalosInstaller}}`)
	w.released("v1.12.0", address("v1.12.0"))
	w.pool("a-worker")
	uid := string(w.Must(dockyards.Releases, subject).GetUID())
	text := strings.NewReplacer("UID", uid, "NAMESPACE", w.NS, "PHASE", phase).Replace(leftBehind)
	if change != nil {
		text = change(text)
	}
	w.CreateAs(upstream, text)
	return w
}

// settled carries the function through three passes of every event and a resync, and
// wants the second and later ones to write nothing.
func (w *world) settled() *suite.Copy {
	w.TB.Helper()
	f := w.importer()
	f.Insist(w.Event(dockyards.Releases, subject))
	f.Rests(w.events()...)
	return f
}

// differing are the paths of an object at which two lives of it differ, but for what
// every write changes.
func differing(t *testing.T, before, after suite.Life) []string {
	t.Helper()
	objects := make([]map[string]any, 2)
	for i, life := range []suite.Life{before, after} {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON([]byte(life.Bytes)); err != nil {
			t.Fatal(err)
		}
		unstructured.RemoveNestedField(obj.Object, "metadata", "managedFields")
		unstructured.RemoveNestedField(obj.Object, "metadata", "resourceVersion")
		objects[i] = obj.Object
	}
	var paths []string
	for _, section := range []string{"spec", "status", "rules", "roleRef", "subjects"} {
		if !cmp.Equal(objects[0][section], objects[1][section]) {
			paths = append(paths, section)
		}
	}
	a, _ := objects[0]["metadata"].(map[string]any)
	b, _ := objects[1]["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations", "ownerReferences", "generation", "uid", "name", "finalizers", "creationTimestamp"} {
		if !cmp.Equal(a[field], b[field]) {
			paths = append(paths, "metadata."+field)
		}
	}
	return paths
}

func TestUpstreamsObjectsAreTakenOver(t *testing.T) {
	cases := map[string]struct {
		reason string
		phase  string
		change func(string) string
		// want are the paths that adoption changes, by object; every other object stays
		// as it is, byte for byte.
		want map[string][]string
	}{
		"AsTheyAre": {
			reason: "owner references, and the subjects",
			phase:  "Succeeded",
			want: map[string][]string{
				"DataSource/talos": {"metadata.ownerReferences"}, "Role/talos": {"metadata.ownerReferences"},
				"RoleBinding/talos": {"subjects", "metadata.ownerReferences"},
			},
		},
		"ImportNotFinished": {
			reason: "the data source leads to an unfinished import, and stays there", phase: "ImportInProgress",
			want: map[string][]string{
				"DataSource/talos": {"metadata.ownerReferences"}, "Role/talos": {"metadata.ownerReferences"},
				"RoleBinding/talos": {"subjects", "metadata.ownerReferences"},
			},
		},
		"ImportFailed": {
			reason: "the data source leads to a failed import, and stays there", phase: "Failed",
			want: map[string][]string{
				"DataSource/talos": {"metadata.ownerReferences"}, "Role/talos": {"metadata.ownerReferences"},
				"RoleBinding/talos": {"subjects", "metadata.ownerReferences"},
			},
		},
		"MarksAreMissing": {
			reason: "an image loses nothing and gets its marks", phase: "Succeeded",
			change: func(text string) string {
				head, tail, _ := strings.Cut(text, "---\n")
				first, rest, _ := strings.Cut(tail, "---\n")
				for _, line := range []string{"labels", "annotations", "ownerReferences"} {
					i := strings.Index(first, "  "+line)
					j := strings.Index(first[i:], "\n")
					first = first[:i] + strings.TrimLeft(first[i+j:], "\n")
				}
				return head + "---\n" + first + "---\n" + rest
			},
			want: map[string][]string{
				"DataVolume/talos-v1.12.0": {"metadata.labels", "metadata.annotations", "metadata.ownerReferences"},
				"DataSource/talos":         {"metadata.ownerReferences"}, "Role/talos": {"metadata.ownerReferences"},
				"RoleBinding/talos": {"subjects", "metadata.ownerReferences"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := takenOver(t, tc.phase, tc.change)
			before := w.Snapshot()
			w.settled()
			after := w.Snapshot()
			for key, life := range before {
				now, there := after[key]
				want, changes := tc.want[key]
				switch {
				case !there || now.UID != life.UID || now.Generation != life.Generation:
					t.Errorf("%s: %s was recreated, deleted, or its spec has changed", tc.reason, key)
				case !changes && now != life:
					t.Errorf("%s: %s has changed:\n%s", tc.reason, key, cmp.Diff(life.Bytes, now.Bytes))
				case changes:
					if diff := cmp.Diff(want, differing(t, life, now)); diff != "" {
						t.Errorf("%s: what has changed of %s (-want +got):\n%s", tc.reason, key, diff)
					}
				}
			}
			if len(after) != len(before) {
				t.Errorf("%s: there were %d objects, there are %d", tc.reason, len(before), len(after))
			}
		})
	}
}

// TestAnImageWithAnotherURLIsReplacedNotChanged: upstream's patch of it came to
// nothing, since images are immutable.
func TestAnImageWithAnotherURLIsReplacedNotChanged(t *testing.T) {
	w := takenOver(t, "Succeeded", func(text string) string {
		return strings.Replace(text, "image/a/v1.12.0", "image/older/v1.12.0", 1)
	})
	before := w.Snapshot()
	f := w.settled()
	images := w.images()
	if len(images) != 3 || w.leadsTo() != "talos-v1.12.0" || w.Snapshot()["DataVolume/talos-v1.12.0"] != before["DataVolume/talos-v1.12.0"] {
		t.Fatalf("there are %v, the data source leads to %q", images, w.leadsTo())
	}
	w.imported(images[2], "Succeeded")
	f.Insist(w.Event(dockyards.DataVolumes, images[2]))
	f.Insist(w.Event(dockyards.DataSources, subject))
	// The image in use before is superseded now; the one before takeover stays.
	if diff := cmp.Diff([]string{"talos-v1.11.0", images[2]}, w.images()); diff != "" || w.leadsTo() != images[2] {
		t.Errorf("the data source leads to %q (-want +got):\n%s", w.leadsTo(), diff)
	}
	if w.Snapshot()["DataVolume/talos-v1.11.0"] != before["DataVolume/talos-v1.11.0"] {
		t.Error("an image that was superseded before takeover has been changed")
	}
	f.Rests(w.events()...)
}

// TestALateWriteOfUpstreamIsSurvived: it replaces owner references and labels, and
// opens the rights again.
func TestALateWriteOfUpstreamIsSurvived(t *testing.T) {
	w := takenOver(t, "Succeeded", nil)
	f := w.settled()
	want := w.State()
	for _, late := range []struct {
		res    kind.Resource
		change func(obj *unstructured.Unstructured)
	}{
		{dockyards.DataSources, func(obj *unstructured.Unstructured) { obj.SetOwnerReferences(nil) }},
		{dockyards.Roles, func(obj *unstructured.Unstructured) { obj.SetOwnerReferences(nil) }},
		{dockyards.RoleBindings, func(obj *unstructured.Unstructured) {
			obj.SetOwnerReferences(nil)
			obj.Object["subjects"] = []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts"}}
		}},
	} {
		w.Update(late.res, subject, upstream, late.change)
		f.Insist(w.Event(late.res, subject))
	}
	if diff := cmp.Diff(want, w.State()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	f.Rests(w.events()...)
}
