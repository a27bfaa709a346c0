package machinevm

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/kube"
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/reconcile"
	kubetest "github.com/slipway-dev/slipway/test/kube"
	"github.com/slipway-dev/slipway/test/virt/admission"
)

// manifest is what `make generate` wrote for the function.
const manifest = "deploy/base/functions/machine-vm.yaml"

// Where the function runs.
const (
	home    = "slipway-system"
	account = "machine-vm"
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(kubetest.Main(witnessed{m}))
}

// witnessed looks at what the tests have seen once they are through.
type witnessed struct{ tests kubetest.Runner }

func (w witnessed) Run() int {
	code := w.tests.Run()
	for _, finding := range seen.refused() {
		fmt.Fprintln(os.Stderr, "--- FAIL:", finding)
		code = max(code, 1)
	}
	// Some of the tests cannot have used all rights.
	if code != 0 || selected("test.run") || selected("test.skip") || selected("test.list") {
		return code
	}
	unused, err := seen.unused()
	if err != nil {
		fmt.Fprintln(os.Stderr, "--- FAIL:", err)
		return 1
	}
	for _, right := range unused {
		fmt.Fprintf(os.Stderr, "--- FAIL: the right to %s is granted and no test used it: take it out of the declaration, or test what needs it\n", right)
		code = 1
	}
	return code
}

func selected(name string) bool {
	f := flag.Lookup(name)
	return f != nil && f.Value.String() != ""
}

// seen is what the function's requests have shown in all tests.
var seen = &evidence{used: map[right]bool{}}

type evidence struct {
	mu       sync.Mutex
	used     map[right]bool
	findings []string
}

// right is what RBAC grants: a verb on a resource of a group, perhaps for one
// name only.
type right struct{ group, resource, verb, name string }

func (r right) String() string {
	s := r.verb + " " + r.resource
	if r.group != "" {
		s += "." + r.group
	}
	if r.name != "" {
		s += " " + r.name
	}
	return s
}

// note takes in one request of the function and its answer.
func (e *evidence) note(t *testing.T, req kubetest.Request) {
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
		e.findings = append(e.findings, fmt.Sprintf("%s: the ServiceAccount may not %s", t.Name(), req))
		return
	}
	verbs := []string{req.Verb}
	if req.Apply && req.Status == http.StatusCreated {
		// The server asks for both rights of an apply that makes an object.
		verbs = append(verbs, "create")
	}
	for _, verb := range verbs {
		for _, name := range []string{"", req.Name} {
			e.used[right{group: req.Group, resource: resource, verb: verb, name: name}] = true
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
func (e *evidence) unused() ([]string, error) {
	granted, err := granted()
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	implied := impliedRights()
	var unused []string
	for _, r := range granted {
		if !e.used[r] && !implied[r] {
			unused = append(unused, r.String())
		}
	}
	slices.Sort(unused)
	return unused, nil
}

// impliedRights are those that no call asks for directly.
func impliedRights() map[right]bool {
	implied := map[right]bool{}
	spec := machinevm.DefaultSpec()
	for _, grant := range slices.Concat(spec.Grants, spec.TargetGrants) {
		if grant.Implied == "" {
			continue
		}
		for r := range rightsOf(grant) {
			implied[r] = true
		}
	}
	return implied
}

func rightsOf(grant reconcile.Grant) map[right]bool {
	rights := map[right]bool{}
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
			rights[right{group: grant.Resource.Group, resource: resource, verb: verb, name: name}] = true
		}
	}
	return rights
}

// granted are the rights in the generated roles.
func granted() ([]right, error) {
	objs, err := rbac()
	if err != nil {
		return nil, err
	}
	rights := map[right]bool{}
	for _, obj := range objs {
		if obj.GetKind() != "ClusterRole" {
			continue
		}
		role := rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role); err != nil {
			return nil, fmt.Errorf("cannot read ClusterRole %q of %s: %w", obj.GetName(), manifest, err)
		}
		for _, rule := range role.Rules {
			maps.Copy(rights, rightsIn(rule))
		}
	}
	return slices.Collect(maps.Keys(rights)), nil
}

