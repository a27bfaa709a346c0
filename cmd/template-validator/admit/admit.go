package admit

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/render"
)

// Validator checks objects.
type Validator struct {
	// Render evaluates; see package worker.
	Render func(ctx context.Context, request render.Request) (render.Result, error)
	// Template and Cluster read an object; nil if there is none.
	Template, Cluster func(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error)
	// Rules say what a template may give, Limits what a render may take.
	Rules  render.Rules
	Limits render.Limits
	// PublicNamespaces are those whose templates every Workload may use; Public names
	// one more, or none, and is asked only where they do not decide. It may be nil.
	PublicNamespaces []string
	Public           func(ctx context.Context) (string, error)
}

// Limits are those of a render within a webhook's time.
func Limits() render.Limits {
	limits := render.DefaultLimits()
	limits.CPU, limits.Wall = 2*time.Second, 4*time.Second
	return limits
}

// deadline lies below the webhook's timeout.
const deadline = 9 * time.Second

// change is what a request is about.
type change struct {
	request *admissionv1.AdmissionRequest
	object  *unstructured.Unstructured
	// old is nil when the object is created.
	old *unstructured.Unstructured
}

func decode(request *admissionv1.AdmissionRequest) (change, error) {
	c := change{request: request}
	for _, side := range []struct {
		raw []byte
		to  **unstructured.Unstructured
	}{{request.Object.Raw, &c.object}, {request.OldObject.Raw, &c.old}} {
		if len(side.raw) == 0 {
			continue
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(side.raw); err != nil {
			return c, err
		}
		*side.to = obj
	}
	if c.object == nil {
		return c, errors.New("there is none")
	}
	if c.object.GetNamespace() == "" {
		c.object.SetNamespace(request.Namespace)
	}
	if c.object.GetName() == "" {
		c.object.SetName(strings.TrimSuffix(c.object.GetGenerateName(), "-")) // a name is drawn later
	}
	return c, nil
}

// passes tells whether a change is none of our business.
func (c change) passes() bool {
	return c.object.GetDeletionTimestamp() != nil || (c.old != nil && reflect.DeepEqual(c.object.Object["spec"], c.old.Object["spec"]))
}

// decide answers a request by one of the checks.
func decide(ctx context.Context, request *admissionv1.AdmissionRequest, check func(context.Context, change, *review) error) *admissionv1.AdmissionResponse {
	if !slices.Contains([]admissionv1.Operation{admissionv1.Create, admissionv1.Update}, request.Operation) || request.SubResource != "" {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	c, err := decode(request)
	if err != nil {
		return undecodable(err)
	}
	if c.passes() {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	r := &review{kind: request.Kind.Kind, name: c.object.GetName()}
	if err := check(ctx, c, r); err != nil {
		return unable(err)
	}
	return r.response()
}

// invalid is the type of what a field must not hold.
const invalid = metav1.CauseTypeFieldValueInvalid
