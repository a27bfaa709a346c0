package machinevm

import (
	"fmt"
	"os"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/deploy/local/crds"
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	kubetest "github.com/slipway-dev/slipway/test/kube"
	"github.com/slipway-dev/slipway/test/suite"
	"github.com/slipway-dev/slipway/test/virt/admission"
)

// made are the resources of which a namespace's state consists.
var made = []kind.Resource{
	kinds.Machines, kinds.VirtualMachines, kinds.VirtualMachineInstances, kind.PersistentVolumeClaims, kinds.DataVolumes,
	kind.Secrets, kinds.NetworkAttachmentDefinitions, kinds.NetworkConfigurations, kinds.NetworkNamespaces,
}

var suit = suite.New(suite.Options{
	Specs: []reconcile.Spec{machinevm.DefaultSpec()},
	CRDs:  []string{crds.KubeVirt, crds.CDI, crds.Multus},
	Files: []string{"api/vitistack/crds", "api/vitistack/v1alpha1/testdata/networknamespace-crd.yaml"}, StorageClasses: true,
	Kinds: made, Stored: examine, Plain: plain, Sort: suite.DevicesByName, Derived: derived,
})

func TestMain(m *testing.M) { os.Exit(suit.Main(m)) }

// examine reads what the server stored of a VirtualMachine that the function
// wrote: KubeVirt's webhooks, which do not run here, must have accepted it.
func examine(tb testing.TB, req kubetest.Request, obj *unstructured.Unstructured) {
	if req.Group != kinds.VirtualMachines.Group || req.Resource != kinds.VirtualMachines.Plural {
		return
	}
	for _, violation := range admission.Check(obj) {
		tb.Errorf("KubeVirt would refuse what %s wrote: %v", req, violation)
	}
}

// world is a namespace for Machines.
type world struct {
	*suite.World
	t *testing.T
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{World: suit.World(t), t: t}
}

// copyOf starts a copy of the function under default settings.
func (w *world) copyOf(options ...suite.Option) *suite.Copy {
	w.t.Helper()
	return w.copyWith(nil, options...)
}

// copyWith starts a copy of the function with environment variables, as pairs.
func (w *world) copyWith(env []string, options ...suite.Option) *suite.Copy {
	w.t.Helper()
	settings, err := machinevm.ParseSettings(func(name string) (string, bool) {
		for i := 0; i+1 < len(env); i += 2 {
			if env[i] == name {
				return env[i+1], true
			}
		}
		return "", false
	})
	if err != nil {
		w.t.Fatal(err)
	}
	parallel := suite.WithOptions(func(o *reconcile.Options) { o.Parallel = settings.MaxConcurrentReconciles })
	return suite.Run(w.World, machinevm.Declare(settings), append(options, parallel)...)
}

func (w *world) machineEvent(name string) cloudevents.Event { return w.Event(kinds.Machines, name) }

// machine makes a Machine with a spec.
func (w *world) machine(name, spec string) *unstructured.Unstructured {
	w.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(spec))
	if err != nil {
		w.t.Fatalf("%v in %s", err, spec)
	}
	return w.Create(fmt.Sprintf(`{"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": {"name": %q}, "spec": %s}`, name, raw))
}

// release plays the controller that keeps claims in use: it lets those go that are
// being deleted. Without KubeVirt no instance uses them. It tells whether any went.
func (w *world) release() bool {
	w.t.Helper()
	went := false
	for key, obj := range w.Objects() {
		if strings.HasPrefix(key, kind.PersistentVolumeClaims.Kind+"/") && obj.GetDeletionTimestamp() != nil {
			w.Patch(kind.PersistentVolumeClaims, obj.GetName(), `{metadata: {finalizers: null}}`)
			went = true
		}
	}
	return went
}

// condition is "status reason" of a Machine's condition.
func (w *world) condition(machine, conditionType string) string {
	w.t.Helper()
	return w.Condition(kinds.Machines, machine, conditionType)
}

// why is all of the condition Ready.
func (w *world) why(machine string) string {
	is, reason, message := suite.Condition(w.Must(kinds.Machines, machine), "Ready")
	return is + " " + reason + ": " + message
}
