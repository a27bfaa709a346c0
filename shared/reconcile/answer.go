package reconcile

import (
	"errors"
	"net/http"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/slipway-dev/slipway/shared/plan"
)

// errInvalid marks an event that can never be handled.
var errInvalid = errors.New("invalid event")

// answer is the one place where the class of a reconcile becomes an HTTP
// status. Knative retries 503 on every path, keeps the specimen of a 400 in
// the dead letters, and takes a 2xx with a text body for a failure; see
// "What the function's HTTP answer does" in the documentation.
func answer(class plan.Class, message string) error {
	switch class {
	case plan.Done, plan.Waiting, plan.Terminal:
		return cehttp.NewResult(http.StatusNoContent, "")
	case plan.Retry:
		return cehttp.NewResult(http.StatusServiceUnavailable, "%s", message)
	}
	return cehttp.NewResult(http.StatusServiceUnavailable, "unknown class %q", class)
}

func invalid(err error) error {
	return cehttp.NewResult(http.StatusBadRequest, "%s", err.Error())
}

// worse is the class that decides the answer when an event concerned several
// objects: one that must be retried makes the whole event be sent again.
func worse(a, b plan.Class) plan.Class {
	rank := map[plan.Class]int{plan.Done: 0, plan.Waiting: 1, plan.Terminal: 2, plan.Retry: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}
