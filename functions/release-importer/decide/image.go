package decide

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// bindImmediately asks CDI for the volume of an image without a first consumer.
const bindImmediately = "cdi.kubevirt.io/storage.bind.immediate.requested"

func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// choose finds the image that the Release asks for, or what it is to be called. An
// image that is there is taken whatever its name: nothing is imported twice.
func (v *view) choose() {
	release := v.in.Release.GetName()
	plain, hashed := v.plain(release), v.hashed(release)
	for _, name := range []string{plain, hashed} {
		if image := v.at(name); image != nil && v.shows(image) && v.ours(image, true) {
			v.image, v.name = image, name
			return
		}
	}
	taken := v.at(plain)
	switch {
	case taken == nil:
		v.name = plain
	case !v.ours(taken, true):
		v.conflict(dockyards.DataVolumes, plain)
	case v.at(hashed) == nil:
		v.name = hashed
	default:
		v.conflict(dockyards.DataVolumes, hashed)
	}
}

// at is the DataVolume of a name, as it was read.
func (v *view) at(name string) *unstructured.Unstructured {
	for i := range v.in.Images {
		if v.in.Images[i].GetName() == name {
			return &v.in.Images[i]
		}
	}
	return nil
}

// shows tells whether an image is imported from the URL that the Release asks for.
func (v *view) shows(image *unstructured.Unstructured) bool {
	address, _, _ := unstructured.NestedString(image.Object, "spec", "source", "http", "url")
	return address == v.url
}

// importImage makes the image, or adds to it what is missing.
func (v *view) importImage() []plan.Entry {
	switch {
	case v.name == "":
		return nil
	case !v.in.Served:
		v.found(&problem{reason: reasonWaiting, message: "no image can be imported: the API server serves no DataVolumes; install CDI", waiting: true})
		return nil
	case v.image == nil:
		return []plan.Entry{v.create(dockyards.DataVolumes, v.newImage(), "imports the image of "+v.version)}
	case dockyards.Going(v.image):
		return nil // its end wakes us
	}
	if phase(v.image) == string(cdiv1.Failed) {
		v.found(&problem{reason: reasonImportFailed, message: "the import by DataVolume " + v.name + " has failed: see its conditions; the image before stays in use", waiting: true})
	}
	object := v.marked(v.image)
	annotations := object.GetAnnotations()
	if _, superseded := annotations[v1alpha3.AnnotationSuperseded]; superseded {
		delete(annotations, v1alpha3.AnnotationSuperseded) // it is wanted again
		object.SetAnnotations(annotations)
	}
	return patch(dockyards.DataVolumes, v.image, object, "the image belongs to the Release")
}

// marked is an image with all marks of the Release's.
func (v *view) marked(image *unstructured.Unstructured) *unstructured.Unstructured {
	object := image.DeepCopy()
	v.adopt(object)
	v.label(object)
	if _, has := object.GetAnnotations()[bindImmediately]; !has {
		dockyards.SetAnnotation(object, bindImmediately, "")
	}
	return object
}

func (v *view) newImage() *cdiv1.DataVolume {
	settings := v.in.Settings
	storage := &cdiv1.StorageSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{settings.AccessMode},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: settings.ImageSize},
		},
	}
	if settings.StorageClass != "" {
		storage.StorageClassName = &settings.StorageClass
	}
	if settings.BlockStorage {
		block := corev1.PersistentVolumeBlock
		storage.VolumeMode = &block
	}
	return &cdiv1.DataVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        v.name,
			Labels:      map[string]string{v1alpha3.LabelReleaseName: v.in.Release.GetName()},
			Annotations: map[string]string{bindImmediately: ""},
		},
		Spec: cdiv1.DataVolumeSpec{
			Source:  &cdiv1.DataVolumeSource{HTTP: &cdiv1.DataVolumeSourceHTTP{URL: v.url}},
			Storage: storage,
		},
	}
}
