package render

import (
	"encoding/base64"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/clip"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/seal"
)

// checkKind holds what is particular to a kind.
func (r Rules) checkKind(scope Scope, res kind.Resource, obj *unstructured.Unstructured) string {
	if _, found := obj.Object["spec"]; found {
		if _, ok := obj.Object["spec"].(map[string]any); !ok {
			return "spec is no struct"
		}
	}
	switch {
	case IsRelease(res):
		if problem := r.checkKubeConfig(scope, obj); problem != "" {
			return problem
		}
		return checkReferences(scope, obj)
	case IsSource(res):
		return r.checkProvider(res, obj)
	}
	switch res.Kind {
	case Namespaces.Kind:
		return checkNamespace(scope, obj)
	case Secrets.Kind:
		return checkSecret(obj)
	case RoleBindings.Kind:
		return checkBinding(scope, obj)
	case Worktrees.Kind:
		return r.checkFiles(obj)
	}
	return ""
}

// KubeconfigSecret is the Secret that leads to a cluster.
func KubeconfigSecret(cluster string) string { return cluster + "-kubeconfig" }

func (r Rules) checkKubeConfig(scope Scope, obj *unstructured.Unstructured) string {
	value, found, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "kubeConfig")
	if !found {
		if r.LocalApply {
			return ""
		}
		return "there is no spec.kubeConfig: it would be applied to the management cluster, which setting RENDERER_ALLOW_LOCAL_APPLY allows"
	}
	config, ok := value.(map[string]any)
	if !ok || len(config) != 1 {
		return "spec.kubeConfig has to hold secretRef alone"
	}
	if _, byMap := config["configMapRef"]; byMap {
		name, _, _ := unstructured.NestedString(config, "configMapRef", "name")
		if slices.Contains(r.KubeConfigMaps, name) {
			return ""
		}
		return fmt.Sprintf("spec.kubeConfig.configMapRef.name is %q, which setting RENDERER_KUBECONFIG_CONFIG_MAPS does not list", clip.Line(name, 80))
	}
	name, _, _ := unstructured.NestedString(config, "secretRef", "name")
	if want := KubeconfigSecret(scope.Cluster); name != want {
		return fmt.Sprintf("spec.kubeConfig.secretRef.name is %q and has to be %q", clip.Line(name, 80), want)
	}
	return ""
}

// references are where Kustomizations and HelmReleases name other objects.
var references = []string{"spec.sourceRef", "spec.chartRef", "spec.chart.spec.sourceRef", "spec.dependsOn"}

func checkReferences(scope Scope, obj *unstructured.Unstructured) string {
	for _, where := range references {
		value, found, err := unstructured.NestedFieldNoCopy(obj.Object, strings.Split(where, ".")...)
		if err != nil || !found {
			continue
		}
		items, isList := value.([]any)
		if !isList {
			items = []any{value}
		}
		for _, item := range items {
			reference, ok := item.(map[string]any)
			if !ok {
				return where + " is no reference"
			}
			namespace, set := reference["namespace"]
			if set && namespace != scope.Namespace {
				return fmt.Sprintf("%s.namespace is %q, which is not the Workload's", where, clip.Line(fmt.Sprint(namespace), 80))
			}
		}
	}
	return ""
}

// checkProvider: any other provider than these lets Flux read a source with rights
// that the author of a template does not have.
func (r Rules) checkProvider(res kind.Resource, obj *unstructured.Unstructured) string {
	value, found, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "provider")
	if !found || r.CloudIdentity || value == "generic" || (value == "github" && res.Kind == GitRepositories.Kind) {
		return ""
	}
	return fmt.Sprintf("spec.provider is %q: Flux would use its own cloud identity, which setting RENDERER_ALLOW_CLOUD_IDENTITY allows", clip.Line(fmt.Sprint(value), 40))
}

// systemDomains are those by which labels and annotations steer a cluster.
var systemDomains = []string{"kubernetes.io", "k8s.io", "istio.io", "knative.dev"}

