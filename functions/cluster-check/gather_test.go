package clustercheck

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/functions/cluster-check/decide"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/vault"
)

// server answers reads from a map of request path to manifest, and notes what it
// was asked. What a real API server says is for the tests against one.
type server struct {
	url string

	mu    sync.Mutex
	asked []string
}

func newServer(t *testing.T, objects map[string]string) *server {
	t.Helper()
	s := &server{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, strings.TrimSuffix(r.URL.Path+"?limit="+r.URL.Query().Get("limit"), "?limit="))
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		manifest, ok := objects[r.URL.Path]
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			manifest = `{apiVersion: v1, kind: Status, status: Failure, reason: NotFound, code: 404}`
		case manifest == "forbidden":
			w.WriteHeader(http.StatusForbidden)
			manifest = `{apiVersion: v1, kind: Status, status: Failure, reason: Forbidden, message: no, code: 403}`
		}
		raw, err := yaml.YAMLToJSON([]byte(manifest))
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(raw)
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func (s *server) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sorted := slices.Sorted(slices.Values(s.asked))
	s.asked = nil
	return sorted
}

const (
	vitistack = "/apis/vitistack.io/v1alpha1"
	crdPath   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
)

func secret(url string) string {
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: secret-token}}],
		contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}`, url)
	return `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}, data: {kubeconfig: ` + base64.StdEncoding.EncodeToString([]byte(kubeconfig)) + `}}`
}

func configs(names ...string) string {
	var items []string
	for _, name := range names {
		items = append(items, `{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfig, metadata: {name: `+name+`}, spec: {kubeconfigSecretRef: `+name+`}}`)
	}
	return `{apiVersion: vitistack.io/v1alpha1, kind: KubevirtConfigList, metadata: {}, items: [` + strings.Join(items, ", ") + `]}`
}

func remote(t *testing.T) *server {
	t.Helper()
	crd := `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, spec: {versions: [{name: v1, storage: true, schema: {openAPIV3Schema: {type: object}}}, {name: v1alpha3, storage: false}]}}`
	return newServer(t, map[string]string{
		"/api/v1/namespaces":                            `{apiVersion: v1, kind: NamespaceList, metadata: {continue: more}, items: [{apiVersion: v1, kind: Namespace, metadata: {name: default}}]}`,
		"/apis/kubevirt.io/v1/kubevirts":                `{apiVersion: kubevirt.io/v1, kind: KubeVirtList, metadata: {}, items: [{apiVersion: kubevirt.io/v1, kind: KubeVirt, metadata: {name: k, namespace: n}}]}`,
		crdPath + "virtualmachines.kubevirt.io":         crd,
		crdPath + "virtualmachineinstances.kubevirt.io": crd,
	})
}

func reader(t *testing.T, management *server) *read.Reader {
	t.Helper()
	return read.New(clusters(t, management), vault.New())
}

func clusters(t *testing.T, management *server) *cluster.Set {
	t.Helper()
	client, err := cluster.New(cluster.Management, "test", &rest.Config{Host: management.url})
	if err != nil {
		t.Fatal(err)
	}
	return cluster.NewSet(client)
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

// TestGatherAsksTwoClustersAtMost: its own, and the yardstick, however many there
// are.
func TestGatherAsksTwoClustersAtMost(t *testing.T) {
	a, b, c := remote(t), remote(t), remote(t)
	management := newServer(t, map[string]string{
		vitistack + "/kubevirtconfigs":         configs("a", "b", "c"),
		"/api/v1/namespaces/default/secrets/a": secret(a.url),
		"/api/v1/namespaces/default/secrets/b": secret(b.url),
		"/api/v1/namespaces/default/secrets/c": secret(c.url),
		crdPath + "machines.vitistack.io":      "forbidden",
	})
	g := gatherer{settings: decide.DefaultSettings()}
	in, err := g.gather(t.Context(), reader(t, management), object(t, `{metadata: {name: c}, spec: {kubeconfigSecretRef: c}}`))
	if err != nil {
		t.Fatal(err)
	}
	if in.Yardstick == nil || in.Yardstick.Cluster != "a" || in.Sight.Cluster != "c" {
		t.Errorf("%q is compared with %v", in.Sight.Cluster, in.Yardstick)
	}
	want := []string{
		"/api/v1/namespaces?limit=1", crdPath + "virtualmachineinstances.kubevirt.io", crdPath + "virtualmachines.kubevirt.io",
		"/apis/kubevirt.io/v1/kubevirts?limit=500",
	}
	for _, asked := range []*server{a, c} {
		if diff := cmp.Diff(want, asked.questions()); diff != "" {
			t.Errorf("what a cluster is asked (-want +got):\n%s", diff)
		}
	}
	if asked := b.questions(); len(asked) > 0 {
		t.Errorf("a third cluster is asked %q", asked)
	}
	if diff := cmp.Diff(map[string]string{"virtualmachines": "v1", "virtualmachineinstances": "v1"}, in.Sight.Stored); diff != "" {
		t.Errorf("stored versions (-want +got):\n%s", diff)
	}
	if len(in.Sight.KubeVirts) != 1 || in.Definitions.Refused == nil || in.Definitions.Refused.Code != http.StatusForbidden {
		t.Errorf("the input is %+v", in)
	}
}

func TestNoSchemaOfKubeVirtIsKept(t *testing.T) {
	a := remote(t)
	management := newServer(t, map[string]string{
		vitistack + "/kubevirtconfigs": configs("a"), "/api/v1/namespaces/default/secrets/a": secret(a.url),
	})
	r := reader(t, management)
	if _, err := (gatherer{settings: decide.DefaultSettings()}).gather(t.Context(), r, object(t, `{metadata: {name: a}, spec: {kubeconfigSecretRef: a}}`)); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, record := range r.Records() {
		if record.Need.Cluster == "a" && record.Answer.Object != nil {
			seen++
			if raw, _ := record.Answer.Object.MarshalJSON(); strings.Contains(string(raw), "openAPIV3Schema") {
				t.Errorf("the record of %s holds a schema", record.Need.Name)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d definitions were read", seen)
	}
}

func TestAConfigOfAnotherNamespaceCostsNothing(t *testing.T) {
	management := newServer(t, nil)
	_, err := (gatherer{settings: decide.DefaultSettings()}).gather(t.Context(), reader(t, management), object(t, `{metadata: {name: a, namespace: elsewhere}}`))
	if asked := management.questions(); err != nil || len(asked) > 0 {
		t.Errorf("%v, %q", err, asked)
	}
}

func TestKeys(t *testing.T) {
	namespaced := strings.ReplaceAll(configs("a", "b"), "{name: b}", "{name: b, namespace: default}")
	namespaced = strings.ReplaceAll(namespaced, "{name: a}", "{name: a, namespace: default}")
	cases := map[string]struct {
		reason  string
		configs string
		of      func(m mapper, t *testing.T, r *read.Reader) ([]reconcile.Key, error)
		want    []reconcile.Key
	}{
		"the yardstick changed": {
			"all are compared with it", configs("a", "b"),
			func(m mapper, t *testing.T, r *read.Reader) ([]reconcile.Key, error) {
				return m.ofConfig(t.Context(), r, event.Event{Name: "a"})
			},
			[]reconcile.Key{{Name: "a"}, {Name: "b"}},
		},
		"another changed": {
			"nobody is compared with it", configs("a", "b"),
			func(m mapper, t *testing.T, r *read.Reader) ([]reconcile.Key, error) {
				return m.ofConfig(t.Context(), r, event.Event{Name: "b"})
			},
			[]reconcile.Key{{Name: "b"}},
		},
		"namespaced": {
			"an older definition", namespaced,
			func(m mapper, t *testing.T, r *read.Reader) ([]reconcile.Key, error) {
				return m.ofConfig(t.Context(), r, event.Event{Namespace: "default", Name: "a"})
			},
			[]reconcile.Key{{Namespace: "default", Name: "a"}, {Namespace: "default", Name: "b"}},
		},
		"of another namespace": {
			"it concerns nobody else", namespaced,
			func(m mapper, t *testing.T, r *read.Reader) ([]reconcile.Key, error) {
				return m.ofConfig(t.Context(), r, event.Event{Namespace: "elsewhere", Name: "a"})
			},
			[]reconcile.Key{{Namespace: "elsewhere", Name: "a"}},
		},
		"a Secret": {
			"those that name it", configs("a", "b"),
			func(m mapper, t *testing.T, r *read.Reader) ([]reconcile.Key, error) {
				return m.ofSecret(t.Context(), r, event.Event{Namespace: "default", Name: "b"})
			},
			[]reconcile.Key{{Name: "b"}},
		},
		"a Secret of somebody else": {
			"nobody names it", configs("a", "b"),
			func(m mapper, t *testing.T, r *read.Reader) ([]reconcile.Key, error) {
				return m.ofSecret(t.Context(), r, event.Event{Namespace: "other", Name: "b"})
			},
			nil,
		},
		"a cluster came": {
			"its config has its name", namespaced,
			func(m mapper, t *testing.T, r *read.Reader) ([]reconcile.Key, error) {
				return m.connected(t.Context(), r, "b")
			},
			[]reconcile.Key{{Namespace: "default", Name: "b"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			management := newServer(t, map[string]string{vitistack + "/kubevirtconfigs": tc.configs})
			got, err := tc.of(mapper{settings: decide.DefaultSettings()}, t, reader(t, management))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSurveyLooksAtTheNamedAndTheYardstick(t *testing.T) {
	a, b, c := remote(t), remote(t), remote(t)
	served := `{kind: APIResourceList, groupVersion: vitistack.io/v1alpha1, resources: [{name: machines}, {name: networkconfigurations}, {name: kubevirtconfigs}]}`
	management := newServer(t, map[string]string{
		vitistack: served, vitistack + "/kubevirtconfigs": configs("a", "b", "c"),
		"/api/v1/namespaces/default/secrets/a": secret(a.url),
		"/api/v1/namespaces/default/secrets/b": secret(b.url),
		"/api/v1/namespaces/default/secrets/c": secret(c.url),
	})
	done := 0
	s, err := Survey(t.Context(), clusters(t, management), decide.DefaultSettings(), SurveyOptions{
		Single: decide.SingleAuto, Only: []string{"c"},
		Progress: func(finished, total int, _ []string) {
			if done = finished; total != 2 {
				t.Errorf("%d clusters are looked at", total)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, sight := range s.Sights {
		seen = append(seen, sight.Cluster)
	}
	if diff := cmp.Diff([]string{"a", "c"}, seen); diff != "" || done != 2 || len(b.questions()) > 0 {
		t.Errorf("looked at (-want +got):\n%s", diff)
	}
	if _, err := Survey(t.Context(), clusters(t, management), decide.DefaultSettings(), SurveyOptions{Only: []string{"z"}, Single: decide.SingleAuto}); err == nil ||
		!strings.Contains(err.Error(), `"z": there are a, b, c`) {
		t.Errorf("a name that is not there: %v", err)
	}
}
