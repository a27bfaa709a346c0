package reconcile

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/kind"
)

// Annotations and labels of the runtime.
const (
	// AnnotationMode, on a reconciled object, chooses its Mode.
	AnnotationMode = "slipway.dev/mode"
	// AnnotationInstallation is kind.AnnotationInstallation. Orphans of another
	// installation are never touched.
	AnnotationInstallation = kind.AnnotationInstallation
	// LabelWatch, on a Secret or ConfigMap that a reconciled object refers to,
	// lets its changes wake the function at once instead of at the next resync.
	LabelWatch = "slipway.dev/watch"
)

// Mode says what the runtime does with a plan.
type Mode string

const (
	// ModeApply writes. It is the default.
	ModeApply Mode = "apply"
	// ModePlan writes nothing and logs what it would write.
	ModePlan Mode = "plan"
	// ModeObserve writes nothing and logs the drift.
	// NOTE: today it does what ModePlan does; it has no metric of its own.
	ModeObserve Mode = "observe"
	// ModeUnmanaged leaves the object alone.
	ModeUnmanaged Mode = "unmanaged"
)

// ParseMode reads a mode; empty is apply.
func ParseMode(s string) (Mode, error) {
	switch mode := Mode(s); mode {
	case "":
		return ModeApply, nil
	case ModeApply, ModePlan, ModeObserve, ModeUnmanaged:
		return mode, nil
	}
	return "", fmt.Errorf("cannot use mode %q: use apply, plan, observe or unmanaged", s)
}

// modeOf is the mode for one object: the stricter of the function's and the
// object's own, so that an annotation cannot undo what the operator of the
// platform set. A mode that cannot be read is plan: what a person meant is
// unknown, so nothing is written and the log says why.
func modeOf(function Mode, root *unstructured.Unstructured) (Mode, error) {
	mode, err := ParseMode(root.GetAnnotations()[AnnotationMode])
	if err != nil {
		mode, err = ModePlan, fmt.Errorf("annotation %s: %w", AnnotationMode, err)
	}
	return stricter(function, mode), err
}

// stricter is the one of two modes that lets less happen.
func stricter(a, b Mode) Mode {
	strictness := []Mode{ModeApply, ModeObserve, ModePlan, ModeUnmanaged}
	if slices.Index(strictness, a) > slices.Index(strictness, b) {
		return a
	}
	return b
}
