package decide

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Conclude is what the Cluster is told, now that the plan was carried out.
func Conclude(now time.Time, in Input, _ plan.Answers, outcomes plan.Outcomes) plan.Conclusion {
	v := look(in)
	if dockyards.Going(in.Cluster) {
		return plan.Conclusion{Class: plan.Done, Reason: v1alpha3.ReasonDeleting, Message: "the Cluster is being deleted"}
	}
	v.heed(outcomes)
	endpoint := v.endpointVerdict()
	status := dockyards.Status(in.Cluster)
	before := dockyards.Conditions(status)
	endpoint.message = v.announced(endpoint, v1alpha3.FindCondition(before, v1alpha3.ConditionAPIEndpointReconciled))
	events := v.moves()
	for _, part := range []struct {
		conditionType string
		is            verdict
	}{
		{v1alpha3.ConditionAPIEndpointReconciled, endpoint}, {v1alpha3.ConditionIngressWorkloadReconciled, v.ingress},
	} {
		events = append(events, news(v1alpha3.FindCondition(before, part.conditionType), part.is)...)
		dockyards.SetCondition(status, metav1.Condition{
			Type: part.conditionType, Status: part.is.status, Reason: part.is.reason, Message: clip.Line(part.is.message, messageMax),
			ObservedGeneration: in.Cluster.GetGeneration(),
		}, metav1.NewTime(now))
	}
	v.setEndpoint(status)

	worst := worse(worse(endpoint, v.ingress), v.infra)
	return plan.Conclusion{
		Class: worst.class, Reason: worst.reason, Message: clip.Line(worst.message, messageMax), Status: status, Events: events,
	}
}

// heed takes in what the API server answered.
func (v *view) heed(outcomes plan.Outcomes) {
	if f := failure(outcomes, dockyards.TLSRoutes); f != nil {
		v.route = v.failed(f)
		if v.endpoint.withRoute {
			v.endpoint.keep, v.endpoint.announce = true, ""
		}
	}
	if f := failure(outcomes, dockyards.Workloads); f != nil {
		v.ingress = v.failed(f)
	}
	for _, res := range []kind.Resource{dockyards.KubevirtClusters, dockyards.CAPIClusters} {
		if f := failure(outcomes, res); f != nil {
			v.infra = v.failed(f)
			return
		}
	}
}

func failure(outcomes plan.Outcomes, res kind.Resource) *fault.Fault {
	for _, o := range outcomes.Faults() {
		if o.Entry.Resource.String() == res.String() {
			return o.Fault
		}
	}
	return nil
}

// endpointVerdict is the condition of the endpoint: what the API server did not let
// through comes first, then what stands in the way of the host, of the route, of the
// infrastructure behind it.
func (v *view) endpointVerdict() verdict {
	is := v.endpoint.verdict
	switch {
	case is.class == plan.Retry:
		return is
	case v.route.class == plan.Retry:
		return v.route
	case v.infra.class == plan.Retry:
		return v.infra
	case is.status != metav1.ConditionTrue:
		return is
	case v.route.status != "":
		return v.route
	case v.infra.status != "":
		return v.infra
	}
	is.message = both(is.message, v.infra.message)
	return is
}

// announced is the condition's message. What was said of a host that moved stays
// until the Cluster changes, or there is something else to say.
func (v *view) announced(is verdict, old *metav1.Condition) string {
	if is.status != metav1.ConditionTrue {
		return is.message
	}
	if v.endpoint.announce != "" {
		return both(v.endpoint.announce, is.message)
	}
	if old == nil || old.Status != metav1.ConditionTrue || old.ObservedGeneration != v.in.Cluster.GetGeneration() {
		return is.message
	}
	if said := old.Message; is.message == "" && (said == moved || said == corrected) {
		return said
	}
	return is.message
}

// setEndpoint puts the host in force into a status, or takes it out.
func (v *view) setEndpoint(status map[string]any) {
	e := v.endpoint
	switch {
	case e.keep:
	case e.host == "":
		delete(status, "apiEndpoint")
	default:
		status["apiEndpoint"] = map[string]any{"host": e.host, "port": int64(apiPort)}
	}
}

// moves are the Events of a host that changes.
func (v *view) moves() []plan.Event {
	have, _ := stored(v.in.Cluster)
	if v.endpoint.keep || v.endpoint.announce == "" || have == v.endpoint.host {
		return nil
	}
	return []plan.Event{{Reason: v1alpha3.ReasonRolloutStarted, Message: v.endpoint.announce}}
}

// newsworthy are the reasons that a person should notice.
var newsworthy = []string{
	v1alpha3.ReasonHostConflict, v1alpha3.ReasonNameConflict, v1alpha3.ReasonInvalidHostname, v1alpha3.ReasonInvalidSpec,
	v1alpha3.ReasonRolloutHeld,
}

// news is the Event of a condition that came to such a reason.
func news(old *metav1.Condition, is verdict) []plan.Event {
	if !slices.Contains(newsworthy, is.reason) || (old != nil && old.Reason == is.reason) {
		return nil
	}
	return []plan.Event{{Warning: is.reason != v1alpha3.ReasonRolloutHeld, Reason: is.reason, Message: clip.Line(is.message, messageMax)}}
}

// severity orders what a reconcile can come to.
var severity = []plan.Class{"", plan.Done, plan.Waiting, plan.Terminal, plan.Retry}

func worse(a, b verdict) verdict {
	if slices.Index(severity, b.class) > slices.Index(severity, a.class) {
		return b
	}
	return a
}
