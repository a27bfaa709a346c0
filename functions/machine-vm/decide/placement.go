package decide

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Served is what a placement must know of the management cluster.
type Served struct {
	// KubevirtConfigs and VirtualMachines tell which kinds it serves.
	KubevirtConfigs, VirtualMachines bool
	// Configs are the KubevirtConfigs that exist.
	Configs []unstructured.Unstructured
}

// Management stands for the management cluster among the clusters that are
// looked at.
const Management = ""

// Wish is where a Machine's objects shall lie, as far as that follows without
// a look at any other cluster.
type Wish struct {
	// Config is the KubevirtConfig that is wished for. Empty: the management
	// cluster, or whatever the search finds.
	Config string
	// Automatic tells that nobody has named it.
	Automatic bool
	// Search are the clusters to search for the Machine's objects.
	Search []string
	// Moved tells that the Machine may still have objects on cluster Old.
	Moved bool
	Old   string
	// Problem is why there is nothing to wish for.
	Problem *Problem

	// missing: the management cluster does not serve virtual machines.
	missing bool
	// found are the KubevirtConfigs to choose from, for messages.
	found []string
}

// Clusters are those to be looked at before the placement is certain, in a
// fixed order.
func (w Wish) Clusters() []string {
	names := slices.Clone(w.Search)
	if w.Problem == nil && w.Config != "" {
		names = appendNew(names, w.Config)
	}
	if w.Moved {
		names = appendNew(names, w.Old)
	}
	return names
}

// Searches tells whether the Machine's objects on a cluster decide about it.
func (w Wish) Searches(name string) bool {
	return slices.Contains(w.Search, name) || (w.Moved && w.Old == name)
}

// Sight is what was seen of a cluster.
type Sight struct {
	// Cluster is its KubevirtConfig, or Management.
	Cluster string
	// Connection tells why it could not be asked at all.
	Connection plan.Connection
	// Unreachable is set when it did not answer.
	Unreachable *fault.Fault
	// UID identifies the cluster; empty when that cannot be read.
	UID string
	// Same tells that it is the cluster that holds the Machine.
	Same bool
	// KubeVirt tells that it serves virtual machines.
	KubeVirt bool
	// VMs and Claims are those that may be the Machine's, where they were
	// searched. Faults are reads that the cluster refused.
	VMs, Claims []unstructured.Unstructured
	Faults      []fault.Fault
}

// Wishes chooses by what the Machine and the environment say.
func Wishes(machine *unstructured.Unstructured, settings Settings, served Served) Wish {
	if machine.GetDeletionTimestamp() != nil {
		return wishDeletion(machine, settings, served)
	}
	wish := Wish{missing: !served.VirtualMachines}
	if name := stated(machine); name != "" {
		wish.Config = name
	} else if !wish.automatic(settings, served) {
		return wish
	}
	if wish.Config != "" && !exists(wish.Config, served.Configs, settings) {
		wish.Problem = notThere(wish.Config)
	}
	wish.before(machine, settings, served)
	return wish
}

// automatic chooses for a Machine that names no cluster. Not ok: it is the
// management cluster, and no other needs a look.
func (w *Wish) automatic(settings Settings, served Served) (ok bool) {
	configs := usable(served.Configs, settings)
	switch {
	case settings.SingleCluster == SingleTrue:
		return false
	case settings.DefaultConfig != "":
		w.Config, w.Automatic = settings.DefaultConfig, true
	case settings.SingleCluster == SingleAuto && len(configs) == 0 && (served.VirtualMachines || !served.KubevirtConfigs):
		return false
	case len(configs) == 0:
		w.Problem = placementProblem(v1alpha1.ReasonKubevirtConfigNotFound,
			"Machine has no KubevirtConfig reference and no KubevirtConfigs are available")
	case len(configs) == 1:
		w.Config, w.Automatic = configs[0], true
	default:
		w.Search, w.Automatic, w.found = configs, true, configs
	}
	return true
}

// before tells where the Machine may have been until now.
func (w *Wish) before(machine *unstructured.Unstructured, settings Settings, served Served) {
	old := text(machine.Object, "status", "kubevirtConfigRef")
	switch {
	case old == "" && settings.SingleCluster != SingleFalse && served.VirtualMachines && wasPlacedHere(machine):
		w.Moved, w.Old = true, Management
	case old == "" || old == w.Config:
	case exists(old, served.Configs, settings):
		w.Moved, w.Old = true, old
	case holds(machine):
		w.Problem = placementProblem(v1alpha1.ReasonPlacementConflict, fmt.Sprintf(
			"the Machine was placed on KubevirtConfig %q, which does not exist any more, so nobody can tell what is there: create it again, or make a new Machine", old))
	}
}

