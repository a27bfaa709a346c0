package render

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/kind"
)

// Marks on what is made for a Workload.
const (
	// AnnotationPrune is, on an object, "false" to keep it when the template stops
	// giving it; on a Namespace "true" to let it be deleted.
	AnnotationPrune = "slipway.dev/prune"
	// AnnotationOwnerUID and AnnotationOwner are, on what has no namespace, whose it
	// is: the UID of the Workload, and its namespace/name.
	AnnotationOwnerUID = "slipway.dev/owner-uid"
	AnnotationOwner    = "slipway.dev/owner"
)

// Rules say what a template may give.
type Rules struct {
	// Allowed are the kinds.
	Allowed []kind.Resource
	// LocalApply allows Kustomizations and HelmReleases without kubeConfig, which
	// Flux applies to the management cluster with its own rights.
	LocalApply bool
	// KubeConfigMaps are names that spec.kubeConfig.configMapRef may have.
	KubeConfigMaps []string
	// CloudIdentity allows sources that Flux reads by its own cloud identity.
	CloudIdentity bool
	// MaxFiles bounds the files of one Worktree, in bytes.
	MaxFiles int
}

// DefaultRules are those of an empty environment.
func DefaultRules() Rules {
	return Rules{Allowed: DefaultAllowed(), MaxFiles: DefaultLimits().MaxObject}
}

// Scope is for whom a template is rendered.
type Scope struct {
	Namespace, Workload string
	UID                 types.UID
	Cluster             string
}

// ScopeOf is that of a Workload and the name of its Cluster.
func ScopeOf(workload *unstructured.Unstructured, cluster string) Scope {
	return Scope{Namespace: workload.GetNamespace(), Workload: workload.GetName(), UID: workload.GetUID(), Cluster: cluster}
}

// Object is one object that may be applied.
type Object struct {
	// Field is its name in the template, for messages.
	Field    string
	Resource kind.Resource
	// Intent is what is owned of the object, complete with marks.
	Intent *unstructured.Unstructured
}

// Name is "Kind/name".
func (o Object) Name() string { return o.Resource.Kind + "/" + o.Intent.GetName() }

// Check looks at all outputs, and gives the objects in the order in which they are
// applied. One that is not allowed spoils the whole.
func (r Rules) Check(scope Scope, outputs []Output) ([]Object, *Failure) {
	for _, label := range []struct{ key, value string }{
		{v1alpha3.LabelClusterName, scope.Cluster}, {v1alpha3.LabelWorkloadName, scope.Workload},
	} {
		if problems := validation.IsValidLabelValue(label.value); len(problems) > 0 {
			return nil, &Failure{Reason: ReasonNotAllowed, Message: clip.Line(fmt.Sprintf("the name %q cannot be the value of label %s: %s", label.value, label.key, problems[0]), maxMessage)}
		}
	}
	var objects []Object
	for _, output := range outputs {
		res, problem := r.check(scope, output.Object)
		if problem != "" {
			return nil, &Failure{Reason: ReasonNotAllowed, Message: clip.Line(describe(scope, output)+": "+problem, maxMessage)}
		}
		objects = append(objects, Object{Field: output.Field, Resource: res, Intent: intent(scope, res, output.Object)})
	}
	slices.SortStableFunc(objects, func(a, b Object) int { return cmp.Compare(Group(a.Resource), Group(b.Resource)) })
	return objects, nil
}

func describe(scope Scope, output Output) string {
	name := output.Object.GetName()
	if ns := cmp.Or(output.Object.GetNamespace(), scope.Namespace); output.Object.GetKind() != Namespaces.Kind {
		name = ns + "/" + name
	}
	return fmt.Sprintf("output %q, %s %s", output.Field, output.Object.GetKind(), name)
}

func (r Rules) check(scope Scope, obj *unstructured.Unstructured) (res kind.Resource, problem string) {
	gvk := obj.GroupVersionKind()
	res, allowed := Find(r.Allowed, gvk.Group, gvk.Kind)
	if !allowed {
		return res, "the kind is not allowed: allowed are " + FormatAllowed(r.Allowed)
	}
	if !slices.Contains(res.Versions, gvk.Version) {
		return res, fmt.Sprintf("version %q is not known, write %s", gvk.Version, res.Versions[0])
	}
	for _, look := range []func(Scope, kind.Resource, *unstructured.Unstructured) string{
		checkPlace, checkMetadata, checkMarks, r.checkKind,
	} {
		if problem := look(scope, res, obj); problem != "" {
			return res, problem
		}
	}
	return res, ""
}

