package admit

import (
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
)

// Types of causes that apimachinery has no name for.
const (
	causeForbidden metav1.CauseType = "FieldValueForbidden"
	causeInternal  metav1.CauseType = "InternalError"
)

// review is an answer while it is made.
type review struct {
	kind, name string
	causes     []metav1.StatusCause
	warnings   []string
}

func (r *review) reject(cause metav1.CauseType, field, format string, args ...any) {
	r.causes = append(r.causes, metav1.StatusCause{Type: cause, Field: field, Message: fmt.Sprintf(format, args...)})
}

func (r *review) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// response is the answer to the API server: 422 with one cause per error.
func (r *review) response() *admissionv1.AdmissionResponse {
	answer := &admissionv1.AdmissionResponse{Allowed: len(r.causes) == 0, Warnings: r.warnings}
	if answer.Allowed {
		return answer
	}
	status := apierrors.NewInvalid(schema.GroupKind{Group: v1alpha3.GroupName, Kind: r.kind}, r.name, nil).Status()
	texts := make([]string, 0, len(r.causes))
	for _, cause := range r.causes {
		texts = append(texts, cause.Field+": "+cause.Message)
	}
	status.Message = fmt.Sprintf("%s.%s %q is invalid: %s", r.kind, v1alpha3.GroupName, r.name, strings.Join(texts, "; "))
	status.Details.Causes = r.causes
	answer.Result = &status
	return answer
}

// unable is the answer when nothing can be said: the request does not pass, and may
// later.
func unable(err error) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: "cannot check the object now, try again: " + err.Error(),
	}}
}

// undecodable is the answer to what is no object at all.
func undecodable(err error) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest,
		Message: "cannot read the object: " + err.Error(),
	}}
}
