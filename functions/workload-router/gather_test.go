package workloadrouter

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/functions/workload-router/decide"
	"github.com/slipway-dev/slipway/shared/cluster"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/vault"
)

// crowd is how many Clusters one namespace has, with a Workload, a mirror and routes each.
const crowd = 200

// atOnce is how many reconciles are looked at.
const atOnce = 8

// crowded serves discovery and the lists of such a namespace.
func crowded(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	resource, group := path.Base(r.URL.Path), strings.Split(r.URL.Path, "/")[2]
	kinds := map[string]string{
		"services": "Service", "httproutes": "HTTPRoute", "tlsroutes": "TLSRoute", "workloads": "Workload", "clusters": "Cluster",
	}
	if kinds[resource] == "" || (resource == "clusters" && group != dockyards.Clusters.Group) {
		served := []string{}
		for plural, kind := range kinds {
			served = append(served, fmt.Sprintf(`{"name":%q,"kind":%q,"namespaced":true,"verbs":["list"]}`, plural, kind))
		}
		if strings.Count(r.URL.Path, "/") > 3 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprintf(w, `{"kind":"APIResourceList","groupVersion":%q,"resources":[%s]}`, strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/"), strings.Join(served, ",")) //nolint:gosec // no browser is there, and the client is the test's own
		return
	}
	_, _ = w.Write(listOf(kinds[resource]))
}

// listOf is the list of a kind.
func listOf(kind string) []byte {
	var items []string
	for i := range crowd {
		items = append(items, fmt.Sprintf(`{"kind":%q,"metadata":{"name":"shop-%03d-web","namespace":"acme","uid":"u-%d","managedFields":[{"manager":"m","fieldsV1":{%s}}]},
			"spec":{%s},"status":{"dnsZones":["shop-%03d.example"]}}`, kind, i, i, filler("f:field"), filler("field"), i))
	}
	return fmt.Appendf(nil, `{"kind":"%sList","metadata":{},"items":[%s]}`, kind, strings.Join(items, ","))
}

// filler are fields in the number that real objects have.
func filler(name string) string {
	fields := []string{}
	for i := range 30 {
		fields = append(fields, fmt.Sprintf(`"%s%d":{"a":"%d"}`, name, i, i))
	}
	return strings.Join(fields, ",")
}

// gathered is what one Workload's reconcile reads from a crowded namespace.
func gathered(t *testing.T, client *cluster.Client, name string) (decide.Input, *read.Reader) {
	t.Helper()
	workload := &unstructured.Unstructured{Object: map[string]any{"apiVersion": dockyards.Workloads.APIVersion(), "kind": "Workload"}}
	workload.SetNamespace("acme")
	workload.SetName(name)
	workload.SetLabels(map[string]string{"dockyards.io/cluster-name": "shop"})
	r := read.New(cluster.NewSet(client), vault.New())
	in, err := gatherer{settings: DefaultSettings()}.gather(t.Context(), r, workload)
	if err != nil || len(in.Faults) > 0 {
		t.Errorf("cannot gather %s: %v %v", name, err, in.Faults)
	}
	return in, r
}

// crowdedClient is the connection to an API server with such a namespace.
func crowdedClient(t *testing.T) *cluster.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(crowded))
	t.Cleanup(server.Close)
	client, err := cluster.New(cluster.Management, "test", &rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestAllClustersAreOnlyReadWhereAHostnameIsAtStake: most Workloads of a platform want no
// hostname. To look through the Clusters of all customers for each of them would cost the more,
// the more customers there are.
func TestAllClustersAreOnlyReadWhereAHostnameIsAtStake(t *testing.T) {
	client := crowdedClient(t)
	for name, wanted := range map[string]int{"shop-000": 1, "batch": 0} {
		_, r := gathered(t, client, name)
		looks := 0
		for _, record := range r.Records() {
			if record.Need.Resource.Group == dockyards.Clusters.Group && record.Need.Resource.Kind == "Cluster" && record.Need.Namespace == "" {
				looks++
			}
		}
		if looks != wanted {
			t.Errorf("Workload %s looked through all Clusters %d times, not %d", name, looks, wanted)
		}
	}
}

// TestReconcilesAtOnceDoNotEachHoldTheNamespace: up to fifty Workloads of an event are
// reconciled side by side. What each keeps is its own, not what the namespace has: else a namespace
// with many Clusters takes all the memory there is.
func TestReconcilesAtOnceDoNotEachHoldTheNamespace(t *testing.T) {
	client := crowdedClient(t)
	var held []decide.Input
	var readers []*read.Reader
	live := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := live()
	for i := range atOnce {
		in, r := gathered(t, client, fmt.Sprintf("shop-%03d", i))
		if len(in.Services) != 1 || len(in.HTTPRoutes) != 1 || len(in.TLSRoutes) != 1 || len(in.Clusters) != crowd {
			t.Errorf("%d Services, %d Clusters", len(in.Services), len(in.Clusters))
		}
		held, readers = append(held, in), append(readers, r)
	}
	each := (live() - before) >> 10 / atOnce
	t.Logf("a reconcile holds %d KiB", each)
	if each > 1024 {
		t.Errorf("a reconcile holds %d KiB of a namespace of %d Workloads", each, crowd)
	}
	runtime.KeepAlive(held)
	runtime.KeepAlive(readers)
}
