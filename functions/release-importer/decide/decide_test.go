package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/plan"
)

func TestDecide(t *testing.T) {
	const name = "talos-v1.12.1"
	release := releaseOf("v1.12.1", address)
	superseded := `slipway.dev/superseded: "true"`
	going := `deletionTimestamp: "2026-03-01T10:00:00Z"`
	cases := map[string]struct {
		reason string
		world  world
		// writes are those expected; nil: none.
		writes []string
		events []string
		class  plan.Class
	}{
		"FirstPass": {
			"the image is imported and rights are given; nothing leads to it yet",
			world{release, pool},
			[]string{"create DataVolume " + name, "create Role talos", "create RoleBinding talos"},
			[]string{"ImportStarted"},
			plan.Waiting,
		},
		"Importing": {
			"the data source waits", world{release, pool, marked(name, address, "ImportInProgress"), role, binding}, nil, nil, plan.Waiting,
		},
		"Imported": {
			"the data source leads to it",
			world{release, pool, marked(name, address, "Succeeded"), role, binding},
			[]string{"create DataSource talos"},
			[]string{"ImageReady"},
			plan.Done,
		},
		"Fixpoint": {
			"nothing is left to do", world{release, pool, marked(name, address, "Succeeded"), role, binding, source(name, owner, label)}, nil, nil, plan.Done,
		},
		"NewVersion": {
			"the image before stays in use while the new one is imported",
			world{release, pool, marked("talos-v1.12.0", address, "Succeeded"), role, binding, source("talos-v1.12.0", owner, label)},
			[]string{"create DataVolume " + name},
			[]string{"ImportStarted"},
			plan.Waiting,
		},
		"NewVersionImported": {
			"the image that is left is marked before anything else",
			world{release, pool, marked("talos-v1.12.0", other, "Succeeded"), marked(name, address, "Succeeded"), role, binding, source("talos-v1.12.0", owner, label)},
			[]string{"patch DataVolume talos-v1.12.0", "patch DataSource talos"},
			[]string{"ImageReady"},
			plan.Done,
		},
		"NewVersionFailed": {
			"a failed import leaves the image before in use",
			world{release, pool, marked("talos-v1.12.0", other, "Succeeded"), marked(name, address, "Failed"), role, binding, source("talos-v1.12.0", owner, label)},
			nil,
			[]string{"ImportFailed"},
			plan.Waiting,
		},
		"SupersededGoes": {
			"nobody uses it",
			world{release, pool, marked("talos-v1.12.0", other, "Succeeded", superseded), marked(name, address, "Succeeded"), role, binding, source(name, owner, label)},
			[]string{"delete DataVolume talos-v1.12.0"},
			[]string{"ImageRemoved"},
			plan.Done,
		},
		"SupersededIsUsedElsewhere": {
			"a data source of another namespace leads to it",
			world{
				release, pool, marked("talos-v1.12.0", other, "Succeeded", superseded), marked(name, address, "Succeeded"), role, binding, source(name, owner, label),
				`{kind: DataSource, metadata: {name: x, namespace: acme}, spec: {source: {pvc: {name: talos-v1.12.0, namespace: images}}}}`,
			},
			nil, nil, plan.Done,
		},
		"SupersededIsBeingCloned": {
			"a clone by name is under way",
			world{
				release, pool, marked("talos-v1.12.0", other, "Succeeded", superseded), marked(name, address, "Succeeded"), role, binding, source(name, owner, label),
				`{kind: DataVolume, metadata: {name: x, namespace: acme}, spec: {source: {pvc: {name: talos-v1.12.0, namespace: images}}}, status: {phase: CloneInProgress}}`,
			},
			nil, nil, plan.Done,
		},
		"CloneThroughTheDataSourceIsUnderWay": {
			"which image it began with is not known",
			world{
				release, pool, marked("talos-v1.12.0", other, "Succeeded", superseded), marked(name, address, "Succeeded"), role, binding, source(name, owner, label),
				`{kind: DataVolume, metadata: {name: x, namespace: acme}, spec: {sourceRef: {kind: DataSource, name: talos, namespace: images}}}`,
			},
			nil, nil, plan.Done,
		},
		"FinishedClonesHoldNothing": {
			"they have what they need",
			world{
				release, pool, marked("talos-v1.12.0", other, "Succeeded", superseded), marked(name, address, "Succeeded"), role, binding, source(name, owner, label),
				`{kind: DataVolume, metadata: {name: x, namespace: acme}, spec: {sourceRef: {kind: DataSource, name: talos, namespace: images}}, status: {phase: Succeeded}}`,
			},
			[]string{"delete DataVolume talos-v1.12.0"},
			[]string{"ImageRemoved"},
			plan.Done,
		},
		"SupersededBeforeTakeover": {
			"an image that nobody marked stays for ever",
			world{release, pool, marked("talos-v1.12.0", other, "Succeeded"), marked(name, address, "Succeeded"), role, binding, source(name, owner, label)},
			nil, nil, plan.Done,
		},
		"OvertakenVersion": {
			"it was never offered, so nobody has marked it",
			world{release, pool, image("talos-v1.12.0", other, "ImportInProgress", owner, label, madeByUs), marked(name, address, "Succeeded"), role, binding, source(name, owner, label)},
			[]string{"delete DataVolume talos-v1.12.0"},
			[]string{"ImageRemoved"},
			plan.Done,
		},
		"OvertakingVersionIsImported": {
			"nothing is removed until there is something better",
			world{release, pool, image("talos-v1.12.0", other, "ImportInProgress", owner, label, madeByUs), marked(name, address, "ImportInProgress"), role, binding, source("talos-v1.11.0", owner, label)},
			nil, nil, plan.Waiting,
		},
		"OnlyMarkedByUs": {
			"upstream made it, the function has added what was missing",
			world{release, pool, image("talos-v1.12.0", other, "Succeeded", owner, label, strings.Replace(madeByUs, "f:spec", "f:metadata", 1)), marked(name, address, "Succeeded"), role, binding, source(name, owner, label)},
			nil, nil, plan.Done,
		},
		"MadeByAnother": {
			"somebody else's manager",
			world{release, pool, image("talos-v1.12.0", other, "Succeeded", owner, label, strings.Replace(madeByUs, Manager, "dockyards-kubevirt", 1)), marked(name, address, "Succeeded"), role, binding, source(name, owner, label)},
			nil, nil, plan.Done,
		},
		"MarkedByAStranger": {
			"the mark alone is no leave to delete",
			world{release, pool, image("talos-x", other, "Succeeded", foreign, label, "annotations: {"+superseded+"}"), marked(name, address, "Succeeded"), role, binding, source(name, owner, label)},
			nil, nil, plan.Done,
		},
		"WantedAgain": {
			"a release that goes back finds its image, which loses its mark",
			world{release, pool, marked(name, address, "Succeeded", superseded), marked("talos-v1.12.2", other, "Succeeded"), role, binding, source("talos-v1.12.2", owner, label)},
			[]string{"patch DataVolume talos-v1.12.2", "patch DataVolume " + name, "patch DataSource talos"},
			[]string{"ImageReady"},
			plan.Done,
		},
		"OtherURL": {
			"the schematic changed: the image has another name, the old one is untouched",
			world{release, pool, marked(name, other, "Succeeded"), role, binding, source(name, owner, label)},
			[]string{"create DataVolume " + name + hashOfAddress},
			[]string{"ImportStarted"},
			plan.Waiting,
		},
		"OtherURLImported": {
			"the data source follows",
			world{release, pool, marked(name, other, "Succeeded"), marked(name+hashOfAddress, address, "Succeeded"), role, binding, source(name, owner, label)},
			[]string{"patch DataVolume " + name, "patch DataSource talos"},
			[]string{"ImageReady"},
			plan.Done,
		},
		"OtherURLAfterTheFirstIsGone": {
			"the name has become free, and nothing is imported twice",
			world{release, pool, marked(name+hashOfAddress, address, "Succeeded"), role, binding, source(name+hashOfAddress, owner, label)},
			nil, nil, plan.Done,
		},
		"BothNamesAreTaken": {
			"an image of that name and hash is somebody's",
			world{release, pool, marked(name, other, "Succeeded"), image(name+hashOfAddress, other, "Succeeded"), role, binding},
			nil,
			[]string{"NameConflict"},
			plan.Terminal,
		},
		"ForeignImage": {
			"it has the right URL and another owner", world{release, pool, image(name, address, "Succeeded", foreign), role, binding}, nil, []string{"NameConflict"}, plan.Terminal,
		},
		"UpstreamsImage": {
			"what is missing is added, nothing else",
			world{release, pool, image(name, address, "Succeeded", "labels: {a: b}"), role, binding, source(name, owner, label)},
			[]string{"patch DataVolume " + name},
			nil, plan.Done,
		},
		"UpstreamsEverything": {
			"owner references, and subjects in one update",
			world{
				release, pool, image(name, address, "Succeeded", owner, label, "annotations: {"+immediate+"}"), source(name, label),
				strings.Replace(role, owner, "labels: {}", 1),
				strings.Replace(strings.Replace(binding, owner, "labels: {}", 1), ":acme", "", 1),
			},
			[]string{"patch Role talos", "patch RoleBinding talos", "patch DataSource talos"},
			nil, plan.Done,
		},
		"SourceOfAFailedImport": {
			"upstream pointed it at once: it stays there until a better image is there",
			world{release, pool, marked(name, address, "Failed"), role, binding, source(name, owner, label)},
			nil,
			[]string{"ImportFailed"},
			plan.Waiting,
		},
		"ForeignSource": {
			"it is left alone, its siblings are not",
			world{release, pool, marked(name, address, "Succeeded"), source("golden")},
			[]string{"create Role talos", "create RoleBinding talos"},
			[]string{"NameConflict"},
			plan.Terminal,
		},
		"ForeignRole": {
			"nothing is bound to a role that allows something else",
			world{release, pool, marked(name, address, "Succeeded"), source(name, owner, label), `{kind: Role, metadata: {name: talos}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`},
			nil,
			[]string{"NameConflict"},
			plan.Terminal,
		},
		"RoleWasChanged": {
			"ours allows one thing",
			world{release, pool, marked(name, address, "Succeeded"), source(name, owner, label), binding, `{kind: Role, metadata: {name: talos, ` + owner + `}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`},
			[]string{"patch Role talos"},
			nil, plan.Done,
		},
		"BindingOfAnotherRole": {
			"its roleRef can never change",
			world{release, pool, marked(name, address, "Succeeded"), source(name, owner, label), role, strings.Replace(binding, "kind: Role, name: talos", "kind: ClusterRole, name: admin", 1)},
			nil,
			[]string{"NameConflict"},
			plan.Terminal,
		},
		"SubjectsInAnotherOrder": {
			"the same subjects are the same", world{
				release, pool, `{kind: NodePool, metadata: {name: b, namespace: zoo}}`, marked(name, address, "Succeeded"), source(name, owner, label), role,
				strings.Replace(binding, "subjects: [", `subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:zoo"}, `, 1),
			}, nil, nil, plan.Done,
		},
		"NewNamespace": {
			"its machines clone too", world{
				release, pool, `{kind: NodePool, metadata: {name: b, namespace: zoo}}`, marked(name, address, "Succeeded"), source(name, owner, label), role, binding,
			}, []string{"patch RoleBinding talos"}, nil, plan.Done,
		},
		"NoPoolsLeft": {
			"nobody may clone", world{release, marked(name, address, "Succeeded"), source(name, owner, label), role, binding}, []string{"patch RoleBinding talos"}, nil, plan.Done,
		},
		"GoingPoolKeepsItsNamespace": {
			"it may still be cloning",
			world{release, `{kind: NodePool, metadata: {name: a, namespace: acme, ` + going + `}}`, marked(name, address, "Succeeded"), source(name, owner, label), role, binding},
			nil, nil, plan.Done,
		},
		"GoingPoolBringsNoNamespace": {
			"what goes is no reason to change anything",
			world{release, pool, `{kind: NodePool, metadata: {name: a, namespace: zoo, ` + going + `}}`, marked(name, address, "Succeeded"), source(name, owner, label), role, binding},
			nil, nil, plan.Done,
		},
		"GoingImage": {
			"it is made anew once it is gone", world{release, pool, image(name, address, "Succeeded", owner, label, going), role, binding}, nil, nil, plan.Waiting,
		},
		"GoingObjects": {
			"what goes is not changed", world{
				release, pool, marked(name, address, "Succeeded"), source("talos-v1.12.0", label, going),
				strings.Replace(role, owner, going, 1), strings.Replace(binding, owner, going, 1),
			}, nil, nil, plan.Done,
		},
		"OtherType": {"Kubernetes is not imported", world{strings.Replace(release, "TalosInstaller", "KubernetesReleases", 1), pool}, nil, nil, plan.Done},
		"NoURL":     {"there is no image", world{`{kind: Release, metadata: {name: talos, uid: release-uid}, spec: {type: TalosInstaller}, status: {latestVersion: v1.12.1}}`, pool}, nil, nil, plan.Done},
		"NoStatus":  {"nothing is known yet", world{`{kind: Release, metadata: {name: talos, uid: release-uid}, spec: {type: TalosInstaller}}`, pool}, nil, nil, plan.Done},
		"GoingItself": {
			"nothing is created", world{strings.Replace(release, "generation: 1", going, 1), pool}, nil, nil, plan.Done,
		},
		"EmptyVersion":  {"upstream would make the name talos-", world{releaseOf("", address), pool}, nil, []string{"InvalidSpec"}, plan.Terminal},
		"EmptyURL":      {"an image lies somewhere", world{releaseOf("v1.12.1", ""), pool}, nil, []string{"InvalidSpec"}, plan.Terminal},
		"BadURL":        {"CDI imports over HTTP", world{releaseOf("v1.12.1", "ftp://example.org/a"), pool}, nil, []string{"InvalidSpec"}, plan.Terminal},
		"RelativeURL":   {"a path is no place", world{releaseOf("v1.12.1", "/image"), pool}, nil, []string{"InvalidSpec"}, plan.Terminal},
		"BrokenURL":     {"what cannot be parsed", world{releaseOf("v1.12.1", "https://%zz"), pool}, nil, []string{"InvalidSpec"}, plan.Terminal},
		"BadVersion":    {"it cannot stand in a name", world{releaseOf("v1.12.1+a_b", address), pool}, nil, []string{"InvalidSpec"}, plan.Terminal},
		"LongVersion":   {"the name is too long", world{releaseOf(strings.Repeat("1", 250), address), pool}, nil, []string{"InvalidSpec"}, plan.Terminal},
		"LongName":      {"the name is no label", world{strings.ReplaceAll(release, "name: talos", "name: "+strings.Repeat("a", 64)), pool}, nil, []string{"InvalidSpec"}, plan.Terminal},
		"StrangeImages": {"nothing panics", world{release, pool, `{kind: DataVolume, metadata: {name: talos-v1.12.1}, spec: text, status: text}`, role, binding}, []string{"create DataVolume " + name + hashOfAddress}, []string{"ImportStarted"}, plan.Waiting},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, known := tc.world.input(t), tc.world.known(t)
			before := tc.world.input(t)
			after, outcomes, writes := decided(t, in, known)
			if diff := cmp.Diff(tc.writes, writes); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			c := Conclude(time.Time{}, in, known, outcomes)
			if diff := cmp.Diff(tc.events, events(c)); diff != "" || c.Class != tc.class || c.Status != nil {
				t.Errorf("%s: class %s, status %v, events (-want +got):\n%s", tc.reason, c.Class, c.Status, diff)
			}
			for _, e := range c.Events {
				if len(e.Message) > messageMax || strings.Contains(e.Message, "example.org") {
					t.Errorf("the message %q is too long, or holds an address", e.Message)
				}
			}
			if diff := cmp.Diff(before, in, cmp.AllowUnexported(resource.Quantity{})); diff != "" {
				t.Errorf("the input has been changed:\n%s", diff)
			}
			if _, _, writes = decided(t, after, known); len(writes) > 0 {
				t.Errorf("the next pass writes %v", writes)
			}
		})
	}
}

