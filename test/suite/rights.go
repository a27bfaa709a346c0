package suite

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	"github.com/slipway-dev/slipway/shared/reconcile"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

// Right is what RBAC grants: a verb on a resource of a group, perhaps for one name
// only. Resource has its subresource behind a slash.
type Right struct{ Group, Resource, Verb, Name string }

// String is the right as a person would say it.
func (r Right) String() string {
	s := r.Verb + " " + r.Resource
	if r.Group != "" {
		s += "." + r.Group
	}
	if r.Name != "" {
		s += " " + r.Name
	}
	return s
}

func (r Right) attributes() *authorizationv1.ResourceAttributes {
	resource, sub, _ := strings.Cut(r.Resource, "/")
	return &authorizationv1.ResourceAttributes{
		Group: r.Group, Resource: resource, Subresource: sub, Verb: r.Verb, Name: r.Name,
	}
}

// RightsOf are the single rights of grants, sorted.
func RightsOf(grants ...reconcile.Grant) []Right {
	all := map[Right]bool{}
	for _, grant := range grants {
		resource := grant.Resource.Plural
		if grant.Subresource != "" {
			resource += "/" + grant.Subresource
		}
		names := grant.Names
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range grant.Verbs {
			for _, name := range names {
				all[Right{Group: grant.Resource.Group, Resource: resource, Verb: verb, Name: name}] = true
			}
		}
	}
	return sorted(all)
}

func sorted(rights map[Right]bool) []Right {
	return slices.SortedFunc(maps.Keys(rights), func(a, b Right) int { return cmp.Compare(a.String(), b.String()) })
}

// Rights are a function's account, its roles and their bindings, as its Spec
// declares them.
func Rights(spec reconcile.Spec) []*unstructured.Unstructured {
	objs := []*unstructured.Unstructured{object("v1", "ServiceAccount", spec.Name, map[string]any{})}
	objs[0].SetNamespace(Home)
	if len(spec.Grants) > 0 {
		objs = append(objs, Role("slipway-"+spec.Name, Home, spec.Name, RightsOf(spec.Grants...)...)...)
	}
	if len(spec.TargetGrants) > 0 {
		objs = append(objs, Role("slipway-"+spec.Name+"-target", Home, spec.Name, RightsOf(spec.TargetGrants...)...)...)
	}
	return objs
}

// Role is a ClusterRole with rights, bound to an account.
func Role(name, namespace, account string, rights ...Right) []*unstructured.Unstructured {
	var rules []any
	for _, right := range rights {
		rule := map[string]any{"apiGroups": []any{right.Group}, "resources": []any{right.Resource}, "verbs": []any{right.Verb}}
		if right.Name != "" {
			rule["resourceNames"] = []any{right.Name}
		}
		rules = append(rules, rule)
	}
	const version = rbacv1.GroupName + "/v1"
	return []*unstructured.Unstructured{
		object(version, "ClusterRole", name, map[string]any{"rules": rules}),
		object(version, "ClusterRoleBinding", name, map[string]any{
			"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": name},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": namespace}},
		}),
	}
}

// Account is the configuration of an account that has these rights and no others, for
// [WithConfig].
func (w *World) Account(rights ...Right) *rest.Config {
	w.TB.Helper()
	name := fmt.Sprintf("narrow-%s-%d", w.NS, accounts.Add(1))
	if err := kube.Apply(w.TB.Context(), w.Env.Config, Role(name, w.NS, name, rights...)...); err != nil {
		w.TB.Fatal(err)
	}
	AwaitRight(w.TB, w.Env, w.NS, name, rights[len(rights)-1])
	return w.Env.Impersonate(w.NS, name)
}

// accounts counts those of [World.Account].
var accounts atomic.Int32

// Without are a function's rights but one verb on one resource.
func Without(spec reconcile.Spec, verb, resource string) []Right {
	return slices.DeleteFunc(RightsOf(slices.Concat(spec.Grants, spec.TargetGrants)...), func(right Right) bool {
		return right.Verb == verb && right.Resource == resource
	})
}

// Implied are the rights of a function that no call asks for directly.
func Implied(spec reconcile.Spec) []Right {
	return RightsOf(slices.DeleteFunc(slices.Concat(spec.Grants, spec.TargetGrants), func(grant reconcile.Grant) bool {
		return grant.Implied == ""
	})...)
}

func object(apiVersion, kindName, name string, content map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: content}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kindName)
	obj.SetName(name)
	return obj
}

// CheckManifest compares the roles in the generated manifest of each function with
// its declaration.
func (s *Suite) CheckManifest(tb testing.TB) {
	tb.Helper()
	root, err := build.Root(".")
	if err != nil {
		tb.Fatal(err)
	}
	for _, spec := range s.opts.Specs {
		manifest := "deploy/base/functions/" + spec.Name + ".yaml"
		objs, err := kube.ReadFiles(filepath.Join(root, filepath.FromSlash(manifest)))
		if err != nil {
			tb.Fatal(err)
		}
		got := map[Right]bool{}
		for _, obj := range objs {
			if obj.GetKind() != "ClusterRole" {
				continue
			}
			role := rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role); err != nil {
				tb.Fatalf("cannot read ClusterRole %q of %s: %v", obj.GetName(), manifest, err)
			}
			for _, rule := range role.Rules {
				maps.Copy(got, rightsIn(rule))
			}
		}
		want := RightsOf(slices.Concat(spec.Grants, spec.GrantsFor(""))...)
		if diff := gocmp.Diff(want, sorted(got)); diff != "" {
			tb.Errorf("%s is not what the declaration says, run `make generate` (-declared +generated):\n%s", manifest, diff)
		}
	}
}

func rightsIn(rule rbacv1.PolicyRule) map[Right]bool {
	rights := map[Right]bool{}
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					rights[Right{Group: group, Resource: resource, Verb: verb, Name: name}] = true
				}
			}
		}
	}
	return rights
}

// evidence is what the requests of one function have shown.
type evidence struct {
	spec     reconcile.Spec
	mu       sync.Mutex
	used     map[Right]bool
	findings []string
}

func newEvidence(spec reconcile.Spec) *evidence {
	return &evidence{spec: spec, used: map[Right]bool{}}
}

// note takes in one request of the function and its answer.
func (e *evidence) note(test string, req kubetest.Request) {
	if req.Path != "" {
		return
	}
	resource := req.Resource
	if req.Subresource != "" {
		resource += "/" + req.Subresource
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if req.Status == http.StatusForbidden {
		e.findings = append(e.findings, fmt.Sprintf("%s: the account of %s may not %s", test, e.spec.Name, req))
		return
	}
	verbs := []string{req.Verb}
	if req.Apply && req.Status == http.StatusCreated {
		// The server asks for both rights of an apply that makes an object.
		verbs = append(verbs, "create")
	}
	for _, verb := range verbs {
		for _, name := range []string{"", req.Name} {
			e.used[Right{Group: req.Group, Resource: resource, Verb: verb, Name: name}] = true
		}
	}
}

func (e *evidence) refused() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(e.findings)))
}

// unused are the granted rights that no request has used, but for those that are
// declared as implied.
func (e *evidence) unused() []Right {
	granted, implied := RightsOf(slices.Concat(e.spec.Grants, e.spec.TargetGrants)...), Implied(e.spec)
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(granted, func(right Right) bool {
		return e.used[right] || slices.Contains(implied, right)
	})
}
