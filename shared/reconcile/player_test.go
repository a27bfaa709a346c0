package reconcile

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/apply"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/record"
)

// TestADryRunThatWasRememberedLaterIsSentFirst: a reconcile that lost a race has sent the
// dry-run in its first round, and has known its answer in the second.
func TestADryRunThatWasRememberedLaterIsSentFirst(t *testing.T) {
	entry := plan.Entry{Verb: plan.Apply, Resource: kind.ConfigMaps, Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "n"},
	}}}
	call := func(verb string, same bool) record.Call {
		c := callOf(called{Request: apply.Request{Verb: verb, Entry: entry}}, nil)
		c.Same = same
		return c
	}
	p := newPlayer(&record.Recording{Calls: []record.Call{call(apply.VerbDryRun, false), call(verbRemembered, true)}})
	if _, ok := p.recall(entry); ok {
		t.Error("the answer is remembered before it was given")
	}
	if _, err := p.answer(apply.Request{Verb: apply.VerbDryRun, Entry: entry}); err != nil {
		t.Fatal(err)
	}
	if same, ok := p.recall(entry); !ok || !same {
		t.Errorf("the answer is not remembered after it was given: %v, %v", same, ok)
	}
	if _, ok := p.recall(entry); ok {
		t.Error("it is remembered twice")
	}
}
