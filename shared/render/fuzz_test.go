package render

import (
	"testing"
)

// FuzzOutput: whatever a child answers, which a template may have taken over, what
// passes lies in the Workload's namespace, is of an allowed kind, and is owned.
func FuzzOutput(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"data":{"a":"YQ=="},"stringData":{"b":"c"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"other","ownerReferences":[{}],"finalizers":["a/b"]}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"x"},"roleRef":{"name":"cluster-admin"}}`,
		`{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"x","labels":{"dockyards.io/workload-name":"other"}},"spec":{"serviceAccountName":"x","targetNamespace":"y"}}`,
		`{"apiVersion":"dockyards.io/v1alpha3","kind":"Worktree","metadata":{"name":"x"},"spec":{"files":{"a":1e999}}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}} {}`,
	} {
		f.Add(seed)
	}
	scope := Scope{Namespace: "team", Workload: "web", UID: "uid", Cluster: "prod"}
	request := Request{Limits: DefaultLimits()}
	f.Fuzz(func(t *testing.T, text string) {
		result := request.Decode(Answer{Outputs: []Raw{{Field: "a", JSON: text}}})
		if result.Failure != nil {
			return
		}
		objects, failure := DefaultRules().Check(scope, result.Outputs)
		if failure != nil {
			return
		}
		for _, object := range objects {
			if object.Resource.Namespaced && object.Intent.GetNamespace() != scope.Namespace {
				t.Errorf("%s lies in %q", object.Name(), object.Intent.GetNamespace())
			}
			if owners := object.Intent.GetOwnerReferences(); object.Resource.Namespaced && (len(owners) != 1 || owners[0].UID != scope.UID) {
				t.Errorf("%s belongs to %v", object.Name(), owners)
			}
			if len(object.Intent.GetFinalizers()) > 0 {
				t.Errorf("%s has finalizers %v", object.Name(), object.Intent.GetFinalizers())
			}
			if _, has := object.Intent.Object["status"]; has {
				t.Errorf("%s brings a status", object.Name())
			}
		}
	})
}
