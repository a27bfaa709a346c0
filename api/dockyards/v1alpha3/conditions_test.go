package v1alpha3

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
	ready := metav1.Condition{Type: ConditionReady, Status: metav1.ConditionTrue, Reason: ReasonReconciled, ObservedGeneration: 3}
	at := func(c metav1.Condition, when metav1.Time) metav1.Condition {
		c.LastTransitionTime = when
		return c
	}
	with := func(c metav1.Condition, change func(*metav1.Condition)) metav1.Condition {
		change(&c)
		return c
	}
	old := at(ready, before)
	foreign := metav1.Condition{Type: ConditionClusterReady, Status: metav1.ConditionUnknown, Reason: "Other", LastTransitionTime: before}

	cases := map[string]struct {
		reason string
		have   []metav1.Condition
		set    metav1.Condition
		want   []metav1.Condition
	}{
		"FirstIsAdded": {
			reason: "a new condition has changed just now, to the second",
			set:    ready, want: []metav1.Condition{at(ready, stored)},
		},
		"NewIsAddedAtTheEnd": {
			reason: "others keep their places",
			have:   []metav1.Condition{foreign}, set: ready,
			want: []metav1.Condition{foreign, at(ready, stored)},
		},
		"SameKeepsTheTime": {
			reason: "nothing has changed",
			have:   []metav1.Condition{old, foreign}, set: ready, want: []metav1.Condition{old, foreign},
		},
		"NewGenerationKeepsTheTime": {
			reason: "the same is said of a newer spec",
			have:   []metav1.Condition{foreign, old}, set: with(ready, func(c *metav1.Condition) { c.ObservedGeneration = 4 }),
			want: []metav1.Condition{foreign, with(old, func(c *metav1.Condition) { c.ObservedGeneration = 4 })},
		},
		"ChangedStatusMovesTheTime": {
			reason: "the status is another",
			have:   []metav1.Condition{with(old, func(c *metav1.Condition) { c.Status = metav1.ConditionFalse }), foreign}, set: ready,
			want: []metav1.Condition{at(ready, stored), foreign},
		},
		"ChangedReasonMovesTheTime": {
			reason: "the reason is another",
			have:   []metav1.Condition{with(old, func(c *metav1.Condition) { c.Reason = ReasonReady })}, set: ready,
			want: []metav1.Condition{at(ready, stored)},
		},
		"ChangedMessageMovesTheTime": {
			reason: "the message is another",
			have:   []metav1.Condition{with(old, func(c *metav1.Condition) { c.Message = "not yet" })}, set: ready,
			want: []metav1.Condition{at(ready, stored)},
		},
		"TimeOfTheNewOneIsIgnored": {
			reason: "a caller cannot move the time",
			have:   []metav1.Condition{old}, set: at(ready, metav1.Date(2031, time.January, 1, 0, 0, 0, 0, time.UTC)),
			want: []metav1.Condition{old},
		},
		"MissingTimeIsFilledIn": {
			reason: "an entry stored without a time has never had one",
			have:   []metav1.Condition{ready}, set: ready, want: []metav1.Condition{at(ready, stored)},
		},
		"SecondEntryOfTheTypeGoes": {
			reason: "the list has no key, so there may be several; one remains, in the first one's place",
			have:   []metav1.Condition{old, foreign, old, foreign}, set: ready,
			want: []metav1.Condition{old, foreign, foreign},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			input := append([]metav1.Condition(nil), tc.have...)
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
	backing := make([]metav1.Condition, 1, 4)
	backing[0] = metav1.Condition{Type: ConditionClusterReady}
	first := SetCondition(backing, metav1.Condition{Type: ConditionReady}, now)
	second := SetCondition(backing, metav1.Condition{Type: ConditionVerified}, now)
	if first[1].Type != ConditionReady || second[1].Type != ConditionVerified {
		t.Errorf("two lists made from one share their memory: %v and %v", first, second)
	}
}

func TestRemoveConditionKeepsEverythingElse(t *testing.T) {
	ready, foreign := metav1.Condition{Type: ConditionReady}, metav1.Condition{Type: ConditionVerified}
	have := []metav1.Condition{ready, foreign, ready}
	if diff := cmp.Diff([]metav1.Condition{foreign}, RemoveCondition(have, ConditionReady)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]metav1.Condition{ready, foreign, ready}, have); diff != "" {
		t.Errorf("the list passed in was changed:\n%s", diff)
	}
}

func TestFindCondition(t *testing.T) {
	conds := []metav1.Condition{{Type: "a"}, {Type: "b", Status: metav1.ConditionTrue}, {Type: "b"}}
	if got := FindCondition(conds, "b"); got == nil || got.Status != metav1.ConditionTrue || !IsConditionTrue(conds, "b") {
		t.Errorf("FindCondition = %v, want the first of the type", got)
	}
	if FindCondition(conds, "c") != nil || IsConditionTrue(conds, "a") || IsConditionTrue(nil, "a") {
		t.Errorf("a condition was found that is not there, or not True")
	}
}
