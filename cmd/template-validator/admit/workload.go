package admit

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/render"
)

const (
	referenceField = "spec.workloadTemplateRef"
	inputField     = "spec.input"
)

// Workload answers a request about a Workload.
func (v Validator) Workload(ctx context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return decide(ctx, request, v.checkWorkload)
}

// reference names a template.
type reference struct{ namespace, name, kind string }

func referenceOf(workload *unstructured.Unstructured, namespace string) *reference {
	value, found, _ := unstructured.NestedMap(workload.Object, "spec", "workloadTemplateRef")
	if !found || value == nil {
		return nil
	}
	text := func(key string) string {
		s, _ := value[key].(string)
		return s
	}
	return &reference{namespace: cmp.Or(text("namespace"), namespace), name: text("name"), kind: text("kind")}
}

// judged is a Workload that is looked at.
type judged struct {
	Validator
	*review
	workload *unstructured.Unstructured
	source   string
}

func (v Validator) checkWorkload(ctx context.Context, c change, r *review) error {
	ns := c.object.GetNamespace()
	ref := referenceOf(c.object, ns)
	if c.old != nil {
		if old := referenceOf(c.old, ns); old != nil && (ref == nil || old.name != ref.name || old.namespace != ref.namespace) {
			r.reject(causeForbidden, referenceField, "reference is immutable")
			return nil
		}
	}
	if _, set, _ := unstructured.NestedFieldNoCopy(c.object.Object, "spec", "workloadTemplateInput"); set {
		r.warn("ignoring deprecated field workloadTemplateInput")
	}
	if ref == nil {
		return nil
	}
	if ref.kind != v1alpha3.KindWorkloadTemplate {
		r.warn("%s.kind is %q: the reference leads to a %s whatever stands there", referenceField, clip.Line(ref.kind, 80), v1alpha3.KindWorkloadTemplate)
	}
	template, err := v.find(ctx, ns, *ref, r)
	if template == nil || err != nil {
		return err
	}
	source, err := render.SourceOf(template)
	if err != nil {
		r.warn("%v", err)
		return nil //nolint:nilerr // nothing here renders it
	}
	j := judged{Validator: v, review: r, workload: c.object, source: source}
	for _, step := range []func(context.Context) error{j.checkTemplate, j.tryRender} {
		if err := step(ctx); err != nil || len(r.causes) > 0 {
			return err
		}
	}
	return nil
}

// find reads the template that a reference leads to; nil if that was rejected.
func (v Validator) find(ctx context.Context, own string, ref reference, r *review) (*unstructured.Unstructured, error) {
	allowed, err := v.namespaces(ctx, own, ref.namespace)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(allowed, ref.namespace) {
		r.reject(causeForbidden, referenceField, "templates of namespace %q may not be used: use one of namespace %s", ref.namespace, strings.Join(allowed, ", "))
		return nil, nil
	}
	template, err := v.Template(ctx, ref.namespace, ref.name)
	switch {
	case err != nil:
		r.reject(causeInternal, referenceField, "the template cannot be read: %s", class(err))
		return nil, nil //nolint:nilerr // it is said in the answer
	case template == nil:
		r.reject(metav1.CauseTypeFieldValueNotFound, referenceField, "Not found: %q", ref.name)
	}
	return template, nil
}

// namespaces are those whose templates a Workload may use, as far as that has to be
// known to judge one of them.
func (v Validator) namespaces(ctx context.Context, own, wanted string) ([]string, error) {
	allowed := append([]string{own}, v.PublicNamespaces...)
	if slices.Contains(allowed, wanted) || v.Public == nil {
		return allowed, nil
	}
	more, err := v.Public(ctx)
	if err != nil {
		return nil, errors.New("the shared config map cannot be read: " + class(err))
	}
	if more != "" && !slices.Contains(allowed, more) {
		allowed = append(allowed, more)
	}
	return allowed, nil
}

// class tells what kind of error it was: texts of errors hold addresses.
func class(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return string(metav1.StatusReasonTimeout)
	}
	return "no answer from the API server"
}

// checkTemplate: the template has to build by itself, and the input has to be what it
// asks for.
func (j judged) checkTemplate(ctx context.Context) error {
	result, err := j.Render(ctx, render.Request{Mode: render.ModeTemplate, Source: j.source, Limits: j.Limits})
	if err != nil {
		return err
	}
	switch {
	case result.Failure != nil && result.Failure.Limit:
		j.reject(invalid, inputField, "%s", result.Failure.Message)
		return nil
	case result.Failure != nil:
		j.reject(invalid, referenceField, "the template cannot be built: %s", result.Failure.Message)
		return nil //nolint:nilerr // it is said in the answer
	case !result.Facts.Cluster || !result.Facts.Workload:
		j.reject(invalid, referenceField, "the template declares no #cluster or no #workload")
		return nil
	}
	input, given, _ := unstructured.NestedFieldNoCopy(j.workload.Object, "spec", "input")
	if !result.Facts.Input {
		if given {
			j.reject(causeForbidden, inputField, "input not supported on template")
		}
		return nil
	}
	if !given {
		input = map[string]any{}
	}
	return j.checkInput(ctx, render.JSON(input))
}

func (j judged) checkInput(ctx context.Context, input string) error {
	result, err := j.Render(ctx, render.Request{Mode: render.ModeInput, Source: j.source, Input: input, Limits: j.Limits})
	if err != nil || result.Failure == nil {
		return err
	}
	failure := result.Failure
	if failure.Limit || len(failure.Causes) == 0 {
		j.reject(invalid, inputField, "%s", failure.Message)
		return nil
	}
	for i, cause := range failure.Causes {
		if i < maxCauses {
			j.reject(causeForbidden, inputField, "%s", cause.Text)
		}
	}
	return nil
}

// tryRender renders with the live Cluster, or with one of which only the name is
// known: what depends on more of it cannot be told yet.
func (j judged) tryRender(ctx context.Context) error {
	name := dockyards.ClusterOf(j.workload)
	var cluster *unstructured.Unstructured
	if name != "" {
		var err error
		if cluster, err = j.Cluster(ctx, j.workload.GetNamespace(), name); err != nil {
			return errors.New("the Cluster cannot be read: " + class(err))
		}
	}
	trial := render.NewTrial(j.source, j.workload, cluster, name, j.Limits)
	result, err := j.Render(ctx, trial.Request)
	if err != nil {
		return err
	}
	failure := result.Failure
	if failure == nil {
		_, failure = j.Rules.Check(trial.Scope, result.Outputs)
	}
	switch {
	case failure == nil:
	case failure.Limit:
		j.reject(invalid, inputField, "%s", failure.Message)
	case trial.StandIn && aboutCluster(failure):
		j.warn("the Cluster does not exist yet, and without it the template does not render: %s", failure.Message)
	case failure.Input || failure.Reason == render.ReasonValidate:
		j.reject(invalid, inputField, "%s: %s", failure.Reason, failure.Message)
	default:
		j.reject(invalid, referenceField, "%s: %s", failure.Reason, failure.Message)
	}
	return nil
}

func aboutCluster(failure *render.Failure) bool {
	return slices.ContainsFunc(failure.Causes, func(cause render.Cause) bool {
		return cause.Cluster || strings.HasPrefix(cause.Path, "#cluster")
	})
}
