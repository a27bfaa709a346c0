package machinevm

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
)

// without is the configuration of an account that has all the function's rights but
// one verb on one resource.
func (w *world) without(resource, verb string) *rest.Config {
	w.t.Helper()
	client, err := kubernetes.NewForConfig(w.env.Config)
	if err != nil {
		w.t.Fatal(err)
	}
	objs, err := rbac()
	if err != nil {
		w.t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}
	for _, obj := range objs {
		if obj.GetKind() != "ClusterRole" {
			continue
		}
		full := rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &full); err != nil {
			w.t.Fatal(err)
		}
		for _, rule := range full.Rules {
			if rule.Resources[0] == resource {
				rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return v == verb })
			}
			if len(rule.Verbs) > 0 {
				role.Rules = append(role.Rules, rule)
			}
		}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.ns},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.ns, Name: "narrow"}},
	}
	if _, err := client.RbacV1().ClusterRoles().Create(w.t.Context(), role, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(w.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + w.ns + ":narrow",
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "vitistack.io", Resource: "machines", Verb: "get", Namespace: w.ns},
	}}
	for end := time.Now().Add(patience); ; {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(w.t.Context(), review, metav1.CreateOptions{})
		if err == nil && answer.Status.Allowed {
			return w.env.Impersonate(w.ns, "narrow")
		}
		if time.Now().After(end) {
			w.t.Fatalf("the account never got its rights: %v", err)
		}
	}
}

// TestAnImpliedRightIsNeeded takes each right away that no call asks for by itself.
func TestAnImpliedRightIsNeeded(t *testing.T) {
	broken := map[string]func(t *testing.T, w *world, f *function){
		"machines/finalizers update": func(t *testing.T, w *world, f *function) {
			f.send(w.machineEvent(subject))
			if w.get(kinds.NetworkConfigurations, subject) != nil {
				t.Error("the record was made all the same, with an owner reference that blocks the Machine's deletion")
			}
			if got := w.why(subject); !strings.HasPrefix(got, "False KubeVirtApiError: ") || !strings.Contains(got, "finalizers") {
				t.Errorf("Ready is %s", got)
			}
		},
	}
	// On the management cluster a Machine's namespace is always there.
	elsewhere := []string{"namespaces get", "namespaces create"}
	for r := range impliedRights() {
		name := r.resource + " " + r.verb
		if slices.Contains(elsewhere, name) {
			continue
		}
		breaks, ok := broken[name]
		if !ok {
			t.Errorf("no test shows that something breaks without the right to %s", r)
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newSubject(t)
			breaks(t, w, w.copyOf(withRights(w.without(r.resource, r.verb))))
		})
		delete(broken, name)
	}
	for name := range broken {
		t.Errorf("%q is no implied right any more", name)
	}
}

// TestARightThatIsMissingIsSaidOnTheMachine takes rights away one by one: the Machine
// says what is refused, nobody tries again and again, and it heals with the right.
func TestARightThatIsMissingIsSaidOnTheMachine(t *testing.T) {
	type missing struct{ resource, verb string }
	all := []missing{
		{kinds.VirtualMachines.Plural, "create"},
		{kind.PersistentVolumeClaims.Plural, "create"},
		{kind.Secrets.Plural, "create"},
		{kind.Secrets.Plural, "get"},
		{kind.StorageClasses.Plural, "list"},
		{kinds.VirtualMachines.Plural, "get"},
	}
	concurrently(t, all, func(m missing) string { return m.verb + " " + m.resource }, func(t *testing.T, m missing) {
		w := newSubject(t)
		f := w.copyOf(withRights(w.without(m.resource, m.verb)))
		if got := f.send(w.machineEvent(subject)); got != http.StatusNoContent {
			t.Errorf("the event was answered %d: sending it again gives no right; the log:\n%s", got, f.log)
		}
		if got := w.why(subject); !strings.HasPrefix(got, "False KubeVirtApiError: ") || !strings.Contains(got, m.resource) {
			t.Errorf("Ready is %s", got)
		}
		w.copyOf().insist(w.machineEvent(subject))
		if got := w.condition(subject, "Ready"); got != "False Creating" {
			t.Errorf("the right is there again, and Ready is still %s", w.why(subject))
		}
	})
}

func TestEveryGrantIsForAResourceThatTheFunctionKnows(t *testing.T) {
	for _, grant := range machinevm.DefaultSpec().Grants {
		for _, verb := range grant.Verbs {
			if verb == "*" || grant.Resource.Plural == "*" || grant.Resource.Group == "*" {
				t.Errorf("a grant of everything: %s %s", verb, grant.Resource)
			}
		}
	}
}
