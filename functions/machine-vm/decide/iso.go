package decide

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/plan"
)

// isoImage is the image that a new virtual machine boots from.
type isoImage struct {
	name, url   string
	registry    bool
	size        resource.Quantity
	class, mode string
	bus         kubevirtv1.DiskBus
}

// ejected tells whether a person, or the installed system, has no more use
// for the image.
func (v *view) ejected() bool {
	annotations := v.in.Machine.GetAnnotations()
	return annotations[v1alpha1.AnnotationCDROMEjected] == v1alpha1.True || annotations[v1alpha1.AnnotationOSInstalled] == v1alpha1.True
}

// resolveISO finds the image of a new virtual machine. The image's address is
// never called from here.
func (v *view) resolveISO() {
	annotations := v.in.Machine.GetAnnotations()
	imageID := v.machine.Spec.OS.ImageID
	if v.vm != nil || annotations[v1alpha1.AnnotationBootSource] != v1alpha1.BootSourceDataVolume || imageID == "" ||
		v.ejected() || annotations[v1alpha1.AnnotationISOCleanedUp] == v1alpha1.True {
		return
	}
	iso := &isoImage{name: v1alpha1.ISOName(v.id.name), url: imageID, size: v.in.Settings.ISOSize, bus: kubevirtv1.DiskBusSATA}
	if v.machine.Spec.OS.Architecture == archARM64 {
		iso.bus = kubevirtv1.DiskBusSCSI
	}
	switch source := annotations[v1alpha1.AnnotationBootSourceType]; source {
	case "", v1alpha1.BootSourceTypeHTTP, v1alpha1.BootSourceTypeHTTPS:
	case v1alpha1.BootSourceTypeRegistry:
		iso.registry = true
	default:
		v.problem(invalid(PartSpec, fmt.Sprintf("annotation %s is %q: use http, https or registry", v1alpha1.AnnotationBootSourceType, clip.Line(source, 80))))
		return
	}
	if stated := annotations[v1alpha1.AnnotationISOSize]; stated != "" {
		size, err := resource.ParseQuantity(stated)
		if err != nil || size.Cmp(oneByte) < 0 {
			v.problem(invalid(PartSpec, fmt.Sprintf("annotation %s is %q: give a size like 8Gi", v1alpha1.AnnotationISOSize, clip.Line(stated, 80))))
			return
		}
		iso.size = size
	}
	if v.isoAccess(iso) {
		v.iso = iso
	}
}

// isoAccess finds the access mode of the image's claim. Without a class of its
// own, the claim gets the cluster's default class.
func (v *view) isoAccess(iso *isoImage) bool {
	iso.class = v.in.Settings.StorageClass
	class := iso.class
	if class == "" {
		classes, ok := v.ask(v.storageClasses())
		if !ok {
			return false
		}
		if found := pickClass(classes.Items, ""); found != nil {
			class = found.GetName()
		}
	}
	mode, ok := v.accessMode("", class, string(corev1.PersistentVolumeFilesystem))
	iso.mode = mode
	return ok
}

// isoTemplate is the DataVolume template of a new virtual machine.
func (v *view) isoTemplate() kubevirtv1.DataVolumeTemplateSpec {
	filesystem := corev1.PersistentVolumeFilesystem
	storage := &cdiv1.StorageSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.PersistentVolumeAccessMode(v.iso.mode)},
		VolumeMode:  &filesystem,
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: v.iso.size},
		},
	}
	if v.iso.class != "" {
		storage.StorageClassName = &v.iso.class
	}
	source := &cdiv1.DataVolumeSource{HTTP: &cdiv1.DataVolumeSourceHTTP{URL: v.iso.url}}
	if v.iso.registry {
		source = &cdiv1.DataVolumeSource{Registry: &cdiv1.DataVolumeSourceRegistry{URL: &v.iso.url}}
	}
	return kubevirtv1.DataVolumeTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Name: v.iso.name, Labels: v.labels(), Annotations: v.annotations()},
		Spec:       cdiv1.DataVolumeSpec{Source: source, Storage: storage},
	}
}

// planEjection removes what is left of an image that was ejected, once the
// virtual machine does not show it any more, and says so on the Machine.
func (v *view) planEjection(hadVolume bool) {
	if !v.ejected() {
		return
	}
	if v.in.ISO != nil && v.id.relate(v.in.ISO) == own {
		v.remove(v.in.Target.Cluster, kinds.DataVolumes, v.in.ISO, &v.leftovers, "the boot image was ejected")
	}
	name := v1alpha1.ISOName(v.id.name)
	if claim := find(v.in.Claims, name); claim != nil && v.id.relate(claim) == own {
		v.remove(v.in.Target.Cluster, kind.PersistentVolumeClaims, claim, &v.leftovers, "the boot image was ejected")
	}
	if (!hadVolume && len(v.leftovers) == 0) || v.in.Machine.GetAnnotations()[v1alpha1.AnnotationISOCleanedUp] == v1alpha1.True {
		return
	}
	noted := v.in.Machine.DeepCopy()
	noted.SetAnnotations(with(noted.GetAnnotations(), map[string]string{v1alpha1.AnnotationISOCleanedUp: v1alpha1.True}))
	v.notes = append(v.notes, plan.Entry{
		Verb: plan.Patch, Resource: kinds.Machines, Base: v.in.Machine, Object: noted, Reason: "the boot image is gone",
	})
}
