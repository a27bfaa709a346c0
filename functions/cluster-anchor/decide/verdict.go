package decide

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

// verdict is what a part of the Cluster came to: a condition without its type and
// times, and what that makes of the reconcile. The zero verdict says nothing.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
	class           plan.Class
}

func done(reason, message string) verdict {
	return verdict{metav1.ConditionTrue, reason, message, plan.Done}
}

func waiting(reason, message string) verdict {
	return verdict{metav1.ConditionFalse, reason, message, plan.Waiting}
}

// wrong is what a person has to change something about.
func wrong(reason, message string) verdict {
	return verdict{metav1.ConditionFalse, reason, message, plan.Terminal}
}

// failed is a step that the API server did not let through.
func (v *view) failed(f *fault.Fault) verdict {
	return verdict{metav1.ConditionFalse, v1alpha3.ReasonErrorReconciling, v.told(f), plan.Retry}
}

// unread is the verdict on a part that could not be read; zero if it could.
func (v *view) unread(f *fault.Fault) verdict {
	if f == nil {
		return verdict{}
	}
	return v.failed(f)
}

// told is a fault in words that stay the same from one attempt to the next, and
// without the config map's hostname.
func (v *view) told(f *fault.Fault) string {
	switch f.Class {
	case fault.NotServed:
		return fmt.Sprintf("cannot %s: the API server does not serve that kind", f.Call)
	case fault.Refused:
		message := f.Message
		if hostname, err := v.in.Config.Hostname(); err == nil && hostname != "" {
			message = strings.ReplaceAll(message, hostname, "(externalURL)")
		}
		return fmt.Sprintf("cannot %s: %s", f.Call, message)
	case fault.Unavailable, fault.Conflict:
	}
	if f.Code == 0 {
		return fmt.Sprintf("cannot %s: the API server does not answer", f.Call)
	}
	return fmt.Sprintf("cannot %s: the API server answers %d", f.Call, f.Code)
}

// messageMax is the length of what people are told.
const messageMax = 256

func quote(name string) string { return strconv.Quote(name) }

// both joins two texts that may be empty.
func both(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
