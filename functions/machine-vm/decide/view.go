package decide

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Annotations that are the function's own.
const (
	// annotationWritten is, on a virtual machine, what the function has written
	// of the Machine's statements; see words.
	annotationWritten = "slipway.dev/written"
	// annotationContent is, on the Secret for cloud-init, a hash of what is no
	// secret in it.
	annotationContent = "slipway.dev/content"
)

// view is one decision while it is made: what is known, what follows from it,
// and what shall be written.
type view struct {
	in        Input
	known     plan.Answers
	machine   *v1alpha1.Machine
	namespace string
	id        identity

	// vm is the Machine's virtual machine; nil if there is none.
	vm     *unstructured.Unstructured
	vmName string
	// blind: nobody can tell whether there is a virtual machine.
	blind bool
	// enforced: what the Machine states is brought to the virtual machine.
	enforced bool

	size           size
	disks          []disk
	nics           []nic
	networksStated bool
	cloudInit      *cloudInit
	iso            *isoImage
	// missing are the disks without a claim.
	missing []disk
	// differences are what an adopted virtual machine has otherwise than its
	// Machine states.
	differences []string
	// extraDisks and extraNics are devices beyond those of the Machine.
	extraDisks, extraNics []string
	// putOff is how many deletions wait for the next reconcile.
	putOff int
	// remembered: an address is from an earlier report.
	remembered bool

	namespaces, records, attachments, claims, growth, secrets, vms, leftovers, notes []plan.Entry

	problems []Problem
	needs    []plan.Need
	reasons  []string
	plan     plan.Plan
}

// newView reads the Machine. A spec that cannot be read at all is a problem,
// and the rest of the Machine is still looked after.
func newView(in Input, known plan.Answers) *view {
	v := &view{
		in: in, known: known, namespace: in.Machine.GetNamespace(), id: identify(in.Machine, in.Settings),
	}
	machine, err := plan.Typed[v1alpha1.Machine](in.Machine)
	if err != nil {
		v.problem(unreadable(in.Machine, err))
		v.machine = withoutSpec(in.Machine)
		return v
	}
	v.machine = machine
	return v
}

// unreadable says which field of a spec cannot be read. The schema lets only
// a few strange quantities through to here.
func unreadable(machine *unstructured.Unstructured, err error) Problem {
	fields := map[string]any{"spec.resources.memory.size": at(machine.Object, "spec", "resources", "memory", "size")}
	for i, d := range entries(machine.Object, "spec", "disks") {
		fields[fmt.Sprintf("spec.disks[%d].size", i)] = d["size"]
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if s, ok := fields[field].(string); ok {
			if _, err := resource.ParseQuantity(s); err != nil {
				part := PartStorage
				if strings.HasPrefix(field, "spec.resources") {
					part = PartSize
				}
				return invalid(part, fmt.Sprintf("%s is %q, which is no size: write one like 20Gi", field, clip.Line(s, 80)))
			}
		}
	}
	return invalid(PartSpec, "the spec cannot be read: "+err.Error())
}

func withoutSpec(obj *unstructured.Unstructured) *v1alpha1.Machine {
	bare := obj.DeepCopy()
	delete(bare.Object, "spec")
	machine, err := plan.Typed[v1alpha1.Machine](bare)
	if err != nil {
		// Not even the status can be read: it is made anew.
		delete(bare.Object, "status")
		if machine, err = plan.Typed[v1alpha1.Machine](bare); err != nil {
			return &v1alpha1.Machine{}
		}
	}
	return machine
}

// Ours tells whether a Machine is for KubeVirt, or has been while it was made.
func Ours(machine *unstructured.Unstructured) bool {
	provider := firstOf(text(machine.Object, "spec", "provider"), text(machine.Object, "spec", "providerConfig", "name"))
	return provider == "" || strings.EqualFold(provider, v1alpha1.ProviderKubevirt)
}

func (v *view) deleting() bool { return v.in.Machine.GetDeletionTimestamp() != nil }

// concerned tells whether there is anything to decide about the Machine.
func (v *view) concerned() bool {
	if v.deleting() {
		return v.hasFinalizer()
	}
	return Ours(v.in.Machine)
}

func (v *view) problem(p Problem) {
	p.Message = clip.Line(p.Message, failureMax)
	v.problems = append(v.problems, p)
	v.reason("%s", p.text())
}

