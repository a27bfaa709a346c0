package read

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/vault"
)

// Fault tells what an error of client-go means. Secrets of the vault are
// scrubbed from its text.
func Fault(err error, clusterName, call string, v *vault.Vault) *fault.Fault {
	f := &fault.Fault{Class: fault.Unavailable, Cluster: clusterName, Call: call, Message: v.Scrub(err.Error())}
	if meta.IsNoMatchError(err) {
		f.Class = fault.NotServed
		return f
	}
	if errors.Is(err, cluster.ErrAnswerTooLarge) {
		f.Class, f.Message = fault.Refused, cluster.ErrAnswerTooLarge.Error()
		return f
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return f
	}
	f.Code = int(status.Status().Code)
	switch {
	case f.Code == http.StatusConflict:
		f.Class = fault.Conflict
	case notServed(status.Status()):
		f.Class = fault.NotServed
	case f.Code == http.StatusUnauthorized, f.Code == http.StatusRequestTimeout, f.Code == http.StatusTooManyRequests, f.Code >= http.StatusInternalServerError:
	default:
		f.Class = fault.Refused
	}
	return f
}

// notServed tells a 404 for the resource itself from a 404 for one object: the
// former does not come from the resource's handler and carries no Status body.
func notServed(status metav1.Status) bool {
	if status.Code != http.StatusNotFound || status.Details == nil {
		return false
	}
	for _, cause := range status.Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return false
}

// Cause is an error of client-go that means a fault: what Fault makes of it is that
// fault again. A recording holds faults, and whoever it is played to decides by errors.
func Cause(f *fault.Fault, res kind.Resource) error {
	switch {
	case f == nil:
		return nil
	case f.Message == cluster.ErrAnswerTooLarge.Error():
		return cluster.ErrAnswerTooLarge
	case f.Code == 0 && f.Class == fault.NotServed:
		return &meta.NoResourceMatchError{PartialResource: res.GVR()}
	case f.Code == 0:
		return errors.New(f.Message)
	}
	status := metav1.Status{Status: metav1.StatusFailure, Code: int32(f.Code), Message: f.Message, Reason: reasons[f.Code]} //nolint:gosec // an HTTP status
	if f.Class == fault.NotServed {
		status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse}}}
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// reasons belong to status codes.
var reasons = map[int]metav1.StatusReason{
	http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict,
	http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusBadRequest: metav1.StatusReasonBadRequest,
	http.StatusGone: metav1.StatusReasonExpired, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
}
