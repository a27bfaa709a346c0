package read

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/vault"
)

// TestAFaultComesBackAsItself: a recording holds faults, a replay makes errors of them,
// and what is made of those is the same fault again.
func TestAFaultComesBackAsItself(t *testing.T) {
	for name, want := range map[string]*fault.Fault{
		"a conflict":         {Class: fault.Conflict, Code: 409, Message: "it was modified"},
		"a refusal":          {Class: fault.Refused, Code: 403, Message: "you may not"},
		"invalid":            {Class: fault.Refused, Code: 422, Message: "no"},
		"an absent object":   {Class: fault.Refused, Code: 404, Message: "not found"},
		"an absent resource": {Class: fault.NotServed, Code: 404, Message: "the server could not find the requested resource"},
		"no such version":    {Class: fault.NotServed, Message: `no matches for /v1, Resource=secrets`},
		"an outage":          {Class: fault.Unavailable, Message: "connection refused"},
		"too busy":           {Class: fault.Unavailable, Code: 429, Message: "later"},
		"broken":             {Class: fault.Unavailable, Code: 500, Message: "oh"},
		"too large":          {Class: fault.Refused, Message: cluster.ErrAnswerTooLarge.Error()},
	} {
		want.Call = "get secrets a/b"
		if diff := cmp.Diff(want, Fault(Cause(want, kind.Secrets), "", want.Call, vault.Played())); diff != "" {
			t.Errorf("%s (-recorded +replayed):\n%s", name, diff)
		}
	}
}

// tape answers what it holds.
type tape map[string]Record

func (t tape) Play(q Question, need plan.Need) (Record, bool) {
	record, ok := t[string(q)+" "+need.Key()]
	return record, ok
}

func TestAPlayedReaderAsksNobodyElse(t *testing.T) {
	served := "v1"
	need := plan.Need{Cluster: "east", Resource: kind.Secrets}
	r := Play(tape{"discover " + need.Key(): {Discovered: &served}}, vault.Played())
	if version, err := r.Version(t.Context(), "east", kind.Secrets); err != nil || version != "v1" {
		t.Errorf("%q, %v", version, err)
	}
	r.Ahead(t.Context(), need)
	if _, err := r.Get(t.Context(), "", kind.Secrets, "a", "b"); err == nil {
		t.Error("what the tape does not hold is answered")
	}
	if _, err := r.Connect(t.Context(), "east", "", "", "k"); err == nil {
		t.Error("a connection that the tape does not hold comes about")
	}
	if _, err := r.Each(t.Context(), "", kind.Secrets, "", func(*unstructured.Unstructured) {}); err == nil {
		t.Error("objects are gone through that nobody recorded")
	}
	if got := len(r.Records()); got != 1 {
		t.Errorf("%d reads are remembered, want the one that failed", got)
	}
}

func TestAnOverlayIsReadInsteadOfWhatIsThere(t *testing.T) {
	named := func(name, label string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"from": "overlay"}}}
		obj.SetNamespace("a")
		obj.SetName(name)
		obj.SetLabels(map[string]string{"app": label})
		return obj
	}
	live := []unstructured.Unstructured{*named("b", "x"), *named("d", "x")}
	overlay := Overlay{named("b", "y"), named("c", "x")}
	need := plan.Need{Resource: kind.ConfigMaps, Namespace: "a", Selector: "app=x"}
	var names []string
	for _, item := range overlay.onto(need, plan.Answer{Items: live}, vault.New()).Items {
		names = append(names, item.GetName())
	}
	if diff := cmp.Diff([]string{"c", "d"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := overlay.over(plan.Need{Resource: kind.ConfigMaps, Namespace: "a", Name: "c"}, vault.New(), func() plan.Answer { return plan.Answer{} })
	if got.Object == nil || got.Object.GetName() != "c" {
		t.Errorf("got %v", got.Object)
	}
	got = overlay.over(plan.Need{Resource: kind.ConfigMaps, Namespace: "other", Name: "c"}, vault.New(), func() plan.Answer { return plan.Answer{} })
	if got.Object != nil {
		t.Errorf("another namespace's is %v", got.Object)
	}
}
