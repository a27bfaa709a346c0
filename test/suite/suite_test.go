package suite

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	kubetest "github.com/slipway-dev/slipway/test/kube"
)

// demo is the declaration of a function that is never run.
func demo() reconcile.Spec {
	return reconcile.Spec{
		Name: "demo", Reconciles: kind.ConfigMaps,
		Grants: []reconcile.Grant{
			{Resource: kind.ConfigMaps, Verbs: []string{"get", "patch"}},
			{Resource: kind.ConfigMaps, Subresource: "status", Verbs: []string{"patch"}},
			{Resource: kind.Namespaces, Verbs: []string{"get"}, Names: []string{"kube-system"}},
			{Resource: kind.ConfigMaps, Subresource: "finalizers", Verbs: []string{"update"}, Implied: "no call asks for it"},
		},
		TargetGrants: []reconcile.Grant{{Resource: kind.Secrets, Verbs: []string{"get", "create"}}},
	}
}

// TestTheEvidenceFindsRefusalsAndRightsThatNobodyUsed holds the last check of every
// suite against requests that never were.
func TestTheEvidenceFindsRefusalsAndRightsThatNobodyUsed(t *testing.T) {
	e := newEvidence(demo())
	e.note(t.Name(), kubetest.Request{Verb: "get", Resource: "secrets", Version: "v1", Namespace: "a", Name: "b", Status: http.StatusOK})
	e.note(t.Name(), kubetest.Request{Verb: "get", Resource: "namespaces", Version: "v1", Name: "kube-system", Status: http.StatusOK})
	e.note(t.Name(), kubetest.Request{Verb: "patch", Apply: true, Resource: "configmaps", Version: "v1", Namespace: "a", Name: "b", Status: http.StatusCreated})
	e.note(t.Name(), kubetest.Request{Verb: "patch", Resource: "configmaps", Version: "v1", Subresource: "status", Namespace: "a", Name: "b", Status: http.StatusForbidden})
	if got := e.refused(); len(got) != 1 || !strings.Contains(got[0], "may not patch configmaps/status a/b") {
		t.Errorf("one request was refused, the findings are %v", got)
	}
	var unused []string
	for _, right := range e.unused() {
		unused = append(unused, right.String())
	}
	if diff := cmp.Diff([]string{"create secrets", "get configmaps", "patch configmaps/status"}, unused); diff != "" {
		t.Errorf("the rights that nothing has used (-want +got):\n%s", diff)
	}
}

func TestRightsAreThoseOfTheDeclaration(t *testing.T) {
	objs := Rights(demo())
	var names []string
	for _, obj := range objs {
		names = append(names, obj.GetKind()+" "+obj.GetName())
	}
	slices.Sort(names)
	want := []string{
		"ClusterRole slipway-demo", "ClusterRole slipway-demo-target", "ClusterRoleBinding slipway-demo",
		"ClusterRoleBinding slipway-demo-target", "ServiceAccount demo",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Without(demo(), "get", "secrets"); slices.ContainsFunc(got, func(r Right) bool { return r.Resource == "secrets" && r.Verb == "get" }) || len(got) != 6 {
		t.Errorf("without one right there are %v", got)
	}
	if got := Implied(demo()); len(got) != 1 || got[0].String() != "update configmaps/finalizers" {
		t.Errorf("the implied rights are %v", got)
	}
}

func TestTheProxyHoldsRefusesAndShowsACertificateOfItsOwn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization")) //nolint:gosec // read by this test alone
	}))
	defer server.Close()
	p := NewProxy(t, &rest.Config{Host: server.URL})
	ask := func() (string, error) {
		client, err := rest.HTTPClientFor(&rest.Config{Host: p.URL, BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{CAData: p.CA}})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.Status + " " + string(body), err
	}
	if got, err := ask(); err != nil || got != "200 OK Bearer t" {
		t.Errorf("through the proxy: %q, %v", got, err)
	}
	p.Before(Status(http.StatusBadGateway))
	if got, err := ask(); err != nil || !strings.HasPrefix(got, "502 ") {
		t.Errorf("a refused call: %q, %v", got, err)
	}
	const late = 300 * time.Millisecond
	p.Late(late)
	started := time.Now()
	if got, err := ask(); err != nil || got != "200 OK Bearer t" || time.Since(started) < late {
		t.Errorf("a late call: %q after %s, %v", got, time.Since(started), err)
	}
	p.Certificate(time.Now().Add(-time.Second))
	if _, err := ask(); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("a certificate that has expired: %v", err)
	}
}
