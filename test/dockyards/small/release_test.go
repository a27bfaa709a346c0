package small

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	releaseimporter "github.com/slipway-dev/slipway/functions/release-importer"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/test/suite"
)

// subject is the Release of most tests.
const subject = "talos"

func address(version string) string {
	return "https://factory.example.org/image/a/" + version + "/nocloud-amd64.raw.xz"
}

// release makes the subject as its maker and dockyards-talos do.
func (w *world) release(version, url string) {
	w.TB.Helper()
	w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: ` + subject + `}, spec: {type: TalosInstaller, ranges: [">=1.12.0"]}}`)
	w.released(version, url)
}

// released is what dockyards-talos says of the subject.
func (w *world) released(version, url string) {
	w.TB.Helper()
	w.setStatus(dockyards.Releases, subject, "dockyards-talos", func(status map[string]any) {
		status["latestVersion"], status["latestURL"] = version, url
	})
}

// imported plays CDI.
func (w *world) imported(image, phase string) {
	w.TB.Helper()
	w.setStatus(dockyards.DataVolumes, image, "cdi", func(status map[string]any) { status["phase"] = phase })
}

func (w *world) pool(name string) {
	w.TB.Helper()
	w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: NodePool, metadata: {name: ` + name + `}, spec: {replicas: 1}}`)
}

// leadsTo is the image that the DataSource names.
func (w *world) leadsTo() string {
	w.TB.Helper()
	source := w.Get(dockyards.DataSources, subject)
	if source == nil {
		return ""
	}
	return suite.Text(source, "spec", "source", "pvc", "name")
}

// events are those of everything that the subject depends on.
func (w *world) events() []cloudevents.Event {
	list := []cloudevents.Event{w.Event(dockyards.Releases, subject)}
	for _, key := range w.Names() {
		kindName, name, _ := strings.Cut(key, "/")
		for _, res := range watched {
			if res.Kind == kindName {
				list = append(list, w.changed("add", res, name))
			}
		}
	}
	return list
}

