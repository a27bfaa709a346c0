package admit

import (
	"context"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/render"
)

const sourceField = "spec.source"

// maxCauses bounds the errors of one template.
const maxCauses = 10

// WorkloadTemplate answers a request about a WorkloadTemplate.
func (v Validator) WorkloadTemplate(ctx context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return decide(ctx, request, v.checkTemplate)
}

func (v Validator) checkTemplate(ctx context.Context, c change, r *review) error {
	if kindOf, _, _ := unstructured.NestedString(c.object.Object, "spec", "type"); kindOf != v1alpha3.WorkloadTemplateTypeCUE {
		r.warn("spec.type is %q: nothing here renders the template, only %s", clip.Line(kindOf, 80), v1alpha3.WorkloadTemplateTypeCUE)
		return nil
	}
	source, _, _ := unstructured.NestedString(c.object.Object, "spec", "source")
	result, err := v.Render(ctx, render.Request{Mode: render.ModeTemplate, Source: source, Limits: v.Limits})
	if err != nil {
		return err
	}
	if failure := result.Failure; failure != nil {
		rejectSource(r, source, failure)
		if failure.Reason == render.ReasonBuild || failure.Limit {
			return nil // what it declares is not known
		}
	}
	if !result.Facts.Cluster {
		r.reject(metav1.CauseTypeFieldValueRequired, sourceField+".#cluster", "must have cluster definition")
	}
	if !result.Facts.Workload {
		r.reject(metav1.CauseTypeFieldValueRequired, sourceField+".#workload", "must have workload definition")
	}
	return nil
}

// rejectSource tells each error with the line that it is about.
func rejectSource(r *review, source string, failure *render.Failure) {
	if len(failure.Causes) == 0 {
		r.reject(invalid, sourceField, "%s", failure.Message)
		return
	}
	for i, cause := range failure.Causes {
		if i == maxCauses {
			return
		}
		if line := lineFrom(source, cause); line != "" {
			r.reject(invalid, sourceField, "Invalid value: %q: %s", line, cause)
			continue
		}
		r.reject(invalid, sourceField, "%s", cause)
	}
}

// lineFrom is the offending line of a source from the error's column on.
func lineFrom(source string, cause render.Cause) string {
	lines := strings.Split(source, "\n")
	if cause.Line < 1 || cause.Line > len(lines) {
		return ""
	}
	line := lines[cause.Line-1]
	if cause.Column > 1 && cause.Column <= len(line) {
		line = line[cause.Column-1:]
	}
	return clip.Line(line, 200)
}