func rightsIn(rule rbacv1.PolicyRule) map[right]bool {
	rights := map[right]bool{}
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					rights[right{group: group, resource: resource, verb: verb, name: name}] = true
				}
			}
		}
	}
	return rights
}

// rbac is the function's ServiceAccount with its roles and bindings.
func rbac() ([]*unstructured.Unstructured, error) {
	root, err := build.Root(".")
	if err != nil {
		return nil, err
	}
	objs, err := kube.ReadFiles(filepath.Join(root, filepath.FromSlash(manifest)))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(objs, func(obj *unstructured.Unstructured) bool {
		return obj.GetKind() != "ServiceAccount" && !strings.HasPrefix(obj.GetAPIVersion(), rbacv1.GroupName)
	}), nil
}

// examine reads what the server stored of a VirtualMachine that the function
// wrote: KubeVirt's webhooks, which do not run here, must have accepted it.
func examine(t *testing.T, req kubetest.Request, resp *http.Response) {
	if !req.Write() || req.Verb == "delete" || req.Group != kinds.VirtualMachines.Group || req.Resource != kinds.VirtualMachines.Plural ||
		resp.StatusCode >= http.StatusBadRequest {
		return
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		t.Errorf("cannot read the answer to %s: %v", req, err)
		return
	}
	vm := &unstructured.Unstructured{}
	if err := vm.UnmarshalJSON(body); err != nil {
		t.Errorf("cannot read the answer to %s: %v", req, err)
		return
	}
	for _, violation := range admission.Check(vm) {
		t.Errorf("KubeVirt would refuse what %s wrote: %v", req, violation)
	}
}

func TestTheGeneratedRolesGrantWhatIsDeclaredAndNothingElse(t *testing.T) {
	got, err := granted()
	if err != nil {
		t.Fatal(err)
	}
	spec := machinevm.DefaultSpec()
	want := map[right]bool{}
	for _, grant := range slices.Concat(spec.Grants, spec.TargetGrants) {
		maps.Copy(want, rightsOf(grant))
	}
	lines := func(rights []right) []string {
		var all []string
		for _, r := range rights {
			all = append(all, r.String())
		}
		slices.Sort(all)
		return all
	}
	if diff := cmp.Diff(lines(slices.Collect(maps.Keys(want))), lines(got)); diff != "" {
		t.Errorf("%s is not what the declaration says, run `make generate` (-declared +generated):\n%s", manifest, diff)
	}
}

// TestTheEvidenceFindsRefusalsAndRightsThatNobodyUsed holds the package's last check
// against requests that never were.
func TestTheEvidenceFindsRefusalsAndRightsThatNobodyUsed(t *testing.T) {
	e := &evidence{used: map[right]bool{}}
	e.note(t, kubetest.Request{Verb: "get", Resource: "secrets", Version: "v1", Namespace: "a", Name: "b", Status: http.StatusOK})
	e.note(t, kubetest.Request{Verb: "get", Resource: "namespaces", Version: "v1", Name: "kube-system", Status: http.StatusOK})
	e.note(t, kubetest.Request{Verb: "patch", Group: "vitistack.io", Version: "v1alpha1", Resource: "machines", Subresource: "status", Namespace: "a", Name: "b", Status: http.StatusForbidden})
	if got := e.refused(); len(got) != 1 || !strings.Contains(got[0], "may not patch machines.vitistack.io/status a/b") {
		t.Errorf("one request was refused, the findings are %v", got)
	}
	unused, err := e.unused()
	if err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]bool{
		"get secrets": false, "get namespaces kube-system": false, "create secrets": true,
		"patch machines/status.vitistack.io": true, "update machines/finalizers.vitistack.io": false,
	} {
		if got := slices.Contains(unused, what); got != want {
			t.Errorf("%q is found to be unused: %v, want %v; all are %v", what, got, want, unused)
		}
	}
}