func TestAReleaseIsImportedAndOffered(t *testing.T) {
	w := newWorld(t)
	w.pool("a-worker")
	w.release("v1.12.0", address("v1.12.0"))
	f := w.importer()
	f.Insist(w.Event(dockyards.Releases, subject))
	want := []string{
		"create datavolumes.cdi.kubevirt.io " + w.NS + " 201",
		"create roles.rbac.authorization.k8s.io " + w.NS + " 201",
		"create rolebindings.rbac.authorization.k8s.io " + w.NS + " 201",
	}
	if diff := cmp.Diff(want, w.writes(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	suite.Golden(t, "first-pass.yaml", w.Documents("Release/talos", "NodePool/a-worker"))
	w.tells(subject, "ImportStarted")
	f.Rests(w.events()...)

	w.imported("talos-v1.12.0", "ImportInProgress")
	f.Rests(w.events()...)
	w.imported("talos-v1.12.0", "Succeeded")
	f.Insist(w.Event(dockyards.DataVolumes, "talos-v1.12.0"))
	suite.Golden(t, "imported.yaml", w.Documents("Release/talos", "NodePool/a-worker", "Role/talos", "RoleBinding/talos", "DataVolume/talos-v1.12.0"))
	w.tells(subject, "ImportStarted", "ImageReady")
	f.Rests(w.events()...)

	// A new version: the old image stays in use until the new one is there, and then
	// until nobody clones it.
	w.released("v1.12.1", address("v1.12.1"))
	f.Insist(w.Event(dockyards.Releases, subject))
	w.imported("talos-v1.12.1", "ImportScheduled")
	f.Rests(w.events()...)
	if got := w.leadsTo(); got != "talos-v1.12.0" {
		t.Errorf("while the new image is imported, the data source leads to %q", got)
	}
	w.imported("talos-v1.12.1", "Succeeded")
	w.Create(`{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, metadata: {name: machine-boot}, spec: {sourceRef: {kind: DataSource, name: talos}, storage: {}}}`)
	old := w.Must(dockyards.DataVolumes, "talos-v1.12.0")
	f.Asked()
	f.Insist(w.Event(dockyards.DataVolumes, "talos-v1.12.1"))
	want = []string{
		"patch datavolumes.cdi.kubevirt.io " + w.NS + "/talos-v1.12.0 200",
		"patch datasources.cdi.kubevirt.io " + w.NS + "/talos 200",
	}
	if diff := cmp.Diff(want, w.writes(f)); diff != "" {
		t.Errorf("the image is marked before it is left (-want +got):\n%s", diff)
	}
	marked := w.Must(dockyards.DataVolumes, "talos-v1.12.0")
	if marked.GetGeneration() != old.GetGeneration() || marked.GetAnnotations()["slipway.dev/superseded"] != "true" {
		t.Errorf("the image that is left has generation %d and annotations %v", marked.GetGeneration(), marked.GetAnnotations())
	}
	f.Rests(w.events()...)
	w.imported("machine-boot", "Succeeded")
	f.Insist(w.Event(dockyards.DataSources, subject))
	if w.Get(dockyards.DataVolumes, "talos-v1.12.0") != nil {
		t.Error("the superseded image is still there though nobody uses it")
	}
	w.tells(subject, "ImportStarted", "ImageReady", "ImportStarted", "ImageReady", "ImageRemoved")
	f.Rests(w.events()...)

	// Another schematic of the same version.
	w.released("v1.12.1", address("v1.12.1")+"?b")
	f.Insist(w.Event(dockyards.Releases, subject))
	second := w.images()
	if len(second) != 2 || !strings.HasPrefix(second[1], "talos-v1.12.1-") || len(second[1]) != len("talos-v1.12.1-")+8 {
		t.Fatalf("the images are %v", second)
	}
	w.imported(second[1], "Succeeded")
	f.Insist(w.Event(dockyards.DataVolumes, second[1]))
	f.Insist(w.Event(dockyards.DataSources, subject))
	if got := w.images(); w.leadsTo() != second[1] || len(got) != 1 {
		t.Errorf("the data source leads to %q, and there are %v", w.leadsTo(), got)
	}
	f.Rests(w.events()...)
}

// images are the names of those of the subject, sorted.
func (w *world) images() []string {
	w.TB.Helper()
	var names []string
	for _, name := range w.Names() {
		if name, ok := strings.CutPrefix(name, "DataVolume/talos-"); ok {
			names = append(names, "talos-"+name)
		}
	}
	return names
}

// TestEachWakeReachesTheRelease shows that no waiting ends by chance.
func TestEachWakeReachesTheRelease(t *testing.T) {
	cases := map[string]func(w *world, f *suite.Copy){
		"DataVolumeByName": func(w *world, f *suite.Copy) {
			w.imported("talos-v1.12.0", "Succeeded")
			f.Insist(w.Event(dockyards.DataVolumes, "talos-v1.12.0"))
		},
		"DataVolumeThatIsGone": func(w *world, f *suite.Copy) {
			w.Remove(dockyards.DataVolumes, "talos-v1.12.0")
			f.Insist(w.changed("delete", dockyards.DataVolumes, "talos-v1.12.0"))
			w.imported("talos-v1.12.0", "Succeeded")
			f.Insist(w.Event(dockyards.DataVolumes, "talos-v1.12.0"))
		},
		"DataVolumeByLabel": func(w *world, f *suite.Copy) {
			w.imported("talos-v1.12.0", "Succeeded")
			w.Create(`{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, metadata: {name: other, labels: {dockyards.io/release-name: talos}}, spec: {storage: {}}}`)
			f.Insist(w.Event(dockyards.DataVolumes, "other"))
		},
		"DataVolumeByOwner": func(w *world, f *suite.Copy) {
			w.imported("talos-v1.12.0", "Succeeded")
			uid := string(w.Must(dockyards.Releases, subject).GetUID())
			w.Create(`{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, metadata: {name: other, ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Release, name: talos, uid: ` + uid + `}]}, spec: {storage: {}}}`)
			f.Insist(w.Event(dockyards.DataVolumes, "other"))
		},
		"DataSource":  func(w *world, f *suite.Copy) { w.wokenBy(f, w.Event(dockyards.DataSources, subject)) },
		"Role":        func(w *world, f *suite.Copy) { w.wokenBy(f, w.Event(dockyards.Roles, subject)) },
		"RoleBinding": func(w *world, f *suite.Copy) { w.wokenBy(f, w.Event(dockyards.RoleBindings, subject)) },
		"NodePool": func(w *world, f *suite.Copy) {
			w.wokenBy(f, w.changed("add", dockyards.NodePools, "a-worker"))
		},
		"NodePoolThatIsGone": func(w *world, f *suite.Copy) {
			w.wokenBy(f, w.changed("delete", dockyards.NodePools, "a-worker"))
		},
		"Resync": func(w *world, f *suite.Copy) {
			w.imported("talos-v1.12.0", "Succeeded")
			f.Resync()
		},
	}
	for name, wake := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.release("v1.12.0", address("v1.12.0"))
			f := w.importer()
			f.Insist(w.Event(dockyards.Releases, subject))
			wake(w, f)
			if got := w.leadsTo(); got != "talos-v1.12.0" {
				t.Errorf("the data source leads to %q", got)
			}
		})
	}
}

