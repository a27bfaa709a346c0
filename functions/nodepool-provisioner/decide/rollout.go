package decide

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
)

// AnnotationLastRollout is, beside the record of the inputs, when machines were last
// told to be replaced and why: "<time> <which>: <what changed>".
const AnnotationLastRollout = "slipway.dev/last-rollout"

// phase is what becomes of the fields that roll.
type phase int

const (
	// phaseKeep: they stay, as today's inputs are those of the record, or are not
	// known in full.
	phaseKeep phase = iota
	// phaseCreate: there is nothing yet that has them.
	phaseCreate
	// phaseAdopt: they stay as they were found, and today's inputs are recorded.
	phaseAdopt
	// phaseRoll: they are brought to today's inputs.
	phaseRoll
	// phaseHeld: they would be, but for a person's word.
	phaseHeld
)

// findPhase decides about the fields that roll.
func (v *view) findPhase() {
	known := v.machine != nil && v.talos != nil
	if v.live == nil {
		v.phase = phaseCreate
		if known {
			v.today = hash(v.machine, v.talos)
		}
		return
	}
	// Networks that cannot be seen are none that went: machines keep them.
	if !known || (v.in.Settings.Multus && v.in.NetworksNotServed) {
		return
	}
	v.today = hash(v.machine, v.talos)
	switch recorded := v.live.GetAnnotations()[v1alpha3.AnnotationRolloutInputs]; {
	case recorded == "":
		v.phase = phaseAdopt
	case recorded == v.today:
	case v.holding():
		v.phase = phaseHeld
	default:
		v.phase = phaseRoll
	}
}

// holding tells whether a person holds back the pool's rollouts.
func (v *view) holding() bool {
	_, pool := v.in.Pool.GetAnnotations()[v1alpha3.AnnotationHoldRollouts]
	_, cluster := v.in.Cluster.GetAnnotations()[v1alpha3.AnnotationHoldRollouts]
	return pool || cluster
}

// templateChanges names what the machine template in use says otherwise than the
// pool. One that is not there says nothing.
func (v *view) templateChanges() []string {
	current := find(v.in.MachineTemplates, v.infrastructureOf(v.live))
	if v.machine == nil || current == nil {
		return nil
	}
	return v.machine.differences(current)
}

// talosChanges does the same for what Talos is told.
func (v *view) talosChanges() []string {
	if v.talos == nil {
		return nil
	}
	var spec map[string]any
	if v.controlPlane() {
		spec, _ = at(v.live.Object, "spec", "controlPlaneConfig", "controlplane").(map[string]any)
		if v.talos.sameAs(spec) && blankInit(v.live) {
			return nil
		}
	} else {
		current := find(v.in.ConfigTemplates, v.bootstrapOf(v.live))
		if current == nil || v.talos.says(current) {
			return nil
		}
		spec, _ = at(current.Object, "spec", "template", "spec").(map[string]any)
	}
	if stored := texts(spec, "strategicPatches"); slices.Equal(carried(v.talos.documents, stored), stored) {
		return []string{"Talos version or type"}
	}
	return []string{"Talos patches"}
}

// blankInit tells whether a control plane says nothing of a first machine that is
// configured by itself, as it must not.
func blankInit(obj *unstructured.Unstructured) bool {
	return blank(at(obj.Object, "spec", "controlPlaneConfig", "init"))
}

// announce says what differs and stays, or is held.
func (v *view) announce() {
	template, talos := v.templateChanges(), v.talosChanges()
	switch v.phase {
	case phaseKeep, phaseAdopt:
		if v.today == "" {
			return
		}
		for _, part := range []struct {
			verdict *verdict
			changes []string
		}{{v.template, template}, {v.config, talos}} {
			if len(part.changes) > 0 {
				part.verdict.note("found otherwise than asked for, which follows with the next rollout: %s", strings.Join(part.changes, ", "))
			}
		}
	case phaseRoll:
		v.changes = slices.Concat(v.moved(template, talos), talos)
	case phaseHeld, phaseCreate:
	}
	if v.holding() {
		v.hold(slices.Concat(template, talos))
	}
}

