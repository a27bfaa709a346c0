package reconcile

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/plan"
)

func TestAnswer(t *testing.T) {
	cases := map[plan.Class]struct {
		reason string
		want   int
		empty  bool
	}{
		plan.Done:     {"a broker takes a 2xx with text for a failure", http.StatusNoContent, true},
		plan.Waiting:  {"the awaited object's event wakes us: nothing is to be sent again", http.StatusNoContent, true},
		plan.Terminal: {"sending it again cannot help: the condition tells the user", http.StatusNoContent, true},
		plan.Retry:    {"503 is what both delivery paths send again", http.StatusServiceUnavailable, false},
		"unheard-of":  {"a class that nobody knows must not lose the event", http.StatusServiceUnavailable, false},
	}
	for class, tc := range cases {
		t.Run(string(class), func(t *testing.T) {
			var result *cehttp.Result
			if err := answer(class, "100% why"); !errors.As(err, &result) || result.StatusCode != tc.want {
				t.Fatalf("%s: want %d, got %v", tc.reason, tc.want, err)
			}
			if empty := result.Format == ""; empty != tc.empty {
				t.Errorf("%s: the body is empty: %v", tc.reason, empty)
			}
		})
	}
}

func TestTheWorstClassAnswersForAllObjectsOfAnEvent(t *testing.T) {
	order := []plan.Class{plan.Done, plan.Waiting, plan.Terminal, plan.Retry}
	for i, low := range order {
		for _, high := range order[i:] {
			if worse(low, high) != high || worse(high, low) != high {
				t.Errorf("of %s and %s the answer is not %s", low, high, high)
			}
		}
	}
}

func TestALogLevelThatNobodyKnowsStopsTheStart(t *testing.T) {
	for level, allowed := range map[string]bool{"": true, "debug": true, "error": true, "loud": false, "INFO": false} {
		t.Setenv("LOG_LEVEL", level)
		h := New(Function[struct{}]{Spec: Spec{Name: "gadget"}}, Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}})
		if refused := h.broken != nil && strings.Contains(h.broken.Error(), "LOG_LEVEL"); refused == allowed {
			t.Errorf("level %q: %v", level, h.broken)
		}
	}
}

func TestParseMode(t *testing.T) {
	for text, want := range map[string]Mode{"": ModeApply, "apply": ModeApply, "plan": ModePlan, "observe": ModeObserve, "unmanaged": ModeUnmanaged} {
		if got, err := ParseMode(text); got != want || err != nil {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	if _, err := ParseMode("Plan"); err == nil {
		t.Error("a mode that nobody knows must be refused, not guessed")
	}
}