func (w *world) wokenBy(f *suite.Copy, ce cloudevents.Event) {
	w.TB.Helper()
	w.imported("talos-v1.12.0", "Succeeded")
	f.Insist(ce)
}

// TestAPoolThatOnlyChangesWakesNothing: what a NodePool says does not matter, and it
// says something every few seconds.
func TestAPoolThatOnlyChangesWakesNothing(t *testing.T) {
	w := newWorld(t)
	w.release("v1.12.0", address("v1.12.0"))
	f := w.importer()
	f.Insist(w.changed("update", dockyards.NodePools, "a-worker"))
	if calls := f.Calls(); len(calls) > 0 {
		t.Errorf("it has asked for %v", calls)
	}
}

func TestEveryNamespaceWithPoolsMayClone(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	w.release("v1.12.0", address("v1.12.0"))
	w.pool("a")
	w.pool("b")
	other.pool("c")
	f := w.importer(suite.Everywhere)
	f.Insist(w.Event(dockyards.Releases, subject))
	subjects := func() []string {
		var names []string
		list, _ := w.Must(dockyards.RoleBindings, subject).Object["subjects"].([]any)
		for _, item := range list {
			s, _ := item.(map[string]any)
			if s["kind"] != "Group" || s["apiGroup"] != "rbac.authorization.k8s.io" {
				t.Errorf("a subject is %v", s)
			}
			names = append(names, strings.TrimPrefix(fmt.Sprint(s["name"]), "system:serviceaccounts:"))
		}
		return names
	}
	got := subjects()
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) || !slices.Contains(got, w.NS) || !slices.Contains(got, other.NS) {
		t.Errorf("the subjects are %v", got)
	}
	other.Remove(dockyards.NodePools, "c")
	f.Insist(w.Event(dockyards.Releases, subject))
	if got := subjects(); slices.Contains(got, other.NS) || !slices.Contains(got, w.NS) {
		t.Errorf("when the pools of a namespace are gone, the subjects are %v", got)
	}
}

func TestReleasesThatAskForNothing(t *testing.T) {
	cases := map[string]struct {
		reason string
		given  func(w *world)
		events []string
	}{
		"OtherType": {"Kubernetes is not imported", func(w *world) {
			w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: talos}, spec: {type: KubernetesReleases}}`)
			w.released("v1.34.1", address("v1"))
		}, nil},
		"NoStatus": {"nothing is known yet", func(w *world) {
			w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: talos}, spec: {type: TalosInstaller}}`)
		}, nil},
		"NoURL": {"its platform is unknown", func(w *world) {
			w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: talos}, spec: {type: TalosInstaller}}`)
			w.setStatus(dockyards.Releases, subject, "x", func(status map[string]any) { status["latestVersion"] = "v1" })
		}, nil},
		"EmptyURL":     {"an image lies somewhere", func(w *world) { w.release("v1", "") }, []string{"InvalidSpec"}},
		"EmptyVersion": {"upstream would make the name talos-", func(w *world) { w.release("", address("v1")) }, []string{"InvalidSpec"}},
		"BadVersion":   {"no name can hold it", func(w *world) { w.release("v1.12.0+Build_1", address("v1")) }, []string{"InvalidSpec"}},
		"LongVersion":  {"no name is so long", func(w *world) { w.release(strings.Repeat("1", 250), address("v1")) }, []string{"InvalidSpec"}},
		"BadURL":       {"CDI imports over HTTP", func(w *world) { w.release("v1", "s3://a/b") }, []string{"InvalidSpec"}},
		"Going": {"what goes creates nothing", func(w *world) {
			w.release("v1", address("v1"))
			w.Patch(dockyards.Releases, subject, `metadata: {finalizers: [example.org/a]}`)
			w.Remove(dockyards.Releases, subject)
		}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.given(w)
			before := w.Snapshot()
			f := w.importer()
			f.Insist(w.Event(dockyards.Releases, subject))
			w.tells(subject, tc.events...)
			f.Rests(w.Event(dockyards.Releases, subject))
			if diff := cmp.Diff(before, w.Snapshot()); diff != "" {
				t.Errorf("%s (-before +after):\n%s", tc.reason, diff)
			}
		})
	}
	t.Run("LongName", func(t *testing.T) {
		w := newWorld(t)
		long := strings.Repeat("a", 64)
		w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: ` + long + `}, spec: {type: TalosInstaller}}`)
		w.setStatus(dockyards.Releases, long, "x", func(status map[string]any) {
			status["latestVersion"], status["latestURL"] = "v1", address("v1")
		})
		f := w.importer()
		f.Insist(w.Event(dockyards.Releases, long))
		w.tells(long, "InvalidSpec")
		f.Rests(w.Event(dockyards.Releases, long))
	})
}

