package anchor

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/test/suite"
)

// stored tells whether a status could be stored.
func (w *world) stored(obj *unstructured.Unstructured) bool {
	_, err := w.In(dockyards.Clusters).UpdateStatus(w.TB.Context(), obj, metav1.UpdateOptions{FieldManager: "sibling"})
	if err != nil && !apierrors.IsConflict(err) {
		w.TB.Error(err)
		return true
	}
	return err == nil
}

// refuse answers each request of a kind of call with a code.
func refuse(code int, matches func(suite.Call) bool) suite.Option {
	return suite.WithTap(func(c suite.Call) (*http.Response, error) {
		if c.Path == "" && matches(c) {
			return suite.Answer(c.HTTP, code), nil
		}
		return nil, nil
	})
}

func reads(group, resource string) func(suite.Call) bool {
	return func(c suite.Call) bool { return !c.Write() && c.Group == group && c.Resource == resource }
}

func writes(group, resource string) func(suite.Call) bool {
	return func(c suite.Call) bool {
		return c.Write() && c.Group == group && c.Resource == resource && c.Subresource == ""
	}
}

const gatewayAPI = "gateway.networking.k8s.io"

// TestAPartThatCannotBeReadOrWrittenFailsAlone: its condition says so, the call is
// tried again, and all other parts are done.
func TestAPartThatCannotBeReadOrWrittenFailsAlone(t *testing.T) {
	const good, fine, bad = "True Reconciled", "True Ready", "False ErrorReconciling"
	type part struct {
		reason            string
		matches           func(suite.Call) bool
		endpoint, ingress string
		// missing are the kinds of which nothing is made.
		missing []string
	}
	parts := map[string]part{
		"ReadConfigMap": {"nothing is written without the config map", reads("", "configmaps"), bad, bad, []string{"Workload", "TLSRoute", "KubevirtCluster"}},
		"ReadGateway":   {"route and ingress depend on the Gateway", reads(gatewayAPI, "gateways"), bad, bad, []string{"Workload", "TLSRoute"}},
		"ReadRoute":     {"only the route", reads(gatewayAPI, "tlsroutes"), bad, fine, []string{"TLSRoute"}},
		"ReadWorkload":  {"only the ingress", reads("dockyards.io", "workloads"), good, bad, []string{"Workload"}},
		"ReadClusterAPI": {
			"only the infrastructure", reads("cluster.x-k8s.io", "clusters"), bad, fine, []string{"KubevirtCluster"},
		},
		"ReadKubevirtCluster":  {"only the infrastructure", reads(providers, "kubevirtclusters"), bad, fine, []string{"KubevirtCluster"}},
		"WriteRoute":           {"only the route", writes(gatewayAPI, "tlsroutes"), bad, fine, []string{"TLSRoute"}},
		"WriteWorkload":        {"only the ingress", writes("dockyards.io", "workloads"), good, bad, []string{"Workload"}},
		"WriteKubevirtCluster": {"only the infrastructure", writes(providers, "kubevirtclusters"), bad, fine, []string{"KubevirtCluster"}},
		"WriteClusterAPI":      {"only the reference", writes("cluster.x-k8s.io", "clusters"), bad, fine, nil},
	}
	for _, code := range []int{http.StatusInternalServerError, http.StatusUnprocessableEntity} {
		suite.Each(t, slices.Sorted(maps.Keys(parts)), func(name string) string { return fmt.Sprint(name, code) }, func(t *testing.T, name string) {
			c := parts[name]
			w := newWorld(t)
			w.environment(subject)
			f := w.anchor(refuse(code, c.matches))
			for range 2 {
				if got := f.Send(w.Event(dockyards.Clusters, subject)); got != http.StatusServiceUnavailable {
					t.Errorf("%s: the event is answered %d", c.reason, got)
				}
			}
			w.endpointIs(subject, c.endpoint)
			w.ingressIs(subject, c.ingress)
			objects := w.Names()
			for _, kindName := range []string{"Workload", "TLSRoute", "KubevirtCluster"} {
				made := slices.ContainsFunc(objects, func(key string) bool { return strings.HasPrefix(key, kindName+"/") })
				if want := !slices.Contains(c.missing, kindName); made != want {
					t.Errorf("%s: a %s is made: %v, want %v", c.reason, kindName, made, want)
				}
			}
			before := w.Versions()
			f.Send(w.Event(dockyards.Clusters, subject))
			if diff := cmp.Diff(before, w.Versions()); diff != "" {
				t.Errorf("the same failure says the same (-before +after):\n%s", diff)
			}
			calm := w.anchor()
			w.converged(calm, subject)
			w.endpointIs(subject, good)
			w.ingressIs(subject, fine)
			calm.Rests(w.events(subject)...)
		})
	}
}

// TestNoValueOfTheConfigMapIsTold: neither in conditions, nor Events, nor the log.
func TestNoValueOfTheConfigMapIsTold(t *testing.T) {
	const canary = "value-of-the-config-map"
	w := newWorld(t)
	w.externalURL("https://" + canary + "_.example.com")
	w.cluster(subject, "")
	f := w.anchor()
	w.converged(f, subject)
	w.endpointIs(subject, "False InvalidHostname")
	told := suite.Bytes(t, w.Must(dockyards.Clusters, subject)) + strings.Join(w.told(subject), "") + f.Log.String()
	if strings.Contains(told, canary) {
		t.Error("a value of the config map is told")
	}
}

// path is a story with something at every step that is worth failing.
func path(w *world, f *suite.Copy) {
	w.converged(f, subject)
	w.externalURL("https://example.net")
	w.converged(f, subject)
	w.Patch(dockyards.Clusters, subject, "spec: {noDefaultIngressProvider: true}")
	w.converged(f, subject)
}

// TestAnyCallMayFail fails a call of the story, each write and some of the reads, or
// loses its answer, and wants the same end.
func TestAnyCallMayFail(t *testing.T) {
	calm := newWorld(t)
	calm.environment(subject)
	f := calm.anchor()
	path(calm, f)
	want, calls := calm.State(), len(f.Calls())
	ways := map[string]func(n int) suite.Option{
		"409": func(n int) suite.Option {
			return refuse(http.StatusConflict, func(c suite.Call) bool { return c.N == n && c.Write() })
		},
		"500": func(n int) suite.Option {
			return refuse(http.StatusInternalServerError, func(c suite.Call) bool { return c.N == n })
		},
		"Lost": func(n int) suite.Option {
			return suite.WithAfter(func(c suite.Call) error {
				if c.N == n && c.Write() {
					return suite.ErrBroken
				}
				return nil
			})
		},
	}
	type trial struct {
		way string
		n   int
	}
	var trials []trial
	sampled := suite.Sample(calls, 0)
	for n := 1; n <= calls; n++ {
		write := f.Calls()[n-1].Write()
		for way := range ways {
			if write || (way == "500" && slices.Contains(sampled, n)) {
				trials = append(trials, trial{way, n})
			}
		}
	}
	suite.Each(t, trials, func(c trial) string { return fmt.Sprintf("%s_%d", c.way, c.n) }, func(t *testing.T, c trial) {
		w := newWorld(t)
		w.environment(subject)
		path(w, w.anchor(ways[c.way](c.n)))
		if diff := cmp.Diff(want, w.State()); diff != "" {
			t.Errorf("the end differs (-calm +failed):\n%s", diff)
		}
		w.anchor().Rests(w.events(subject)...)
	})
}
