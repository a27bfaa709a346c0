package decide

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
)

// Served is what a placement must know of the management cluster.
type Served struct {
	// KubevirtConfigs and VirtualMachines tell which kinds it serves.
	KubevirtConfigs, VirtualMachines bool
	// Configs are the KubevirtConfigs that exist.
	Configs []unstructured.Unstructured
}

// Place chooses the cluster of a Machine.
//
// NOTE: clusters other than the management cluster are not reached yet: a
// Machine that is placed on one gets a terminal problem that says so.
func Place(machine *unstructured.Unstructured, settings Settings, served Served) Target {
	if machine.GetDeletionTimestamp() != nil {
		return placeDeletion(machine, settings, served)
	}
	configs := usable(served.Configs, settings)
	name, named := stated(machine)
	switch {
	case named:
		return placeAt(name, configs)
	case settings.SingleCluster == SingleTrue:
		return here(served)
	case settings.SingleCluster == SingleAuto && text(machine.Object, "status", "vmName") != "" && served.VirtualMachines:
		// The Machine was placed here before the first KubevirtConfig came: a
		// placed Machine never moves by itself.
		return here(served)
	case settings.DefaultConfig != "":
		return placeAt(settings.DefaultConfig, configs)
	case settings.SingleCluster == SingleAuto && len(configs) == 0 && (served.VirtualMachines || !served.KubevirtConfigs):
		return here(served)
	case len(configs) == 0:
		return nowhere(v1alpha1.ReasonKubevirtConfigNotFound,
			"Machine has no KubevirtConfig reference and no KubevirtConfigs are available")
	case len(configs) == 1:
		return placeAt(configs[0], configs)
	}
	return nowhere(v1alpha1.ReasonPlacementAmbiguous, fmt.Sprintf(
		"Machine has no KubevirtConfig reference and %d configs are available - cannot determine placement: set spec.kubevirtConfigRef to one of %s",
		len(configs), quoted(configs),
	))
}

// stated is the KubevirtConfig that the Machine itself names, in the order in
// which the places count.
func stated(machine *unstructured.Unstructured) (string, bool) {
	for _, name := range []string{
		text(machine.Object, "spec", "kubevirtConfigRef"),
		machine.GetAnnotations()[v1alpha1.AnnotationKubevirtConfig],
		text(machine.Object, "status", "kubevirtConfigRef"),
	} {
		if name != "" {
			return name, true
		}
	}
	return "", false
}

func here(served Served) Target { return Target{Same: true, KubeVirtMissing: !served.VirtualMachines} }

func nowhere(reason, message string) Target {
	return Target{Problem: &Problem{Part: PartPlacement, Reason: reason, Message: message}}
}

func placeAt(name string, configs []string) Target {
	if !slices.Contains(configs, name) {
		return nowhere(v1alpha1.ReasonKubevirtConfigNotFound,
			fmt.Sprintf("KubevirtConfig %q does not exist: create it, or name another in spec.kubevirtConfigRef", name))
	}
	target := nowhere(v1alpha1.ReasonKubevirtConfigInvalid,
		fmt.Sprintf("KubevirtConfig %q is another cluster, which this version cannot reach: remove the reference to run the Machine here", name))
	target.Config = name
	return target
}

// usable are the names of the KubevirtConfigs that count, sorted: not those
// that go, and, where an older CRD is namespaced, those of one namespace.
func usable(configs []unstructured.Unstructured, settings Settings) []string {
	var names []string
	for i := range configs {
		ns := configs[i].GetNamespace()
		if configs[i].GetDeletionTimestamp() != nil || (ns != "" && ns != settings.ConfigsNamespace) {
			continue
		}
		names = append(names, configs[i].GetName())
	}
	slices.Sort(names)
	return names
}

// placeDeletion is where the objects of a Machine that goes are looked for:
// what was recorded counts before what was asked for.
func placeDeletion(machine *unstructured.Unstructured, settings Settings, served Served) Target {
	for _, name := range []string{
		text(machine.Object, "status", "kubevirtConfigRef"),
		machine.GetAnnotations()[v1alpha1.AnnotationKubevirtConfig],
		text(machine.Object, "spec", "kubevirtConfigRef"),
	} {
		if name == "" {
			continue
		}
		target := placeAt(name, usable(served.Configs, settings))
		target.Problem.Message = clip(target.Problem.Message, messageMax/2) +
			": or give up what is there by annotation " + v1alpha1.AnnotationAbandonRemote + `: "true"`
		return target
	}
	// Without a record only the management cluster can hold anything.
	return here(served)
}
