package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
)

func observed(o outcome) string {
	var list []string
	for _, x := range o.conclusion.Observations {
		list = append(list, fmt.Sprintf("%s%v %v", x.Metric, x.Labels, x.Value))
	}
	return strings.Join(list, "; ")
}

// bind makes every claim bound, a while after it was made.
func (w *world) bind(after time.Duration) {
	w.t.Helper()
	for _, claim := range w.all(kind.PersistentVolumeClaims, "") {
		if bound(&claim) {
			continue
		}
		w.edit(kind.PersistentVolumeClaims, claim.GetName(), func(obj *unstructured.Unstructured) {
			obj.SetCreationTimestamp(metav1.NewTime(instant.Add(-after)))
			put(obj.Object, "Bound", "status", "phase")
		})
	}
}

func TestProvisioningIsObservedOnceWhenStorageTurnsReady(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small, disks: [{name: data, size: 1Gi}]`)
	w.settle("web")
	w.bind(40 * time.Second)
	const each = MetricProvisioning + "[standard] 40"
	sees(t, "OB-1: both claims", observed(w.reconcile("web")), each+"; "+each)
	sees(t, "OB-1: once", observed(w.reconcile("web")), "")
	w.respec(`template: small, disks: [{name: data, size: 1Gi}, {name: log, size: 1Gi}]`)
	w.settle("web")
	w.edit(kind.PersistentVolumeClaims, "web-data", func(obj *unstructured.Unstructured) {
		obj.SetCreationTimestamp(metav1.NewTime(instant.Add(-time.Hour)))
	})
	w.edit(kind.PersistentVolumeClaims, "web-root", func(obj *unstructured.Unstructured) {
		obj.SetCreationTimestamp(metav1.NewTime(instant.Add(-time.Hour)))
	})
	w.bind(20 * time.Second)
	sees(t, "OB-1: the new claim alone", observed(w.reconcile("web")), MetricProvisioning+"[standard] 20")
}

func TestATakenOverClaimWasNotProvisionedNow(t *testing.T) {
	w := newWorld(t)
	w.machine(`template: small`)
	w.settle("web")
	w.bind(100 * time.Hour)
	w.edit(kinds.Machines, "web", func(obj *unstructured.Unstructured) { delete(obj.Object, "status") })
	sees(t, "OB-1: nothing", observed(w.reconcile("web")), "")
}

func TestErrorsAreObservedByType(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"a template":  {`template: nonsense`, MetricErrors + "[Machine TemplateNotFound] 1"},
		"a network":   {`template: small, networks: [{name: a, networkName: lan}]`, MetricErrors + "[Machine NetworkConfigurationNotFound] 1; " + MetricNetworks + "[lan] 1"},
		"a namespace": {`template: small, network: {networkNamespaceName: lan}`, MetricErrors + "[Machine NetworkFailed] 1; " + MetricNetworks + "[lan] 1"},
		"a disk":      {`template: small, disks: [{name: a}]`, MetricErrors + "[Machine InvalidSpec] 1"},
		"nothing":     {`template: small`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.machine(c.spec)
			o := w.reconcile("web")
			sees(t, "OB-1", observed(o), c.want)
			wanted, _, _ := strings.Cut(strings.TrimPrefix(c.want, MetricErrors+"[Machine "), "]")
			sees(t, "OB-4: error_type", o.conclusion.LogFields["error_type"], wanted)
		})
	}
}

func TestTheTemplateIsTheNameThatGaveTheSize(t *testing.T) {
	for spec, want := range map[string]string{
		`template: small`:                       "small",
		`instanceType: medium, template: small`: "medium",
		`machineClass: gold, template: small`:   "gold",
		`resources: {cpu: {cores: 2}}`:          "none",
		`template: nonsense`:                    "none",
	} {
		w := newWorld(t)
		w.add(`{apiVersion: vitistack.io/v1alpha1, kind: MachineClass, metadata: {name: gold}, spec: {enabled: true, cpu: {cores: 2}, memory: {quantity: 4Gi}}}`)
		w.machine(spec)
		w.reconcile("web")
		sees(t, spec, Template(w.must(kinds.Machines, "web")), want)
	}
}