// moved are the changes of templates where those in use cannot be looked at, and others
// take their place.
func (v *view) moved(template, talos []string) []string {
	machine := len(template) == 0 && v.infrastructure != v.infrastructureOf(v.live)
	config := len(talos) == 0 && v.bootstrap != v.bootstrapOf(v.live)
	if (machine || config) && v.settled() {
		return append(template, "templates")
	}
	return template
}

// settled tells whether there are templates to make machines from.
func (v *view) settled() bool {
	return v.infrastructure != "" && (v.controlPlane() || v.bootstrap != "")
}

// hold says what a person holds back.
func (v *view) hold(changes []string) {
	if v.phase != phaseHeld {
		changes = nil
	}
	if v.versionDiffers() {
		changes = append(changes, "version")
	}
	if len(changes) > 0 {
		v.machines.add(waiting(v1alpha3.ReasonRolloutHeld, "held back by annotation %s: %s", v1alpha3.AnnotationHoldRollouts, strings.Join(changes, ", ")))
	}
}

// versionDiffers tells whether machines run, or are to run, another Kubernetes version
// than the Cluster asks for.
func (v *view) versionDiffers() bool {
	have := text(v.live.Object, v.roller().version...)
	return v.version != "" && strings.TrimPrefix(have, "v") != strings.TrimPrefix(v.version, "v")
}

// scaled is what keeps the machines with what never waits: its marks, replicas, the
// Kubernetes version, and the record of the inputs where no field goes with it.
func (v *view) scaled() *unstructured.Unstructured {
	obj := v.marked(v.live)
	if replicas := v.replicas(); replicas != nil {
		if have, ok := number(obj.Object, "spec", "replicas"); !ok || have != int64(*replicas) {
			put(obj.Object, int64(*replicas), "spec", "replicas")
		}
	}
	if v.versionDiffers() && !v.holding() {
		put(obj.Object, v.version, v.roller().version...)
		v.told(obj, v.version, []string{"version"})
	}
	if v.phase == phaseAdopt || (v.phase == phaseRoll && len(v.changes) == 0 && v.settled()) {
		dockyards.SetAnnotation(obj, v1alpha3.AnnotationRolloutInputs, v.today)
	}
	return obj
}

// replicas are those that the pool states; nil if it states none, or none that can be.
func (v *view) replicas() *int32 {
	replicas := v.pool.Spec.Replicas
	if replicas != nil && *replicas < 0 {
		v.machines.add(invalid("spec.replicas is %d: set it to 0 or above", *replicas))
		return nil
	}
	return replicas
}

// scale plans what never waits.
func (v *view) scale() *unstructured.Unstructured {
	obj := v.scaled()
	v.patch(&v.scaling, v.roller().res, v.live, obj, "replicas, version or marks differ")
	return obj
}

// told writes on an object that its machines are told to be replaced, together with
// what was written before and has not been announced yet.
func (v *view) told(obj *unstructured.Unstructured, which string, changes []string) {
	if last, ok := lastRollout(obj); ok && last.at.After(v.saidAt()) {
		for _, change := range last.changes {
			if !slices.Contains(changes, change) {
				changes = append(changes, change)
			}
		}
	}
	dockyards.SetAnnotation(obj, AnnotationLastRollout, v.now.UTC().Format(time.RFC3339)+" "+which+": "+strings.Join(changes, ", "))
}

// rollout is one that was carried out.
type rollout struct {
	at      time.Time
	text    string
	changes []string
}

// lastRollout reads what is written on an object about its last rollout.
func lastRollout(obj *unstructured.Unstructured) (rollout, bool) {
	if obj == nil {
		return rollout{}, false
	}
	stamp, rest, ok := strings.Cut(obj.GetAnnotations()[AnnotationLastRollout], " ")
	at, err := time.Parse(time.RFC3339, stamp)
	_, list, listed := strings.Cut(rest, ": ")
	if !ok || err != nil || !listed {
		return rollout{}, false
	}
	return rollout{at: at, text: "last rollout " + rest, changes: strings.Split(list, ", ")}, true
}