func TestTheImageIsAsUpstreamMakesIt(t *testing.T) {
	in := world{releaseOf("v1.12.1", address)}.input(t)
	find := func(in Input) *unstructured.Unstructured {
		after, _, _ := decided(t, in, nil)
		return &after.Images[0]
	}
	want := parse(t, `{kind: DataVolume, metadata: {name: talos-v1.12.1, `+owner+`, `+label+`, annotations: {`+immediate+`}},
		spec: {source: {http: {url: "`+address+`"}}, storage: {accessModes: [ReadWriteMany], resources: {requests: {storage: 8Gi}},
		storageClassName: rook-ceph-block, volumeMode: Block}}}`)
	if diff := cmp.Diff(want.Object, find(in).Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	in.Settings.StorageClass, in.Settings.BlockStorage, in.Settings.AccessMode = "", false, "ReadWriteOnce"
	in.Settings.ImageSize = resource.MustParse("4096Mi")
	storage := parse(t, `{kind: DataVolume, storage: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 4Gi}}}}`).Object["storage"]
	if diff := cmp.Diff(storage, find(in).Object["spec"].(map[string]any)["storage"]); diff != "" {
		t.Errorf("an empty class leaves the field out, files instead of blocks have no mode (-want +got):\n%s", diff)
	}
}

func TestTheRightsAreAsUpstreamMakesThem(t *testing.T) {
	pools := []string{`{kind: NodePool, metadata: {name: a, namespace: zoo}}`, pool, `{kind: NodePool, metadata: {name: b, namespace: acme}}`}
	after, _, _ := decided(t, append(world{releaseOf("v1.12.1", address)}, pools...).input(t), nil)
	if diff := cmp.Diff(parse(t, role).Object, after.Role.Object); diff != "" {
		t.Errorf("role (-want +got):\n%s", diff)
	}
	want := parse(t, binding)
	zoo := map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts:zoo"}
	want.Object["subjects"] = append(want.Object["subjects"].([]any), zoo)
	if diff := cmp.Diff(want.Object, after.RoleBinding.Object); diff != "" {
		t.Errorf("binding, each namespace once and sorted (-want +got):\n%s", diff)
	}
}

func TestThePatchOfAnImageAddsMarksAlone(t *testing.T) {
	w := world{releaseOf("v1.12.1", address), image("talos-v1.12.1", address, "Succeeded", "labels: {dockyards.io/release-name: older, a: b}", `annotations: {x: why}`)}
	after, _, _ := decided(t, w.input(t), nil)
	want := parse(t, image("talos-v1.12.1", address, "Succeeded", owner, "labels: {dockyards.io/release-name: older, a: b}", `annotations: {x: why, `+immediate+`}`))
	if diff := cmp.Diff(want.Object, after.Images[0].Object); diff != "" {
		t.Errorf("a label that is there stays (-want +got):\n%s", diff)
	}
}

func TestNothingIsRemovedWhileItsUsersCannotBeSeen(t *testing.T) {
	w := world{
		releaseOf("v1.12.1", address), pool, marked("talos-v1.12.0", other, "Succeeded", `slipway.dev/superseded: "true"`),
		marked("talos-v1.12.1", address, "Succeeded"), role, binding, source("talos-v1.12.1", owner, label),
	}
	for _, need := range []plan.Need{needSources, needVolumes} {
		known := w.known(t)
		known[need.Key()] = refused("no")
		in := w.input(t)
		_, outcomes, writes := decided(t, in, known)
		c := Conclude(time.Time{}, in, known, outcomes)
		if len(writes) > 0 || c.Class != plan.Terminal || !cmp.Equal(events(c), []string{"ErrorReconciling"}) {
			t.Errorf("without %s it writes %v and concludes %v", need.Resource, writes, c)
		}
	}
}

func TestWithoutCDIOnlyRightsAreGiven(t *testing.T) {
	in := world{releaseOf("v1.12.1", address), pool}.input(t)
	in.Served = false
	_, outcomes, writes := decided(t, in, nil)
	c := Conclude(time.Time{}, in, nil, outcomes)
	if diff := cmp.Diff([]string{"create Role talos", "create RoleBinding talos"}, writes); diff != "" || c.Class != plan.Waiting ||
		!cmp.Equal(events(c), []string{"WaitingForDataVolume"}) {
		t.Errorf("it concludes %v and writes (-want +got):\n%s", c, diff)
	}
}

func TestARefusedWriteIsToldAndStopsNothing(t *testing.T) {
	in := world{releaseOf("v1.12.1", address), pool}.input(t)
	_, outcomes, _ := decided(t, in, nil)
	outcomes[0].Result, outcomes[0].Fault = plan.Failed, refused(strings.Repeat("ä", 300)).Fault
	c := Conclude(time.Time{}, in, nil, outcomes)
	if c.Class != plan.Terminal || c.Reason != "ErrorReconciling" || !cmp.Equal(events(c), []string{"ErrorReconciling"}) {
		t.Errorf("it concludes %v", c)
	}
	if message := c.Events[0].Message; len(message) > messageMax || strings.ContainsRune(message, '\uFFFD') {
		t.Errorf("the message is cut badly: %q", message)
	}
}

func TestTheOrderOfListsDoesNotMatter(t *testing.T) {
	w := world{
		releaseOf("v1.12.1", address), pool, `{kind: NodePool, metadata: {name: b, namespace: zoo}}`, role, binding,
		marked("talos-v1.12.0", other, "Succeeded"), marked("talos-v1.12.1", address, "Succeeded"), source("talos-v1.12.0", owner, label),
	}
	_, _, want := decided(t, w.input(t), w.known(t))
	for i := range w {
		turned := append(append(world{}, w[i:]...), w[:i]...)
		if _, _, got := decided(t, turned.input(t), turned.known(t)); !cmp.Equal(want, got) {
			t.Errorf("turned by %d it writes %v, want %v", i, got, want)
		}
	}
}
