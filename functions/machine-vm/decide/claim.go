package decide

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// claimName is the claim of a disk. A live virtual machine decides: what its
// volume references is the disk's claim, whatever its name. But a hand edit of
// a virtual machine that the function made is put back when the disk's own
// claim is there, or the other is not.
func (v *view) claimName(d disk) string {
	name := v1alpha1.ClaimName(v.id.name, d.name)
	if v.vm == nil {
		legacy := find(v.in.Claims, v.id.name)
		if d.boot && find(v.in.Claims, name) == nil && legacy != nil && v.id.relate(legacy) == own &&
			legacy.GetLabels()[v1alpha1.LabelDiskType] == v1alpha1.DiskTypeBoot {
			return v.id.name
		}
		return name
	}
	live := volumeClaim(named(volumes(v.vm), d.name))
	if live == "" || live == name {
		return name
	}
	if !v.adopted() && !v.owns(live) && (v.owns(name) || find(v.in.Claims, live) == nil) {
		return name
	}
	return live
}

// owns tells whether a claim exists and is the Machine's.
func (v *view) owns(claim string) bool {
	obj := find(v.in.Claims, claim)
	return obj != nil && v.id.relate(obj) == own
}

// attached tells whether the live virtual machine uses a claim.
func (v *view) attached(claim string) bool {
	return slices.ContainsFunc(volumes(v.vm), func(volume map[string]any) bool { return volumeClaim(volume) == claim })
}

// checkClaims looks at the claim of each disk: it must be the Machine's own
// and nobody else's, and what is stated of it must still be possible.
func (v *view) checkClaims() {
	for _, d := range v.disks {
		claim := find(v.in.Claims, d.claim)
		switch {
		case claim == nil:
			v.missing = append(v.missing, d)
		case v.id.relate(claim) != own:
			v.foreignClaim(d, claim)
		case claim.GetDeletionTimestamp() != nil:
			v.problem(terminating(PartStorage, "PersistentVolumeClaim", d.claim))
		default:
			v.sharedClaim(d)
			v.compareClaim(d, claim)
		}
	}
}

// foreignClaim refuses a claim that is not the Machine's. One without any
// mark that the live virtual machine uses already was attached by others, and
// stays.
func (v *view) foreignClaim(d disk, claim *unstructured.Unstructured) {
	if v.attached(d.claim) && v.id.relate(claim) == unmarked {
		return
	}
	v.problem(Problem{
		Part: PartStorage, Reason: v1alpha1.ReasonClaimConflict,
		Message: fmt.Sprintf("PersistentVolumeClaim %q of disk %q belongs to %s: rename the disk, or delete the claim", d.claim, d.name, whose(claim)),
	})
}

// sharedClaim refuses an own claim that another virtual machine uses. It is
// asked when the claim is about to be attached: afterwards it is too late.
func (v *view) sharedClaim(d disk) {
	if v.attached(d.claim) {
		return
	}
	vms, ok := v.ask(v.allVMs())
	if !ok {
		return
	}
	for i := range vms.Items {
		if name := vms.Items[i].GetName(); name != v.vmName && uses(&vms.Items[i], d.claim) {
			v.problem(Problem{
				Part: PartStorage, Reason: v1alpha1.ReasonClaimConflict,
				Message: fmt.Sprintf("PersistentVolumeClaim %q of disk %q is used by VirtualMachine %q: detach it there", d.claim, d.name, name),
			})
			return
		}
	}
}

func (v *view) allVMs() plan.Need {
	return plan.Need{Cluster: v.in.Target.Cluster, Resource: kinds.VirtualMachines, Namespace: v.namespace}
}

func uses(vm *unstructured.Unstructured, claim string) bool {
	return slices.ContainsFunc(volumes(vm), func(volume map[string]any) bool { return volumeClaim(volume) == claim })
}

// compareClaim finds what an existing claim should be grown to, and refuses
// what a claim cannot change.
func (v *view) compareClaim(d disk, claim *unstructured.Unstructured) {
	if d.byDefault || !v.enforced {
		return
	}
	if d.class != "" && d.class != defaultClass && text(claim.Object, "spec", "storageClassName") != d.class {
		v.fixed(d, "storageClass", d.class, text(claim.Object, "spec", "storageClassName"))
	}
	if modes := texts(claim.Object, "spec", "accessModes"); d.accessMode != "" && !slices.Contains(modes, d.accessMode) {
		v.fixed(d, "accessMode", d.accessMode, quoted(modes))
	}
	mode := text(claim.Object, "spec", "volumeMode")
	if mode == "" {
		mode = string(corev1.PersistentVolumeFilesystem)
	}
	if d.volumeMode != "" && mode != d.volumeMode {
		v.fixed(d, "volumeMode", d.volumeMode, mode)
	}
	have, ok := quantity(claim.Object, "spec", "resources", "requests", "storage")
	switch {
	case !ok || !d.sized || d.size.Cmp(have) == 0:
	case d.size.Cmp(have) < 0:
		v.fixed(d, "size", d.size.String(), have.String())
	default:
		v.grow(d, claim, have)
	}
}

