package decide

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway/shared/dockyards"
)

// town is a platform with some Clusters whose names are made of the same few letters
// and dashes, each with its route.
type town struct {
	clusters []*unstructured.Unstructured
	routes   map[string]*unstructured.Unstructured
	url      string
}

func aTown(t *rapid.T) *town {
	part := rapid.StringMatching(`[ab](-[ab]){0,2}`)
	names := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string {
		return part.Draw(t, "namespace") + "/" + part.Draw(t, "name")
	}), 2, 8, rapid.ID[string]).Draw(t, "names")
	x := &town{routes: map[string]*unstructured.Unstructured{}, url: hostnames.Draw(t, "hostname")}
	for _, name := range names {
		namespace, name, _ := strings.Cut(name, "/")
		status := ""
		switch rapid.IntRange(0, 3).Draw(t, "stored") {
		case 1: // what upstream stored under the one or other hostname
			status = endpointStatus(label(namespace, name) + "." + hostnames.Draw(t, "before"))
		case 2: // what somebody wrote
			status = endpointStatus(part.Draw(t, "label") + "." + hostnames.Draw(t, "before"))
		}
		cluster := aCluster(t, namespace, name, "", status)
		second := rapid.IntRange(0, 2).Draw(t, "second")
		cluster.SetCreationTimestamp(metav1.NewTime(instant.Add(time.Duration(second) * time.Second)))
		x.clusters = append(x.clusters, cluster)
	}
	return x
}

var hostnames = rapid.SampledFrom([]string{"example.com", "example.net", "b.example.com"})

// visit is one pass over one Cluster, with all that the function would read.
func (x *town) visit(t *rapid.T, i int) {
	in := anInput(t, "", "")
	in.Cluster, in.Config = x.clusters[i], aConfig(t, "externalURL: https://"+x.url)
	key := in.Cluster.GetNamespace() + "/" + in.Cluster.GetName()
	in.Route = x.routes[key]
	for _, id := range Namesakes(in.Cluster.GetNamespace(), in.Cluster.GetName()) {
		for _, other := range x.clusters {
			if other.GetNamespace() == id.Namespace && other.GetName() == id.Name {
				in.Clusters = append(in.Clusters, *other)
			}
		}
	}
	if KeepsForeignHost(in.Cluster) {
		in.Clusters = nil
		for _, other := range x.clusters {
			in.Clusters = append(in.Clusters, *other)
		}
	}
	carry(t, &in)
	x.clusters[i] = in.Cluster
	if x.routes[key] = in.Route; in.Route == nil {
		delete(x.routes, key)
	}
}

// TestNoTwoClustersEverGetTheSameHost: in any town, in any order of passes, whatever
// becomes of externalURL. Each route leads to the host of its own Cluster.
func TestNoTwoClustersEverGetTheSameHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := aTown(t)
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(x.clusters)-1), 0, 8).Draw(t, "passes") {
				x.visit(t, i)
			}
			x.url = hostnames.Draw(t, "hostname")
		}
		// A resync comes to all; what one gives up is there for another at the next.
		for range 3 {
			for i := range x.clusters {
				x.visit(t, i)
			}
		}
		holders, leads := map[string]string{}, map[string]string{}
		for _, cluster := range x.clusters {
			key := cluster.GetNamespace() + "/" + cluster.GetName()
			host, _ := stored(cluster)
			if other := holders[host]; host != "" && other != "" {
				t.Errorf("%s and %s have the host %s", key, other, host)
			}
			holders[host] = key
			route := x.routes[key]
			if (route == nil) != (host == "") {
				t.Errorf("%s has the host %q and a route: %v", key, host, route != nil)
				continue
			}
			if route == nil {
				continue
			}
			hosts, _, _ := unstructured.NestedStringSlice(route.Object, "spec", "hostnames")
			if len(hosts) != 1 || hosts[0] != host || leads[hosts[0]] != "" {
				t.Errorf("the route of %s leads to %v, its host is %s", key, hosts, host)
			}
			leads[host] = key
		}
		x.oldestHasIt(t)
	})
}

