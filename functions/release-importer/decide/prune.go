package decide

import (
	"cmp"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// Where superseded images may still be in use: anywhere on the cluster.
var (
	needSources = plan.Need{Resource: dockyards.DataSources}
	needVolumes = plan.Need{Resource: dockyards.DataVolumes}
)

// doomed are the superseded images that nobody needs any more. Who may need them is
// asked for only if there are such images.
func (v *view) doomed(known plan.Answers) ([]plan.Entry, []plan.Need) {
	candidates := v.superseded()
	if len(candidates) == 0 {
		return nil, nil
	}
	sources, read := known.To(needSources)
	volumes, readToo := known.To(needVolumes)
	if !read || !readToo {
		return nil, []plan.Need{needSources, needVolumes}
	}
	for _, answer := range []plan.Answer{sources, volumes} {
		if answer.Fault != nil {
			v.found(&problem{reason: reasonError, message: clip.Line(answer.Fault.Error(), messageMax)})
			return nil, nil // what uses them is not known
		}
	}
	var entries []plan.Entry
	for _, image := range candidates {
		if leadsTo(sources.Items, image) || v.underWay(volumes.Items, image) {
			continue
		}
		entries = append(entries, plan.Entry{
			Verb: plan.Delete, Resource: dockyards.DataVolumes, Base: image,
			Reason: "the image " + v.name + " has taken its place, and nothing uses it",
		})
	}
	return entries, nil
}

// Manager is the function's field manager. It tells the images that the function has
// made from those that were there before.
const Manager = "slipway-release-importer"

// superseded are the images of the Release that nobody will ask for any more, once
// its DataSource leads to the one that it asks for: those that are marked, and those
// that the function has made and that were never offered, since another version came
// before they were imported. Images of others that are not marked stay.
func (v *view) superseded() []*unstructured.Unstructured {
	source := v.in.DataSource
	if v.idle || !v.succeeded() || source == nil || dockyards.Going(source) || ImageOf(source) != v.name {
		return nil
	}
	var images []*unstructured.Unstructured
	for i := range v.in.Images {
		image := &v.in.Images[i]
		marked := image.GetAnnotations()[v1alpha3.AnnotationSuperseded] == "true"
		if (marked || madeHere(image)) && dockyards.OwnedBy(image, v.in.Release) && image.GetName() != v.name && !dockyards.Going(image) {
			images = append(images, image)
		}
	}
	return images
}

// madeHere tells whether the function has made an image, and not only marked it: the
// server notes who has written its spec.
func madeHere(image *unstructured.Unstructured) bool {
	return slices.ContainsFunc(image.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		if entry.Manager != Manager || entry.Subresource != "" || entry.FieldsV1 == nil {
			return false
		}
		owned := map[string]json.RawMessage{}
		err := json.Unmarshal([]byte(entry.FieldsV1.GetRawString()), &owned)
		return err == nil && owned["f:spec"] != nil
	})
}

// leadsTo tells whether any DataSource leads to an image.
func leadsTo(sources []unstructured.Unstructured, image *unstructured.Unstructured) bool {
	for i := range sources {
		claim, _, _ := unstructured.NestedMap(sources[i].Object, "spec", "source", "pvc")
		if names(claim, sources[i].GetNamespace(), image.GetNamespace(), image.GetName()) {
			return true
		}
	}
	return false
}

// underWay tells whether any volume is being cloned from an image, or from what the
// Release's DataSource leads to.
func (v *view) underWay(volumes []unstructured.Unstructured, image *unstructured.Unstructured) bool {
	source := v.in.DataSource
	for i := range volumes {
		volume := &volumes[i]
		if phase(volume) == string(cdiv1.Succeeded) {
			continue
		}
		ref, _, _ := unstructured.NestedMap(volume.Object, "spec", "sourceRef")
		claim, _, _ := unstructured.NestedMap(volume.Object, "spec", "source", "pvc")
		if names(ref, volume.GetNamespace(), source.GetNamespace(), source.GetName()) ||
			names(claim, volume.GetNamespace(), image.GetNamespace(), image.GetName()) {
			return true
		}
	}
	return false
}

// names tells whether a reference, which lies in a namespace of its own, names an
// object.
func names(ref map[string]any, own, namespace, name string) bool {
	refName, _ := ref["name"].(string)
	refNamespace, _ := ref["namespace"].(string)
	return refName == name && cmp.Or(refNamespace, own) == namespace
}
