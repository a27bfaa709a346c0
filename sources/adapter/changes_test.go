package adapter

import (
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// TestOnlyChangesOfTheFieldsThatAreLookedAtGiveEvents: a Node's heartbeats must not keep
// a function awake, and nothing that it looks at may be missed.
func TestOnlyChangesOfTheFieldsThatAreLookedAtGiveEvents(t *testing.T) {
	c := changesOf([]string{"/metadata/labels", "/metadata/annotations/kubevirt.io~1topology", "/status/capacity"})
	event := func(kind watch.EventType, text string) watch.Event {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		return watch.Event{Type: kind, Object: object}
	}
	for _, step := range []struct {
		reason, object string
		kind           watch.EventType
		passes         bool
	}{
		{"seen for the first time", `{"metadata":{"uid":"a","labels":{"x":"1"}},"status":{"capacity":{"cpu":"4"}}}`, watch.Modified, true},
		{"a heartbeat", `{"metadata":{"uid":"a","resourceVersion":"2","labels":{"x":"1"}},"status":{"capacity":{"cpu":"4"},"conditions":[{"lastHeartbeatTime":"now"}]}}`, watch.Modified, false},
		{"KubeVirt's own heartbeat", `{"metadata":{"uid":"a","annotations":{"kubevirt.io/heartbeat":"now"},"labels":{"x":"1"}},"status":{"capacity":{"cpu":"4"}}}`, watch.Modified, false},
		{"another Node with the same", `{"metadata":{"uid":"b","labels":{"x":"1"}},"status":{"capacity":{"cpu":"4"}}}`, watch.Added, true},
		{"new hardware", `{"metadata":{"uid":"a","labels":{"x":"1"}},"status":{"capacity":{"cpu":"4","nvidia.com/gpu":"1"}}}`, watch.Modified, true},
		{"a label that goes", `{"metadata":{"uid":"a"},"status":{"capacity":{"cpu":"4","nvidia.com/gpu":"1"}}}`, watch.Modified, true},
		{"a name with a slash", `{"metadata":{"uid":"a","annotations":{"kubevirt.io/topology":"x"}},"status":{"capacity":{"cpu":"4","nvidia.com/gpu":"1"}}}`, watch.Modified, true},
		{"a field of the wrong type", `{"metadata":{"uid":"a"},"status":"none"}`, watch.Modified, true},
		{"a Node that goes", `{"metadata":{"uid":"b","labels":{"x":"1"}},"status":{"capacity":{"cpu":"4"}}}`, watch.Deleted, true},
		{"what the server says of itself", `{"kind":"Status"}`, watch.Error, true},
	} {
		if _, passes := c.filter(event(step.kind, step.object)); passes != step.passes {
			t.Errorf("%s: it gives an event: %v, want %v", step.reason, passes, step.passes)
		}
	}
	if len(c.last) != 1 {
		t.Errorf("%d objects are remembered, and one is there", len(c.last))
	}
}

func TestAFieldThatIsNoPointerIsRefused(t *testing.T) {
	for _, field := range []string{"", "/", "status", "status/capacity"} {
		r := Resource{Versions: []string{"v1"}, Resource: "nodes", Kind: "Node", Fields: []string{field}}
		if err := r.complete(); err == nil {
			t.Errorf("field %q is taken", field)
		}
	}
	good := Resource{Versions: []string{"v1"}, Resource: "nodes", Kind: "Node", Fields: []string{"/status/capacity"}}
	if err := good.complete(); err != nil || !slices.Equal(good.Fields, []string{"/status/capacity"}) {
		t.Errorf("%v %v", good.Fields, err)
	}
}
