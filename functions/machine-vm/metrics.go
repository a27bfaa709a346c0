package machinevm

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/decide"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/telemetry"
)

// Metrics under the names that the operator had which the function replaces.
const (
	metricMachines  = "kubevirt_operator_machines_total"
	metricVMs       = "kubevirt_operator_virtual_machines_total"
	metricDurations = "kubevirt_operator_reconciliation_duration_seconds"
)

func metrics() []telemetry.Instrument {
	return []telemetry.Instrument{
		{Name: metricMachines, Kind: telemetry.Gauge, Labels: []string{"phase", "template"}, Help: "Machines, by phase and by the name that gave their size."},
		{Name: metricVMs, Kind: telemetry.Gauge, Labels: []string{"status"}, Help: "Virtual machines of Machines, by the status that KubeVirt prints."},
		{
			Name: metricDurations, Kind: telemetry.Reconciles, Labels: []string{"controller"}, Help: "Time of one reconcile.",
			Buckets: []float64{.005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 25},
		},
		{Name: decide.MetricErrors, Kind: telemetry.Counter, Labels: []string{"controller", "error_type"}, Help: "Reconciles that ended with an error on the Machine, by its type."},
		{
			Name: decide.MetricProvisioning, Kind: telemetry.Histogram, Labels: []string{"storage_class"}, Help: "Time from the creation of a claim until it was seen Bound.",
			Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600},
		},
		{Name: decide.MetricNetworks, Kind: telemetry.Counter, Labels: []string{"network_name"}, Help: "Reconciles that met a network that cannot be used."},
	}
}

func gauges(settings Settings) []reconcile.Gauge {
	return []reconcile.Gauge{
		{Metric: metricMachines, Resource: kinds.Machines, Labels: machineLabels},
		{
			Metric: metricVMs, Resource: kinds.VirtualMachines, Targets: true,
			Selector: managed(settings), Labels: vmLabels,
		},
	}
}

// machineLabels: what another provider runs is none of ours.
func machineLabels(machine *unstructured.Unstructured, _ func(reconcile.Key, string) bool) ([]string, bool) {
	phase, _, _ := unstructured.NestedString(machine.Object, "status", "phase")
	if phase == "" {
		phase = v1alpha1.PhasePending
	}
	return []string{phase, decide.Template(machine)}, decide.Ours(machine)
}

// statuses are those that KubeVirt prints.
var statuses = []kubevirtv1.VirtualMachinePrintableStatus{
	kubevirtv1.VirtualMachineStatusStopped, kubevirtv1.VirtualMachineStatusProvisioning, kubevirtv1.VirtualMachineStatusStarting,
	kubevirtv1.VirtualMachineStatusRunning, kubevirtv1.VirtualMachineStatusPaused, kubevirtv1.VirtualMachineStatusStopping,
	kubevirtv1.VirtualMachineStatusTerminating, kubevirtv1.VirtualMachineStatusCrashLoopBackOff, kubevirtv1.VirtualMachineStatusMigrating,
	kubevirtv1.VirtualMachineStatusUnknown, kubevirtv1.VirtualMachineStatusUnschedulable, kubevirtv1.VirtualMachineStatusErrImagePull,
	kubevirtv1.VirtualMachineStatusImagePullBackOff, kubevirtv1.VirtualMachineStatusPvcNotFound, kubevirtv1.VirtualMachineStatusDataVolumeError,
	kubevirtv1.VirtualMachineStatusWaitingForVolumeBinding, kubevirtv1.VirtualMachineStatusWaitingForReceiver,
}

// vmLabels: a virtual machine counts when it is marked as that of a Machine that is
// there. A status that is not known, or not there yet, counts as Unknown.
func vmLabels(vm *unstructured.Unstructured, owned func(reconcile.Key, string) bool) ([]string, bool) {
	annotations := vm.GetAnnotations()
	owner := reconcile.Key{Namespace: vm.GetNamespace(), Name: annotations[v1alpha1.AnnotationMachineName]}
	status, _, _ := unstructured.NestedString(vm.Object, "status", "printableStatus")
	if !slices.Contains(statuses, kubevirtv1.VirtualMachinePrintableStatus(status)) {
		status = string(kubevirtv1.VirtualMachineStatusUnknown)
	}
	return []string{status}, owned(owner, annotations[v1alpha1.AnnotationMachineUID])
}
