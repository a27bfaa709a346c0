package decide

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Conclude is what the Workload is told, now that the plan was carried out.
func Conclude(now time.Time, in Input, _ plan.Answers, outcomes plan.Outcomes) plan.Conclusion {
	if !Concerned(in.Settings, in.Workload) {
		return plan.Conclusion{Class: plan.Done, Reason: "NotConcerned", Message: "the Workload is of no Cluster, or is being deleted"}
	}
	v := look(in)
	v.heed(outcomes)
	is := v.verdict()
	status := dockyards.Status(in.Workload)
	before := v1alpha3.FindCondition(dockyards.Conditions(status), v1alpha3.ConditionWorkloadIngressReconciled)
	dockyards.SetCondition(status, metav1.Condition{
		Type: v1alpha3.ConditionWorkloadIngressReconciled, Status: is.status, Reason: is.reason, Message: is.message,
		ObservedGeneration: in.Workload.GetGeneration(),
	}, metav1.NewTime(now))
	c := plan.Conclusion{
		Class: is.class, Reason: is.reason, Message: is.message, Status: status,
		Events: news(before, is), LogFields: map[string]string{"cluster": v.remoteName()},
	}
	if f := in.Remote.Fault; f != nil {
		c.LogFields["cluster_error"] = f.Error()
	}
	return c
}

// heed takes in what the API servers answered.
func (v *view) heed(outcomes plan.Outcomes) {
	if v.ended != nil && len(outcomes.Faults()) > 0 {
		// What had to be given up was not: that is to be tried again.
		v.ended.class = plan.Retry
		return
	}
	for _, o := range outcomes {
		f := o.Fault
		switch {
		case o.Result == plan.Capped:
			v.fail("more has to be deleted than one run may")
			v.said.retry = true
		case f == nil:
		case f.Cluster == "":
			v.fail(told(f))
			v.said.retry = v.said.retry || f.Class != fault.NotServed
		case f.Class == fault.Unavailable:
			v.said.silent = true
		case f.Code == 404:
			// The Service went meanwhile, of which an event tells.
		default:
			v.fail(told(f))
		}
	}
}

// alarming are the reasons of which a Kubernetes Event tells, once.
var alarming = []string{v1alpha3.ReasonErrorReconciling, v1alpha3.ReasonHostConflict, v1alpha3.ReasonNameConflict}

func news(before *metav1.Condition, is verdict) []plan.Event {
	if !slices.Contains(alarming, is.reason) || (before != nil && before.Reason == is.reason) {
		return nil
	}
	return []plan.Event{{Warning: true, Reason: is.reason, Message: is.message}}
}
