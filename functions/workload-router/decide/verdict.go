package decide

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

// verdict is what a pass came to: the condition without its type and times, and
// what that makes of the reconcile.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
	class           plan.Class
}

func waiting(reason, message string) *verdict {
	return &verdict{metav1.ConditionFalse, reason, message, plan.Waiting}
}

// unreachable is a workload cluster that cannot be asked. It is waited for.
func unreachable(message string) *verdict {
	return &verdict{metav1.ConditionUnknown, v1alpha3.ReasonClusterUnreachable, message, plan.Waiting}
}

// findings are what has to be told of a pass, by what it makes of the condition.
type findings struct {
	// errors are what an API server did not let through; retry tells that it may
	// later. A workload cluster's refusal is waited out.
	errors []string
	retry  bool
	// silent tells that the workload cluster stopped answering.
	silent bool
	// hosts are zones that are others', names are objects that are.
	hosts, names []string
	// routed tells that a Service wants a route, so that hostnames matter.
	routed bool
	// notes change nothing.
	notes []string
}

// verdict is the condition of a pass that came to its end.
func (v *view) verdict() verdict {
	s := v.said
	is := verdict{status: metav1.ConditionFalse}
	switch {
	case v.ended != nil:
		return *v.ended
	case s.silent:
		return *unreachable(v.silence())
	case len(s.errors) > 0:
		is.reason, is.class = v1alpha3.ReasonErrorReconciling, plan.Waiting
		if s.retry {
			is.class = plan.Retry
		}
	case len(v.ways) == 0:
		return verdict{metav1.ConditionTrue, v1alpha3.ReasonNoLoadBalancerService, join(s.notes), plan.Done}
	case len(s.hosts) > 0:
		is.reason, is.class = v1alpha3.ReasonHostConflict, plan.Waiting
	case len(s.names) > 0:
		is.reason, is.class = v1alpha3.ReasonNameConflict, plan.Terminal
	case s.routed && len(v.zones.hostnames) == 0:
		is.reason, is.class = v1alpha3.ReasonWaitingForDNSZones, plan.Waiting
	default:
		is.status, is.reason, is.class = metav1.ConditionTrue, v1alpha3.ReasonReconciled, plan.Done
	}
	is.message = join(s.errors, s.hosts, s.names, s.notes)
	if is.message == "" && is.reason == v1alpha3.ReasonWaitingForDNSZones {
		is.message = "the Cluster has no DNS zone, and without one there is no route"
	}
	return is
}

// silence is said of a workload cluster that does not answer. Why not changes from
// one attempt to the next, and stands in the log.
func (v *view) silence() string {
	return fmt.Sprintf("the API server of workload cluster %q does not answer", v.clusterName)
}

// told is a fault in words that stay the same from one attempt to the next.
func told(f *fault.Fault) string {
	where := "the API server"
	if f.Cluster != "" {
		where = "the workload cluster"
	}
	switch f.Class {
	case fault.NotServed:
		return fmt.Sprintf("cannot %s: %s does not serve that kind", f.Call, where)
	case fault.Refused:
		// What a tenant's server says is not passed on.
		if f.Cluster != "" && f.Code != 0 {
			return fmt.Sprintf("cannot %s: %s refuses with code %d", f.Call, where, f.Code)
		}
		return fmt.Sprintf("cannot %s: %s", f.Call, f.Message)
	case fault.Unavailable, fault.Conflict:
	}
	if f.Code == 0 {
		return fmt.Sprintf("cannot %s: %s does not answer", f.Call, where)
	}
	return fmt.Sprintf("cannot %s: %s answers %d", f.Call, where, f.Code)
}

// messageMax is the length of what people are told.
const messageMax = 256

// join makes one line of what has to be told, as far as there is room, and says how
// much is left out.
func join(lists ...[]string) string {
	var all []string
	for _, list := range lists {
		all = append(all, list...)
	}
	line := ""
	for i, text := range all {
		text = clip.Line(text, messageMax)
		next := text
		if i > 0 {
			next = line + "; " + text
		}
		rest := ""
		if left := len(all) - i - 1; left > 0 {
			rest = fmt.Sprintf("; and %d more", left)
		}
		if len(next)+len(rest) > messageMax {
			if i == 0 {
				return clip.Line(text, messageMax-len(rest)) + rest
			}
			return line + fmt.Sprintf("; and %d more", len(all)-i)
		}
		line = next
	}
	return line
}
