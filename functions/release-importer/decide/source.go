package decide

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// dataSource leads to the image once that is imported. leave marks the image that
// it leads away from, which has to happen first: afterwards nothing tells of it.
func (v *view) dataSource() (entries, leave []plan.Entry) {
	source := v.in.DataSource
	if source == nil {
		if !v.succeeded() {
			return nil, nil
		}
		return []plan.Entry{v.create(dockyards.DataSources, v.newSource(), "the image "+v.name+" is imported")}, nil
	}
	if dockyards.Going(source) {
		return nil, nil // its end wakes us
	}
	if !v.ours(source, v.labelled(source) && ImageOf(source) != "") {
		v.conflict(dockyards.DataSources, source.GetName())
		return nil, nil
	}
	object, reason := source.DeepCopy(), "the data source belongs to the Release"
	v.adopt(object)
	v.label(object)
	if v.succeeded() && ImageOf(source) != v.name {
		reason = "the image " + v.name + " is imported"
		leave = v.leave(v.at(ImageOf(source)))
		fields, _ := object.Object["spec"].(map[string]any)
		if fields == nil {
			fields = map[string]any{}
			object.Object["spec"] = fields
		}
		fields["source"] = map[string]any{"pvc": map[string]any{"name": v.name, "namespace": source.GetNamespace()}}
	}
	return patch(dockyards.DataSources, source, object, reason), leave
}

// leave marks an image as superseded. One that is not the Release's is left alone.
func (v *view) leave(image *unstructured.Unstructured) []plan.Entry {
	if image == nil || dockyards.Going(image) || !v.ours(image, v.labelled(image)) {
		return nil
	}
	object := v.marked(image)
	dockyards.SetAnnotation(object, v1alpha3.AnnotationSuperseded, "true")
	return patch(dockyards.DataVolumes, image, object, "the image "+v.name+" takes its place")
}

func (v *view) newSource() *cdiv1.DataSource {
	release := v.in.Release
	return &cdiv1.DataSource{
		ObjectMeta: metav1.ObjectMeta{
			Name:   release.GetName(),
			Labels: map[string]string{v1alpha3.LabelReleaseName: release.GetName()},
		},
		Spec: cdiv1.DataSourceSpec{Source: cdiv1.DataSourceSource{
			PVC: &cdiv1.DataVolumeSourcePVC{Name: v.name, Namespace: release.GetNamespace()},
		}},
	}
}
