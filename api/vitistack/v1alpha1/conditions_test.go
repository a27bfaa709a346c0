package v1alpha1

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	before = metav1.Date(2026, time.March, 1, 10, 0, 0, 0, time.UTC)
	now    = metav1.Date(2026, time.March, 1, 11, 0, 0, 999, time.UTC)
	stored = metav1.Date(2026, time.March, 1, 11, 0, 0, 0, time.UTC)
)

func TestSetCondition(t *testing.T) {
	ready := MachineCondition{Type: ConditionReady, Status: ConditionTrue, Reason: ReasonRunning, ObservedGeneration: 3}
	at := func(c MachineCondition, when metav1.Time) MachineCondition {
		c.LastTransitionTime = when
		return c
	}
	foreign := MachineCondition{Type: "Backup", Status: "Done", Message: "somebody else's"}
	creating := MachineCondition{Type: ConditionReady, Status: ConditionFalse, Reason: ReasonCreating, LastTransitionTime: before}
	running := MachineCondition{Type: ConditionReady, Status: ConditionTrue, Reason: "Old", LastTransitionTime: before}

	cases := map[string]struct {
		reason string
		have   []MachineCondition
		set    MachineCondition
		want   []MachineCondition
	}{
		"FirstIsAdded": {
			reason: "a new condition has changed just now, to the second",
			set:    ready,
			want:   []MachineCondition{at(ready, stored)},
		},
		"NewIsAddedAtTheEnd": {
			reason: "others keep their places",
			have:   []MachineCondition{foreign},
			set:    ready,
			want:   []MachineCondition{foreign, at(ready, stored)},
		},
		"ChangedStatusMovesTheTime": {
			reason: "the status went from False to True",
			have:   []MachineCondition{creating, foreign},
			set:    ready,
			want:   []MachineCondition{at(ready, stored), foreign},
		},
		"SameStatusKeepsTheTime": {
			reason: "reason, message and generation change without the time",
			have:   []MachineCondition{foreign, running},
			set:    ready,
			want:   []MachineCondition{foreign, at(ready, before)},
		},
		"TimeOfTheNewOneIsIgnored": {
			reason: "a caller cannot move the time",
			have:   []MachineCondition{running},
			set:    at(ready, metav1.Date(2031, time.January, 1, 0, 0, 0, 0, time.UTC)),
			want:   []MachineCondition{at(ready, before)},
		},
		"MissingTimeIsFilledIn": {
			reason: "an entry stored without a time has never had one",
			have:   []MachineCondition{at(running, metav1.Time{})},
			set:    ready,
			want:   []MachineCondition{at(ready, stored)},
		},
		"SecondEntryOfTheTypeGoes": {
			reason: "the list has no key, so there may be several; one remains, in the first one's place",
			have:   []MachineCondition{running, foreign, creating, foreign},
			set:    ready,
			want:   []MachineCondition{at(ready, before), foreign, foreign},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			input := append([]MachineCondition(nil), tc.have...)
			got := SetCondition(tc.have, tc.set, now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(input, tc.have); diff != "" {
				t.Errorf("the list passed in was changed:\n%s", diff)
			}
			if diff := cmp.Diff(got, SetCondition(got, tc.set, metav1.NewTime(now.Add(time.Hour)))); diff != "" {
				t.Errorf("setting it once more changes it:\n%s", diff)
			}
		})
	}
}

func TestSetConditionDoesNotWriteBehindTheList(t *testing.T) {
	backing := make([]MachineCondition, 1, 4)
	backing[0] = MachineCondition{Type: "Backup"}
	first := SetCondition(backing, MachineCondition{Type: ConditionReady}, now)
	second := SetCondition(backing, MachineCondition{Type: ConditionStorageReady}, now)
	if first[1].Type != ConditionReady || second[1].Type != ConditionStorageReady {
		t.Errorf("two lists made from one share their memory: %v and %v", first, second)
	}
}

func TestDropUpstreamUnknownKeepsEverythingElse(t *testing.T) {
	ready := MachineCondition{Type: ConditionReady, Status: ConditionUnknown}
	foreign := MachineCondition{Type: "Backup"}
	unknown := MachineCondition{Type: "Unknown", Status: "Unknown"}
	have := []MachineCondition{unknown, ready, unknown, foreign}
	got := DropUpstreamUnknown(have)
	if diff := cmp.Diff([]MachineCondition{ready, foreign}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]MachineCondition{unknown, ready, unknown, foreign}, have); diff != "" {
		t.Errorf("the list passed in was changed:\n%s", diff)
	}
}

func TestFindCondition(t *testing.T) {
	conds := []MachineCondition{{Type: "a"}, {Type: "b", Reason: "first"}, {Type: "b", Reason: "second"}}
	if got := FindCondition(conds, "b"); got == nil || got.Reason != "first" {
		t.Errorf("FindCondition = %v, want the first of the type", got)
	}
	if got := FindCondition(conds, "c"); got != nil {
		t.Errorf("FindCondition = %v, want none", got)
	}
}
