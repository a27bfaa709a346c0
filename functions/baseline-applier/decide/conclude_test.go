package decide

import (
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

// TestARecordThatCannotBeWrittenIsNotDone: an event that is answered as done does not come
// again, and the record would say what was, until the next resync.
func TestARecordThatCannotBeWrittenIsNotDone(t *testing.T) {
	in := Input{Settings: DefaultSettings()}
	for name, tc := range map[string]struct {
		fault *fault.Fault
		want  plan.Class
	}{
		"Written":    {nil, plan.Done},
		"NoAnswer":   {&fault.Fault{Class: fault.Unavailable, Code: 503, Call: "patch", Message: "later"}, plan.Retry},
		"NotAllowed": {&fault.Fault{Class: fault.Refused, Code: 403, Call: "patch", Message: "forbidden"}, plan.Done},
	} {
		view := View{State: State{}}
		outcome := plan.Outcome{Entry: record(in, view), Result: plan.Configured, Fault: tc.fault}
		got := Tell(in, view, plan.Outcomes{outcome})
		if got.Class != tc.want {
			t.Errorf("%s: it is %s, want %s", name, got.Class, tc.want)
		}
		if told := strings.Contains(got.Message, "the record cannot be written"); told != (tc.fault != nil) {
			t.Errorf("%s: it says %q", name, got.Message)
		}
	}
}