func (v *view) fixed(d disk, field, want, have string) {
	v.problem(invalid(PartStorage, fmt.Sprintf("disk %q asks for %s %s, but claim %q has %s, which cannot be changed", d.name, field, want, d.claim, have)))
}

func (v *view) grow(d disk, claim *unstructured.Unstructured, have resource.Quantity) {
	classes, ok := v.ask(v.storageClasses())
	if !ok {
		return
	}
	name := text(claim.Object, "spec", "storageClassName")
	class := find(classes.Items, name)
	if class == nil {
		v.fixed(d, "size", d.size.String(), have.String())
		return
	}
	if allowed, _ := boolean(class.Object, "allowVolumeExpansion"); !allowed {
		v.problem(invalid(PartStorage, fmt.Sprintf("disk %q asks for size %s, but StorageClass %q of claim %q (%s) does not allow expansion",
			d.name, d.size.String(), name, d.claim, have.String())))
		return
	}
	larger := claim.DeepCopy()
	put(larger.Object, d.size.String(), "spec", "resources", "requests", "storage")
	v.growth = append(v.growth, plan.Entry{
		Verb: plan.Patch, Cluster: v.in.Target.Cluster, Resource: kind.PersistentVolumeClaims,
		Object: larger, Base: claim, Reason: fmt.Sprintf("disk %q grows from %s to %s", d.name, have.String(), d.size.String()),
	})
}

// newClaims are the claims that do not exist yet. With a virtual machine that
// is left as it is, there are none.
func (v *view) newClaims() {
	for _, d := range v.missing {
		if !v.enforced || (v.vm != nil && v.adopted() && v.attached(d.claim)) {
			continue
		}
		class, ok := v.storageClass(d)
		if !ok {
			continue
		}
		mode := d.volumeMode
		if mode == "" {
			mode = v.in.Settings.VolumeMode
		}
		access, ok := v.accessMode(d.accessMode, class, mode)
		if !ok {
			continue
		}
		v.create(kind.PersistentVolumeClaims, v.claim(d, class, access, mode), &v.claims, fmt.Sprintf("disk %q has no claim", d.name))
	}
}

func (v *view) claim(d disk, class, access, mode string) *corev1.PersistentVolumeClaim {
	labels := v.labels()
	if d.boot {
		labels[v1alpha1.LabelDiskType] = v1alpha1.DiskTypeBoot
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: d.claim, Namespace: v.namespace, Labels: labels, Annotations: v.annotations()},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.PersistentVolumeAccessMode(access)},
			StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: d.size},
			},
		},
	}
	if mode != "" {
		volumeMode := corev1.PersistentVolumeMode(mode)
		claim.Spec.VolumeMode = &volumeMode
	}
	return claim
}

func terminating(part Part, kindName, name string) Problem {
	return Problem{
		Part: part, Reason: v1alpha1.ReasonObjectTerminating, Waiting: true,
		Message: fmt.Sprintf("%s %q is being deleted: waiting until it is gone", kindName, name),
	}
}

// ClaimNames are the claims that a Machine's disks have or would get, and
// those that its virtual machine uses.
func ClaimNames(machine *unstructured.Unstructured, settings Settings, vms []unstructured.Unstructured, deleting bool) []string {
	name := machine.GetName()
	names := []string{v1alpha1.ClaimName(name, v1alpha1.RootDiskName)}
	for i, d := range entries(machine.Object, "spec", "disks") {
		names = appendNew(names, v1alpha1.ClaimName(name, v1alpha1.DiskName(text(d, "name"), i)))
	}
	if vm := find(vms, Chosen(machine, settings, vms)); vm != nil {
		for _, volume := range volumes(vm) {
			if claim := volumeClaim(volume); claim != "" {
				names = appendNew(names, claim)
			}
		}
	}
	if deleting || machine.GetAnnotations()[v1alpha1.AnnotationBootSource] != "" {
		names = appendNew(names, v1alpha1.ISOName(name))
	}
	return names
}
