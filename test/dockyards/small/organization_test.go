package small

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/test/suite"
)

// organization makes one with a name that no other test uses.
func (w *world) organization(spec string) (name string) {
	w.TB.Helper()
	name = "org-" + strings.TrimPrefix(w.NS, "t-")
	w.Create(`{apiVersion: dockyards.io/v1alpha3, kind: Organization, metadata: {name: ` + name + `}, spec: ` + spec + `}`)
	return name
}

func (w *world) setCondition(name, conditionType, is, message string) {
	w.TB.Helper()
	w.setStatus(dockyards.Organizations, name, "backend", func(status map[string]any) {
		dockyards.SetCondition(status, metav1.Condition{
			Type: conditionType, Status: metav1.ConditionStatus(is), Reason: v1alpha3.ReasonReady, Message: message,
		}, metav1.Now())
	})
}

func TestAnOrganizationIsMadeReady(t *testing.T) {
	w := newWorld(t)
	name := w.organization(`{displayName: A}`)
	w.setCondition(name, v1alpha3.ConditionRoleBindingsReady, "True", "")
	before := suite.Bytes(t, w.Must(dockyards.Organizations, name), "status", "conditions")
	f := w.onboarder()
	f.Insist(w.Event(dockyards.Organizations, name))
	if got := w.Condition(dockyards.Organizations, name, "Ready"); got != "True Ready" {
		t.Errorf("Ready is %s", got)
	}
	org := w.Must(dockyards.Organizations, name)
	conditions, _ := dockyards.Status(org)["conditions"].([]any)
	if len(conditions) != 2 {
		t.Fatalf("there are the conditions %v", conditions)
	}
	if after := suite.Bytes(t, org, "status", "conditions"); !strings.HasPrefix(after, strings.TrimSuffix(before, "]")) {
		t.Errorf("the other condition has changed:\n%s\n%s", before, after)
	}
	if conditions[1].(map[string]any)["observedGeneration"] != org.GetGeneration() {
		t.Errorf("the condition is %v at generation %d", conditions[1], org.GetGeneration())
	}
	f.Rests(w.Event(dockyards.Organizations, name))

	// Another generation changes nothing that is True.
	version := w.Patch(dockyards.Organizations, name, `spec: {displayName: B}`).GetResourceVersion()
	f.Insist(w.Event(dockyards.Organizations, name))
	if got := w.Must(dockyards.Organizations, name).GetResourceVersion(); got != version {
		t.Error("Ready=True has been written again for another generation")
	}
}

func TestAResyncFindsOrganizationsWithoutAnEvent(t *testing.T) {
	w := newWorld(t)
	name := w.organization(`{}`)
	w.onboarder().Resync()
	if got := w.Condition(dockyards.Organizations, name, "Ready"); got != "True Ready" {
		t.Errorf("Ready is %s", got)
	}
}

func TestOrganizationsThatAreLeftAlone(t *testing.T) {
	cases := map[string]struct {
		reason string
		given  func(w *world) string
	}{
		"Skipped": {"it asks to be left out", func(w *world) string { return w.organization(`{skipAutoAssign: true}`) }},
		"ReadyByAnother": {"True is True", func(w *world) string {
			name := w.organization(`{}`)
			w.setCondition(name, "Ready", "True", "by hand")
			return name
		}},
		"Going": {"it is being deleted", func(w *world) string {
			name := w.organization(`{}`)
			w.Patch(dockyards.Organizations, name, `metadata: {finalizers: [dockyards.io/backend-controller]}`)
			w.TB.Cleanup(func() {
				w.Patch(dockyards.Organizations, name, `metadata: {finalizers: null}`)
			})
			w.Remove(dockyards.Organizations, name)
			return name
		}},
		"Planned": {"its mode is plan", func(w *world) string {
			name := w.organization(`{}`)
			w.Patch(dockyards.Organizations, name, `metadata: {annotations: {slipway.dev/mode: plan}}`)
			return name
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.TB = uncancelled{t}
			org := tc.given(w)
			before := w.Snapshot()
			f := w.onboarder()
			f.Rests(w.Event(dockyards.Organizations, org))
			if diff := cmp.Diff(before, w.Snapshot()); diff != "" {
				t.Errorf("%s, and has been changed:\n%s", tc.reason, diff)
			}
		})
	}
}

// uncancelled lets a test's clean-up still speak to the server.
type uncancelled struct{ *testing.T }

func (u uncancelled) Context() context.Context { return context.WithoutCancel(u.T.Context()) }