// stated is the KubevirtConfig that the Machine itself names, in the order in
// which the places count.
func stated(machine *unstructured.Unstructured) string {
	return firstOf(
		text(machine.Object, "spec", "kubevirtConfigRef"),
		machine.GetAnnotations()[v1alpha1.AnnotationKubevirtConfig],
		text(machine.Object, "status", "kubevirtConfigRef"),
	)
}

// Stated tells whether the Machine itself names a KubevirtConfig.
func Stated(machine *unstructured.Unstructured) bool { return stated(machine) != "" }

func firstOf(names ...string) string {
	for _, name := range names {
		if name != "" {
			return name
		}
	}
	return ""
}

// wasPlacedHere tells that the Machine may have been placed on the management
// cluster before the first KubevirtConfig came: it is held, or has a virtual
// machine, and no cluster is noted on it.
func wasPlacedHere(machine *unstructured.Unstructured) bool {
	return machine.GetAnnotations()[v1alpha1.AnnotationKubevirtConfig] == "" &&
		(text(machine.Object, "status", "vmName") != "" || slices.Contains(machine.GetFinalizers(), v1alpha1.MachineFinalizer))
}

// wishDeletion is where the objects of a Machine that goes are looked for:
// what was recorded counts before what was asked for.
func wishDeletion(machine *unstructured.Unstructured, settings Settings, served Served) Wish {
	wish := Wish{missing: !served.VirtualMachines}
	name := firstOf(
		text(machine.Object, "status", "kubevirtConfigRef"),
		machine.GetAnnotations()[v1alpha1.AnnotationKubevirtConfig],
		text(machine.Object, "spec", "kubevirtConfigRef"),
	)
	if name != "" {
		wish.Config = name
		if !exists(name, served.Configs, settings) {
			wish.Problem = notThere(name)
			wish.Problem.Message = clip.Line(wish.Problem.Message, messageMax/2) + wayOut
		}
		return wish
	}
	var configs []string
	for i := range served.Configs {
		if counts(&served.Configs[i], settings) {
			configs = append(configs, served.Configs[i].GetName())
		}
	}
	slices.Sort(configs)
	if settings.SingleCluster == SingleTrue || (len(configs) == 0 && settings.SingleCluster != SingleFalse) {
		return wish // only the management cluster can hold anything
	}
	wish.Search, wish.found = configs, configs
	if settings.SingleCluster != SingleFalse && served.VirtualMachines {
		wish.Search = append([]string{Management}, configs...)
	}
	wish.Automatic = true
	return wish
}

// wayOut is how a person gives up what is on a cluster that is gone.
const wayOut = ": or give up what is there by annotation " + v1alpha1.AnnotationAbandonRemote + `: "true"`

func notThere(name string) *Problem {
	return placementProblem(v1alpha1.ReasonKubevirtConfigNotFound,
		fmt.Sprintf("KubevirtConfig %q does not exist: create it, or name another in spec.kubevirtConfigRef", name))
}

func placementProblem(reason, message string) *Problem {
	return &Problem{Part: PartPlacement, Reason: reason, Message: message}
}

// counts tells whether a KubevirtConfig is one of ours: where an older CRD is
// namespaced, those of one namespace are.
func counts(config *unstructured.Unstructured, settings Settings) bool {
	ns := config.GetNamespace()
	return ns == "" || ns == settings.ConfigsNamespace
}

// ConfigNamed is the KubevirtConfig of a name, or nil.
func ConfigNamed(name string, configs []unstructured.Unstructured, settings Settings) *unstructured.Unstructured {
	for i := range configs {
		if configs[i].GetName() == name && counts(&configs[i], settings) {
			return &configs[i]
		}
	}
	return nil
}

// exists tells whether a named KubevirtConfig is there: also one that goes,
// since what lies on its cluster still has to be looked after.
func exists(name string, configs []unstructured.Unstructured, settings Settings) bool {
	return ConfigNamed(name, configs, settings) != nil
}

// usable are the names of the KubevirtConfigs that may be chosen, sorted.
func usable(configs []unstructured.Unstructured, settings Settings) []string {
	var names []string
	for i := range configs {
		if configs[i].GetDeletionTimestamp() == nil && counts(&configs[i], settings) {
			names = append(names, configs[i].GetName())
		}
	}
	slices.Sort(names)
	return names
}

// KubeconfigKey is the key of a kubeconfig in its Secret.
const KubeconfigKey = "kubeconfig"

// KubeconfigSecret is the Secret with a KubevirtConfig's kubeconfig.
func KubeconfigSecret(config *unstructured.Unstructured, settings Settings) (namespace, name string) {
	return firstOf(text(config.Object, "spec", "secretNamespace"), config.GetNamespace(), settings.ConfigsNamespace, "default"),
		text(config.Object, "spec", "kubeconfigSecretRef")
}
