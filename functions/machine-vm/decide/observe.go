package decide

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Metrics that conclusions observe.
const (
	MetricErrors       = "kubevirt_operator_reconciliation_errors_total"
	MetricProvisioning = "kubevirt_operator_storage_provisioning_duration_seconds"
	MetricNetworks     = "kubevirt_operator_network_configuration_errors_total"
)

// errorType is the error that decides what the Machine is told; empty if there is
// none.
func (v *view) errorType() string {
	if v.in.Target.Unreachable != nil {
		return v1alpha1.ReasonClusterUnreachable
	}
	if p := first(v.problems); p != nil {
		return p.Reason
	}
	reason, _ := v.trouble()
	return reason
}

// observations are what one reconcile adds to the metrics.
func (v *view) observations(now time.Time, old, status v1alpha1.MachineStatus) []plan.Observation {
	var list []plan.Observation
	if reason := v.errorType(); reason != "" {
		list = append(list, plan.Observation{Metric: MetricErrors, Labels: []string{v.in.Machine.GetKind(), reason}, Value: 1})
	}
	var networks []string
	for _, p := range v.problems {
		if p.Network != "" {
			networks = appendNew(networks, p.Network)
		}
	}
	for _, network := range networks {
		list = append(list, plan.Observation{Metric: MetricNetworks, Labels: []string{network}, Value: 1})
	}
	return append(list, v.provisioned(now, old, status)...)
}

// provisionSlack covers that times have whole seconds, and that a claim is made a
// moment before the condition says that it is awaited.
const provisionSlack = time.Minute

// provisioned are the times from the creation of claims until they were seen Bound,
// when StorageReady turns True. Claims that are older than the wait that ends now
// were counted before, or by nobody: they were not made now.
func (v *view) provisioned(now time.Time, old, status v1alpha1.MachineStatus) []plan.Observation {
	is := v1alpha1.FindCondition(status.Conditions, v1alpha1.ConditionStorageReady)
	was := v1alpha1.FindCondition(old.Conditions, v1alpha1.ConditionStorageReady)
	if is == nil || is.Status != v1alpha1.ConditionTrue || (was != nil && was.Status == v1alpha1.ConditionTrue) {
		return nil
	}
	since := now
	if was != nil {
		since = was.LastTransitionTime.Time
	}
	var list []plan.Observation
	for _, claim := range sorted(v.in.Claims) {
		made := claim.GetCreationTimestamp().Time
		if v.owns(claim.GetName()) && bound(claim) && !made.Before(since.Add(-provisionSlack)) {
			list = append(list, plan.Observation{
				Metric: MetricProvisioning, Labels: []string{text(claim.Object, "spec", "storageClassName")},
				Value: max(now.Sub(made), 0).Seconds(),
			})
		}
	}
	return list
}

func bound(claim *unstructured.Unstructured) bool {
	return text(claim.Object, "status", "phase") == "Bound"
}

// noTemplate is the template of a Machine that no name gave a size.
const noTemplate = "none"

// Template is the name that gave a Machine its size. A name that stands for nothing
// gives none: what people can mistype is no label value.
func Template(machine *unstructured.Unstructured) string {
	if text(machine.Object, "status", "failureReason") == v1alpha1.ReasonTemplateNotFound {
		return noTemplate
	}
	for _, field := range []string{"machineClass", "instanceType", "template"} {
		if name := text(machine.Object, "spec", field); name != "" {
			return name
		}
	}
	return noTemplate
}