func (v *view) reason(format string, args ...any) {
	v.reasons = append(v.reasons, fmt.Sprintf(format, args...))
}

// ask looks up a further read. Not ok: it has not been answered yet, or was
// refused, which is a problem of its own.
func (v *view) ask(need plan.Need) (plan.Answer, bool) {
	answer, ok := v.known.To(need)
	if !ok {
		for _, asked := range v.needs {
			if asked.Key() == need.Key() {
				return plan.Answer{}, false
			}
		}
		v.needs = append(v.needs, need)
		return plan.Answer{}, false
	}
	if answer.Fault != nil {
		v.refused(*answer.Fault)
		return plan.Answer{}, false
	}
	return answer, true
}

// refused notes a call that a server did not carry out.
func (v *view) refused(f fault.Fault) {
	if f.Class == fault.Unavailable && v.in.Target.Unreachable == nil {
		v.in.Target.Unreachable = &f
		return
	}
	v.problem(Problem{Part: PartVM, Reason: v1alpha1.ReasonKubeVirtAPIError, Message: f.Error()})
}

// MadeByOthers tells whether others created the Machine's virtual machine, among those
// that were read. Its cloud-init is left alone then, and the Secret with it is nobody's
// business: a credential from before the takeover may not read it.
func MadeByOthers(machine *unstructured.Unstructured, settings Settings, vms []unstructured.Unstructured) bool {
	return adopted(choose(machine, settings, vms).vm)
}

// adopted tells whether others created the virtual machine.
func (v *view) adopted() bool { return adopted(v.vm) }

func adopted(vm *unstructured.Unstructured) bool {
	if vm == nil {
		return false
	}
	annotations := vm.GetAnnotations()
	_, marked := annotations[v1alpha1.AnnotationMachineUID]
	_, adopted := annotations[v1alpha1.AnnotationAdopted]
	return adopted || !marked
}

// adoptedAt is the generation of the Machine when its virtual machine was
// adopted: now, if it has not been yet.
func (v *view) adoptedAt() int64 {
	annotations := v.vm.GetAnnotations()
	at, err := strconv.ParseInt(annotations[v1alpha1.AnnotationAdopted], 10, 64)
	if err != nil || annotations[v1alpha1.AnnotationMachineUID] != v.id.uid {
		return v.in.Machine.GetGeneration()
	}
	return at
}

func (v *view) ownerReference() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: kinds.Machines.APIVersion(), Kind: kinds.Machines.Kind,
		Name: v.id.name, UID: v.in.Machine.GetUID(),
	}
}

// object is a typed object as an intent. Nil: it cannot be one, and a problem
// says why.
func (v *view) object(res kind.Resource, typed any) *unstructured.Unstructured {
	obj, err := plan.Object(res, typed)
	if err != nil {
		v.problem(invalid(PartVM, err.Error()))
		return nil
	}
	return obj
}

// create plans a new object on the target.
func (v *view) create(res kind.Resource, typed any, entries *[]plan.Entry, reason string) {
	if obj := v.object(res, typed); obj != nil {
		v.createObject(res, obj, entries, reason)
	}
}

func (v *view) createObject(res kind.Resource, obj *unstructured.Unstructured, entries *[]plan.Entry, reason string) {
	*entries = append(*entries, plan.Entry{
		Verb: plan.Create, Cluster: v.in.Target.Cluster, Resource: res, Object: obj, Reason: reason,
	})
}

func (v *view) patch(cluster string, res kind.Resource, base, obj *unstructured.Unstructured, entries *[]plan.Entry, reason string) {
	*entries = append(*entries, plan.Entry{
		Verb: plan.Patch, Cluster: cluster, Resource: res, Base: base, Object: obj, Reason: reason,
	})
}

func (v *view) remove(cluster string, res kind.Resource, obj *unstructured.Unstructured, entries *[]plan.Entry, reason string) {
	if obj == nil || obj.GetDeletionTimestamp() != nil {
		return
	}
	*entries = append(*entries, plan.Entry{
		Verb: plan.Delete, Cluster: cluster, Resource: res, Base: obj, Reason: reason,
	})
}

// appendNew appends what is not there yet.
func appendNew(items []string, item string) []string {
	for _, have := range items {
		if have == item {
			return items
		}
	}
	return append(items, item)
}
