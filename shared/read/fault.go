package read

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/fault"
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