func checkNamespace(scope Scope, obj *unstructured.Unstructured) string {
	if prefix := scope.Namespace + "-"; !strings.HasPrefix(obj.GetName(), prefix) || obj.GetName() == prefix {
		return fmt.Sprintf("the name has to begin with %q", prefix)
	}
	for _, entries := range []map[string]string{obj.GetLabels(), obj.GetAnnotations()} {
		for _, key := range sortedKeys(entries) {
			for _, domain := range systemDomains {
				if InDomain(key, domain) {
					return fmt.Sprintf("%q may not be set on a Namespace: it steers the cluster", key)
				}
			}
		}
	}
	return ""
}

func checkSecret(obj *unstructured.Unstructured) string {
	// Whoever wrote it before Cluster API does would say where Flux applies things.
	if strings.HasSuffix(obj.GetName(), KubeconfigSecret("")) {
		return fmt.Sprintf("a name that ends in %q leads to a cluster, and is not a template's to give", KubeconfigSecret(""))
	}
	for _, taken := range []string{"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"} {
		if value := obj.Object["type"]; value == taken {
			return fmt.Sprintf("type %q is not allowed", taken)
		}
	}
	return ""
}

func checkBinding(scope Scope, obj *unstructured.Unstructured) string {
	if kindName, _, _ := unstructured.NestedString(obj.Object, "roleRef", "kind"); kindName != Roles.Kind {
		return "roleRef.kind has to be Role"
	}
	subjects, _, err := unstructured.NestedSlice(obj.Object, "subjects")
	if err != nil {
		return "subjects is no list"
	}
	for _, item := range subjects {
		subject, _ := item.(map[string]any)
		if subject["kind"] != ServiceAccounts.Kind || subject["namespace"] != scope.Namespace {
			return "subjects have to be ServiceAccounts of the Workload's namespace"
		}
	}
	return ""
}

func (r Rules) checkFiles(obj *unstructured.Unstructured) string {
	value, found, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "files")
	if !found {
		return ""
	}
	files, ok := value.(map[string]any)
	if !ok {
		return "spec.files is no struct"
	}
	total := 0
	for _, name := range sortedKeys(files) {
		if problem := checkFileName(name); problem != "" {
			return fmt.Sprintf("file %q %s", clip.Line(name, 80), problem)
		}
		text, _ := files[name].(string)
		content, err := base64.StdEncoding.DecodeString(text)
		if _, isText := files[name].(string); err != nil || !isText {
			return fmt.Sprintf("file %q is no bytes: write '...' or '''...''' in CUE", clip.Line(name, 80))
		}
		if total += len(content); total > r.MaxFiles {
			return fmt.Sprintf("spec.files has more than %d bytes", r.MaxFiles)
		}
	}
	return ""
}

func checkFileName(name string) string {
	parts := strings.Split(name, "/")
	switch {
	case name == "" || strings.ContainsAny(name, "\\\x00"):
		return "has no usable name"
	case path.IsAbs(name):
		return "is not relative"
	case path.Clean(name) != name || slices.Contains(parts, ".."):
		return "leads elsewhere"
	case slices.ContainsFunc(parts, func(part string) bool { return strings.EqualFold(part, ".git") }):
		return "lies in .git"
	}
	return ""
}

// plainSecret moves stringData to data, as the API server does: the former is never
// read back, so it could not be told whether anything has changed.
func plainSecret(secret map[string]any) {
	written, ok := secret["stringData"].(map[string]any)
	if !ok {
		return
	}
	delete(secret, "stringData")
	data, ok := secret["data"].(map[string]any)
	if !ok {
		data = map[string]any{}
	}
	for key, value := range written {
		text, _ := value.(string)
		if !seal.Is(text) { // the applier encodes what is sealed
			text = base64.StdEncoding.EncodeToString([]byte(text))
		}
		data[key] = text
	}
	if len(data) > 0 {
		secret["data"] = data
	}
}

func join(path ...string) string { return strings.Join(path, ".") }