func checkPlace(scope Scope, res kind.Resource, obj *unstructured.Unstructured) string {
	namespace, found, err := unstructured.NestedString(obj.Object, "metadata", "namespace")
	switch {
	case err != nil:
		return "metadata.namespace is no text"
	case res.Namespaced && found && namespace != scope.Namespace:
		return fmt.Sprintf("namespace %q is not the Workload's", namespace)
	case !res.Namespaced && found:
		return "metadata.namespace is set, and the kind has none"
	}
	var problems []string
	if res.Kind == Namespaces.Kind {
		problems = validation.IsDNS1123Label(obj.GetName())
	} else {
		problems = validation.IsDNS1123Subdomain(obj.GetName())
	}
	if len(problems) > 0 {
		return fmt.Sprintf("the name %q is not valid: %s", clip.Line(obj.GetName(), 80), problems[0])
	}
	return ""
}

// refused are fields that no template may set.
var refused = [][]string{
	{"status"},
	{"metadata", "generateName"},
	{"metadata", "ownerReferences"},
	{"metadata", "finalizers"},
	{"metadata", "managedFields"},
	{"metadata", "resourceVersion"},
	{"metadata", "uid"},
}

func checkMetadata(_ Scope, _ kind.Resource, obj *unstructured.Unstructured) string {
	for _, path := range refused {
		if _, found, _ := unstructured.NestedFieldNoCopy(obj.Object, path...); found {
			return "field " + join(path...) + " may not be set"
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		value, found, _ := unstructured.NestedFieldNoCopy(obj.Object, "metadata", field)
		if !found {
			continue
		}
		entries, ok := value.(map[string]any)
		if !ok {
			return "metadata." + field + " is no struct of strings"
		}
		for _, key := range sortedKeys(entries) {
			text, ok := entries[key].(string)
			if !ok {
				return fmt.Sprintf("metadata.%s[%q] is no string", field, clip.Line(key, 80))
			}
			if problems := validation.IsQualifiedName(key); len(problems) > 0 {
				return fmt.Sprintf("metadata.%s has the key %q: %s", field, clip.Line(key, 80), problems[0])
			}
			if problems := validation.IsValidLabelValue(text); field == "labels" && len(problems) > 0 {
				return fmt.Sprintf("metadata.labels[%q] is %q: %s", key, clip.Line(text, 80), problems[0])
			}
		}
	}
	return ""
}

// checkMarks: labels and annotations by which objects are told apart are ours.
func checkMarks(scope Scope, _ kind.Resource, obj *unstructured.Unstructured) string {
	labels := obj.GetLabels()
	for _, label := range []struct{ key, want string }{
		{v1alpha3.LabelWorkloadName, scope.Workload}, {v1alpha3.LabelClusterName, scope.Cluster},
	} {
		if have, found := labels[label.key]; found && have != label.want {
			return fmt.Sprintf("label %s is %q and has to be %q", label.key, have, label.want)
		}
	}
	for _, entries := range []map[string]string{labels, obj.GetAnnotations()} {
		for _, key := range sortedKeys(entries) {
			if InDomain(key, slipwayDomain) && key != AnnotationPrune {
				return fmt.Sprintf("%q may not be set: the domain is Slipway's", key)
			}
		}
	}
	return ""
}

// intent is an object with its marks. Of metadata only what a template may say is
// taken.
func intent(scope Scope, res kind.Resource, from *unstructured.Unstructured) *unstructured.Unstructured {
	obj := from.DeepCopy()
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	obj.Object["metadata"] = map[string]any{"name": from.GetName()}
	labels = with(labels, v1alpha3.LabelWorkloadName, scope.Workload)
	labels = with(labels, v1alpha3.LabelClusterName, scope.Cluster)
	obj.SetLabels(labels)
	if res.Namespaced {
		obj.SetNamespace(scope.Namespace)
		obj.SetOwnerReferences([]metav1.OwnerReference{OwnerReference(scope)})
	} else {
		annotations = with(annotations, AnnotationOwnerUID, string(scope.UID))
		annotations = with(annotations, AnnotationOwner, scope.Namespace+"/"+scope.Workload)
	}
	if len(annotations) > 0 {
		obj.SetAnnotations(annotations)
	}
	if res.Kind == Secrets.Kind {
		plainSecret(obj.Object)
	}
	return obj
}

// OwnerReference is the one that every object of a Workload carries.
func OwnerReference(scope Scope) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: v1alpha3.SchemeGroupVersion.String(), Kind: v1alpha3.KindWorkload,
		Name: scope.Workload, UID: scope.UID, Controller: &yes, BlockOwnerDeletion: &yes,
	}
}

func with(entries map[string]string, key, value string) map[string]string {
	if entries == nil {
		entries = map[string]string{}
	}
	entries[key] = value
	return entries
}