func TestAFalseReadyOfAnotherIsMadeTrueInItsPlace(t *testing.T) {
	w := newWorld(t)
	name := w.organization(`{}`)
	w.setCondition(name, "Ready", "False", "not yet")
	w.setCondition(name, v1alpha3.ConditionRoleBindingsReady, "False", "no")
	f := w.onboarder()
	f.Insist(w.Event(dockyards.Organizations, name))
	org := w.Must(dockyards.Organizations, name)
	conditions := dockyards.Conditions(dockyards.Status(org))
	if len(conditions) != 2 || conditions[0].Type != "Ready" || conditions[0].Status != "True" || conditions[0].Message != "" || conditions[1].Message != "no" {
		t.Errorf("the conditions are %v", conditions)
	}
	f.Rests(w.Event(dockyards.Organizations, name))
}

// TestUpstreamsOrganizationIsTakenOverAsItIs: upstream wrote condition and status by
// merge patch under its own manager.
func TestUpstreamsOrganizationIsTakenOverAsItIs(t *testing.T) {
	w := newWorld(t)
	name := "org-" + strings.TrimPrefix(w.NS, "t-")
	w.CreateAs(upstream, `
apiVersion: dockyards.io/v1alpha3
kind: Organization
metadata: {name: `+name+`, labels: {dockyards.io/organization-name: `+name+`}}
spec: {displayName: A, namespaceRef: {name: a}, duration: 720h0m0s}
status:
  namespaceRef: {name: a}
  conditions:
  - {type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-03-01T10:00:00Z", observedGeneration: 1}
  - {type: RoleBindingsReady, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-03-01T10:00:00Z"}
`)
	before := w.Snapshot()
	w.onboarder().Rests(w.Event(dockyards.Organizations, name))
	if diff := cmp.Diff(before, w.Snapshot()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestConditionsOfOthersSurviveConcurrentWrites: many copies, and a neighbour that
// never rests.
func TestConditionsOfOthersSurviveConcurrentWrites(t *testing.T) {
	w := newWorld(t)
	name := w.organization(`{}`)
	const rounds = 20
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() {
			for i := range rounds {
				w.setCondition(name, fmt.Sprintf("Neighbour%d", n), "True", fmt.Sprintf("round %d", i))
			}
		})
	}
	for range 3 {
		f := w.onboarder()
		all.Go(func() {
			for range rounds {
				f.Send(w.Event(dockyards.Organizations, name))
			}
		})
	}
	all.Wait()
	f := w.onboarder()
	f.Insist(w.Event(dockyards.Organizations, name))
	conditions := dockyards.Conditions(dockyards.Status(w.Must(dockyards.Organizations, name)))
	if len(conditions) != 4 || !v1alpha3.IsConditionTrue(conditions, "Ready") {
		t.Errorf("the conditions are %v", conditions)
	}
	for n := range 3 {
		c := v1alpha3.FindCondition(conditions, fmt.Sprintf("Neighbour%d", n))
		if c == nil || c.Message != fmt.Sprintf("round %d", rounds-1) {
			t.Errorf("the last word of neighbour %d is lost: %v", n, c)
		}
	}
	f.Rests(w.Event(dockyards.Organizations, name))
}

// TestACopyOnAStaleReadErasesNothing holds a copy at each of its calls while a
// neighbour writes into the list.
func TestACopyOnAStaleReadErasesNothing(t *testing.T) {
	calls := func() int {
		w := newWorld(t)
		name := w.organization(`{}`)
		f := w.onboarder()
		f.Insist(w.Event(dockyards.Organizations, name))
		return len(f.Calls())
	}()
	for n := 1; n <= calls; n++ {
		t.Run(fmt.Sprintf("HeldAtCall%d", n), func(t *testing.T) {
			w := newWorld(t)
			name := w.organization(`{}`)
			gate := suite.NewGate(n)
			finish, held := gate.Begin(w.onboarder(suite.WithTap(gate.Tap)), w.Event(dockyards.Organizations, name))
			w.setCondition(name, v1alpha3.ConditionRoleBindingsReady, "True", "meanwhile")
			finish()
			if !held {
				t.Fatal("the copy was never held")
			}
			f := w.onboarder()
			f.Insist(w.Event(dockyards.Organizations, name))
			if got := w.Condition(dockyards.Organizations, name, "Ready"); got != "True Ready" {
				t.Errorf("Ready is %s", got)
			}
			if got := w.Condition(dockyards.Organizations, name, v1alpha3.ConditionRoleBindingsReady); got != "True Ready" {
				t.Errorf("the neighbour's condition is %q", got)
			}
		})
	}
}