// oldestHasIt wants the oldest of those with the same formula to have a host.
func (x *town) oldestHasIt(t *rapid.T) {
	oldest := map[string]*unstructured.Unstructured{}
	for _, cluster := range x.clusters {
		first := label(cluster.GetNamespace(), cluster.GetName())
		if have := oldest[first]; have == nil || dockyards.Older(cluster, have) < 0 {
			oldest[first] = cluster
		}
	}
	for first, cluster := range oldest {
		if host, _ := stored(cluster); host == "" {
			t.Errorf("the oldest of %s has no host", first)
		}
	}
}

// TestADecisionIsTheSameEachTime: bytes do not depend on the order of maps, nor on how
// often one asks.
func TestADecisionIsTheSameEachTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anInput(t, rapid.SampledFrom([]string{"", "noDefaultIngressProvider: true"}).Draw(t, "spec"), endpointStatus(rapid.SampledFrom([]string{"", present, former, "a:1"}).Draw(t, "stored")))
		in.Settings.WorkloadIngress = rapid.Bool().Draw(t, "ingress")
		text := func() string {
			raw, err := json.Marshal([]any{Decide(instant, in, nil), Conclude(instant, in, nil, nil)})
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
		before := fmt.Sprint(in.Cluster.Object)
		first := text()
		for range 5 {
			if again := text(); again != first {
				t.Fatalf("once\n%s\nonce\n%s", first, again)
			}
		}
		if fmt.Sprint(in.Cluster.Object) != before {
			t.Fatal("a decision changes its input")
		}
	})
}

// TestAnyObjectsAreLivedThrough: what lies under the wanted names may be anything that
// a schema would refuse.
func TestAnyObjectsAreLivedThrough(t *testing.T) {
	junk := rapid.Custom(func(t *rapid.T) any {
		return rapid.SampledFrom([]any{
			nil, "text", int64(1), true, []any{}, []any{"x"}, []any{map[string]any{}}, map[string]any{}, map[string]any{"spec": "x"}, map[string]any{"service": []any{}},
		}).Draw(t, "value")
	})
	rapid.Check(t, func(t *rapid.T) {
		in := anInput(t, "", "")
		bent := func(res string) *unstructured.Unstructured {
			if rapid.Bool().Draw(t, res+"?") {
				return nil
			}
			obj := parse(t, "{apiVersion: v1, kind: "+res+", metadata: {namespace: team-a, name: prod}}")
			obj.Object["spec"], obj.Object["status"] = junk.Draw(t, "spec"), junk.Draw(t, "status")
			if spec, ok := obj.Object["spec"].(map[string]any); ok {
				for _, field := range []string{"input", "hostnames", "rules", "parentRefs", "infrastructureRef", "controlPlaneServiceTemplate", "workloadTemplateRef"} {
					spec[field] = junk.Draw(t, field)
				}
			}
			if rapid.Bool().Draw(t, "mine") {
				ownedBy(obj, in.Cluster)
			}
			return obj
		}
		in.Workload, in.Route, in.Gateway = bent("Workload"), bent("TLSRoute"), bent("Gateway")
		if capi := bent("Cluster"); capi != nil {
			in.Infrastructure = []Infrastructure{{Cluster: capi, Kubevirt: bent("KubevirtCluster")}}
		}
		in.Cluster.Object["status"] = junk.Draw(t, "status")
		if status, ok := in.Cluster.Object["status"].(map[string]any); ok {
			status["conditions"], status["apiEndpoint"] = junk.Draw(t, "conditions"), junk.Draw(t, "endpoint")
		}
		Decide(instant, in, nil)
		conclusion := Conclude(instant, in, nil, nil)
		if !slices.Contains(severity, conclusion.Class) || conclusion.Class == "" {
			t.Fatalf("the class is %q", conclusion.Class)
		}
	})
}
