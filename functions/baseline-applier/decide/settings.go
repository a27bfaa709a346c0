package decide

import "time"

// Settings are what decisions depend on.
type Settings struct {
	// HCONamespace is where the HyperConverged is; of other ones nothing is thought.
	HCONamespace string
	// StateNamespace is where the record is kept.
	StateNamespace string
	// PatchNodeKinds allows patches on MachineConfigs and KubeletConfigs.
	PatchNodeKinds bool
	// Opinions renders recommended values into the HyperConverged; without, only the
	// marks.
	Opinions bool
	// ManagementCPUs is the CPU list of numa-topology.
	ManagementCPUs string
	// Runbooks is the address below which alerts find their runbooks.
	Runbooks string
	// Capacity writes are allowed per object within Window.
	Capacity int
	Window   time.Duration
	// PauseAfter throttled oppositions an object is paused.
	PauseAfter int
	// SlowCount oppositions within SlowWindow pause it too.
	SlowCount  int
	SlowWindow time.Duration
}

// DefaultSettings are those of an empty environment.
func DefaultSettings() Settings {
	return Settings{
		HCONamespace: "openshift-cnv", StateNamespace: "slipway-system", PatchNodeKinds: true, Opinions: true,
		ManagementCPUs: "0-1,52-53", Runbooks: "https://github.com/slipway-dev/slipway/blob/main/docs/runbooks",
		Capacity: 5, Window: time.Minute, PauseAfter: 3, SlowCount: 12, SlowWindow: time.Hour,
	}
}

// HCOName is the name of the one HyperConverged that counts.
const HCOName = "kubevirt-hyperconverged"

// StateName is the name of the ConfigMap with the record.
const StateName = "baseline-applier"

// Annotations that people steer the baseline with.
const (
	AnnotationPatch    = "platform.kubevirt.io/patch"
	AnnotationIgnore   = "platform.kubevirt.io/ignore-fields"
	AnnotationMode     = "platform.kubevirt.io/mode"
	AnnotationPaused   = "platform.kubevirt.io/reconcile-paused"
	AnnotationDisabled = "platform.kubevirt.io/disabled-resources"
	// AnnotationAutopilot stops everything ("false"), or names the assets to look after.
	AnnotationAutopilot = "platform.kubevirt.io/autopilot"
	// AnnotationProblem is written by the function: what is wrong with the others.
	AnnotationProblem = "platform.kubevirt.io/problem"
	// Unmanaged is the value of AnnotationMode that leaves an object alone.
	Unmanaged = "unmanaged"
)

// PauseManager is the field manager of the pause annotation: it is told apart from
// what the baseline owns.
const PauseManager = "virt-platform-autopilot-pause"