// TestABadReleaseStopsNoOther: a resync meets both.
func TestABadReleaseStopsNoOther(t *testing.T) {
	w := newWorld(t)
	w.release("v1.12.0", address("v1.12.0"))
	w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Release, metadata: {name: bad}, spec: {type: TalosInstaller}}`)
	w.setStatus(dockyards.Releases, "bad", "x", func(status map[string]any) { status["latestURL"] = "text" })
	w.importer().Resync()
	w.Must(dockyards.DataVolumes, "talos-v1.12.0")
	w.tells("bad", "InvalidSpec")
}

func TestAFailedImportLeavesTheImageBeforeInUse(t *testing.T) {
	w := newWorld(t)
	w.release("v1.12.0", address("v1.12.0"))
	f := w.importer()
	f.Insist(w.Event(dockyards.Releases, subject))
	w.imported("talos-v1.12.0", "Succeeded")
	f.Insist(w.Event(dockyards.DataVolumes, "talos-v1.12.0"))
	w.released("v1.12.1", address("v1.12.1"))
	f.Insist(w.Event(dockyards.Releases, subject))
	w.imported("talos-v1.12.1", "Failed")
	f.Insist(w.Event(dockyards.DataVolumes, "talos-v1.12.1"))
	if got := w.leadsTo(); got != "talos-v1.12.0" {
		t.Errorf("the data source leads to %q", got)
	}
	w.tells(subject, "ImportStarted", "ImageReady", "ImportStarted", "ImportFailed")
	f.Rests(w.events()...)
	// The way back: the failed import was never offered, and goes.
	w.released("v1.12.0", address("v1.12.0"))
	f.Insist(w.Event(dockyards.Releases, subject))
	f.Rests(w.events()...)
	if got := w.images(); len(got) != 1 || w.leadsTo() != "talos-v1.12.0" {
		t.Errorf("after going back there are %v, and the data source leads to %q", got, w.leadsTo())
	}
}

func TestWhatBelongsToOthersIsLeftAlone(t *testing.T) {
	const stranger = `ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: 00000000-0000-0000-0000-000000000001}]`
	cases := map[string]struct {
		reason, object string
		// made are the kinds that the function makes all the same.
		made []string
	}{
		"DataVolume": {
			"it has another owner",
			`{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, metadata: {name: talos-v1.12.0, ` + stranger + `}, spec: {source: {http: {url: "` + address("v1.12.0") + `"}}, storage: {}}}`,
			[]string{"Role/talos", "RoleBinding/talos"},
		},
		"DataSource": {
			"it is not what upstream would have written", `{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataSource, metadata: {name: talos}, spec: {source: {pvc: {name: golden, namespace: default}}}}`,
			[]string{"DataVolume/talos-v1.12.0", "Role/talos", "RoleBinding/talos"},
		},
		"Role": {
			"it allows something else, so nothing is bound to it",
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: talos}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}`,
			[]string{"DataSource/talos", "DataVolume/talos-v1.12.0"},
		},
		"RoleBinding": {
			"its roleRef can never change",
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: talos}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`,
			[]string{"DataSource/talos", "DataVolume/talos-v1.12.0", "Role/talos"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			foreign := w.Create(tc.object)
			key := foreign.GetKind() + "/" + foreign.GetName()
			before := w.Snapshot()[key]
			w.release("v1.12.0", address("v1.12.0"))
			f := w.importer()
			f.Insist(w.Event(dockyards.Releases, subject))
			if w.Get(dockyards.DataVolumes, "talos-v1.12.0") != nil {
				w.imported("talos-v1.12.0", "Succeeded")
				f.Insist(w.Event(dockyards.DataVolumes, "talos-v1.12.0"))
			}
			if name == "DataVolume" {
				w.wantImageUntouched(t, key)
			} else if after := w.Snapshot()[key]; after != before {
				t.Errorf("%s (-before +after):\n%s", tc.reason, cmp.Diff(before, after))
			}
			made := slices.DeleteFunc(w.Names(), func(n string) bool { return n == key || n == "Release/talos" })
			if diff := cmp.Diff(tc.made, made); diff != "" {
				t.Errorf("its siblings (-want +got):\n%s", diff)
			}
			if !slices.Contains(w.told(subject), "NameConflict") {
				t.Errorf("nobody is told: %v", w.told(subject))
			}
			f.Rests(w.events()...)
		})
	}
}

// wantImageUntouched: the test itself has played CDI on it, so its marks are looked at.
func (w *world) wantImageUntouched(t *testing.T, key string) {
	t.Helper()
	image := w.Objects()[key]
	if len(image.GetLabels()) > 0 || len(image.GetAnnotations()) > 0 || len(image.GetOwnerReferences()) != 1 {
		t.Errorf("the foreign image has been marked: %v", image.Object["metadata"])
	}
}

// TestWithoutTheRightToCloneNoRoleCanBeMade shows what the right is for that no call
// asks for: an API server lets nobody grant what he does not have.
func TestWithoutTheRightToCloneNoRoleCanBeMade(t *testing.T) {
	w := newWorld(t)
	w.release("v1.12.0", address("v1.12.0"))
	if implied := suite.Implied(releaseimporter.DefaultSpec()); len(implied) != 1 {
		t.Fatalf("the implied rights are %v", implied)
	}
	narrow := w.Account(suite.Without(releaseimporter.DefaultSpec(), "create", "datavolumes/source")...)
	f := w.importer(suite.WithConfig(narrow))
	f.Insist(w.Event(dockyards.Releases, subject))
	if w.Get(dockyards.Roles, subject) != nil || w.Get(dockyards.RoleBindings, subject) != nil {
		t.Error("a right was granted that the function does not have")
	}
	w.Must(dockyards.DataVolumes, "talos-v1.12.0")
	w.imported("talos-v1.12.0", "Succeeded")
	f.Insist(w.Event(dockyards.DataVolumes, "talos-v1.12.0"))
	if got := w.leadsTo(); got != "talos-v1.12.0" {
		t.Errorf("the refusal has stopped the data source: it leads to %q", got)
	}
	if !slices.Contains(w.told(subject), "ErrorReconciling") {
		t.Errorf("nobody is told: %v", w.told(subject))
	}
	whole := w.importer()
	whole.Insist(w.Event(dockyards.Releases, subject))
	w.Must(dockyards.Roles, subject)
	w.Must(dockyards.RoleBindings, subject)
	whole.Rests(w.events()...)
}

// TestCDIThatIsNotInstalledIsAwaited: it may come later.
func TestCDIThatIsNotInstalledIsAwaited(t *testing.T) {
	w := newWorld(t)
	w.release("v1.12.0", address("v1.12.0"))
	installed := false
	f := w.importer(suite.WithTap(func(c suite.Call) (*http.Response, error) {
		if !installed && strings.HasPrefix(c.HTTP.URL.Path, "/apis/cdi.kubevirt.io") {
			return suite.Answer(c.HTTP, http.StatusNotFound), nil
		}
		return nil, nil
	}))
	f.Insist(w.Event(dockyards.Releases, subject))
	w.tells(subject, "WaitingForDataVolume")
	f.Rests(w.Event(dockyards.Releases, subject))
	installed = true
	f.Resync()
	w.Must(dockyards.DataVolumes, "talos-v1.12.0")
}

func TestSettingsShapeTheImage(t *testing.T) {
	w := newWorld(t)
	w.release("v1.12.0", address("v1.12.0"))
	env := map[string]string{
		"DATA_VOLUME_STORAGE_CLASS_NAME": "", "DATA_VOLUME_ACCESS_MODE": "ReadWriteOnce", "USE_BLOCK_STORAGE": "false", "RELEASE_IMAGE_SIZE": "4096Mi",
	}
	settings, err := dockyards.ParseSettings(func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	f := suite.Run(w.World, releaseimporter.Declare(settings))
	f.Insist(w.Event(dockyards.Releases, subject))
	const want = `{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"4Gi"}}}`
	if got := suite.Bytes(t, w.Must(dockyards.DataVolumes, "talos-v1.12.0"), "spec", "storage"); got != want {
		t.Errorf("the storage is %s, want %s", got, want)
	}
	// Other settings are for the next image.
	g := w.importer()
	g.Rests(w.events()...)
}
