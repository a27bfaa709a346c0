package decide

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

var (
	serviceName   = rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "a-b", "front", "lb", "front-2", "front-2-3"}), rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`))
	namespaceName = rapid.OneOf(rapid.SampledFrom([]string{"target", "a", "b"}), rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?`))
	workloadName  = rapid.OneOf(rapid.SampledFrom([]string{"web", "web-a", "web.v1", "1web", strings.Repeat("w", 63)}), rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?(\.[a-z0-9]{1,20})?`))
	zoneName      = rapid.OneOf(rapid.SampledFrom([]string{"a.example", "A.Example.", "b.example", "example", "", ".", "*", "x y"}), rapid.StringMatching(`[a-zA-Z.-]{1,12}`))
)

func drawServices(t *rapid.T) []unstructured.Unstructured {
	var services []unstructured.Unstructured
	seen := map[string]bool{}
	for range rapid.IntRange(0, 12).Draw(t, "services") {
		ns, name := namespaceName.Draw(t, "namespace"), serviceName.Draw(t, "name")
		if seen[ns+"/"+name] {
			continue
		}
		seen[ns+"/"+name] = true
		service := remoteService(t, ns, name, rapid.SampledFrom([]string{web, `[{port: 80, nodePort: 30000}]`, `[{port: 443, nodePort: 30001}]`, `[{port: 53, nodePort: 30002, protocol: UDP}]`, `[{port: 80}]`}).Draw(t, "ports"))
		service.SetCreationTimestamp(stamp(rapid.IntRange(0, 5).Draw(t, "age")))
		services = append(services, service)
	}
	return services
}

// TestNamesAreLegalAndDiffer: WR6, whatever the Services of a Workload are called, and
// the events of what is made lead back to the Workload.
func TestNamesAreLegalAndDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := newInput(t, "a.example")
		in.Workload.SetName(workloadName.Draw(t, "workload"))
		in.Workloads = append(rapid.SliceOfN(workloadName, 0, 3).Draw(t, "workloads"), in.Workload.GetName())
		in.Remote.Services = drawServices(t)
		in.Clusters[0].Object["status"] = map[string]any{"dnsZones": drawZones(t)}
		v := look(in)
		mirrors, routes := map[string]bool{}, map[string]bool{}
		for _, w := range v.ways {
			if problems := validation.IsDNS1035Label(w.name); len(problems) > 0 {
				t.Fatalf("%q of %s is no Service's name: %v", w.name, key(w.service), problems)
			}
			if mirrors[w.name] {
				t.Fatalf("%q is the name of two mirrors", w.name)
			}
			mirrors[w.name] = true
			if !MayMirror(w.name, in.Workload.GetName(), w.service.GetNamespace(), w.service.GetName()) {
				t.Fatalf("an event of %s does not lead to its mirror %q", key(w.service), w.name)
			}
		}
		for _, entry := range entries(in) {
			id, name := entry.Resource.Kind+" "+entry.Name(), entry.Object.GetName()
			if routes[id] || len(validation.IsDNS1123Subdomain(name)) > 0 {
				t.Fatalf("%s is made twice, or has no legal name", id)
			}
			routes[id] = true
			if !MayBeFor(name, in.Workload.GetName()) {
				t.Fatalf("an event of %q does not lead to Workload %q", name, in.Workload.GetName())
			}
			for _, other := range in.Workloads {
				if len(other) > len(in.Workload.GetName()) && entry.Resource.Kind == "Service" && strings.HasPrefix(name, other+"-") && strings.HasPrefix(other, in.Workload.GetName()) {
					t.Fatalf("%q takes a name of Workload %q", name, other)
				}
			}
		}
	})
}

func drawZones(t *rapid.T) []any {
	zones := []any{}
	for _, zone := range rapid.SliceOfN(zoneName, 0, 40).Draw(t, "zones") {
		zones = append(zones, zone)
	}
	return zones
}

// TestNoHostnameIsWantedForTwoClusters: WR12, X20: whatever tenants have in their
// workload clusters, in their zones, and in routes from before.
func TestNoHostnameIsWantedForTwoClusters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var inputs []Input
		var clusters []unstructured.Unstructured
		for i := range rapid.IntRange(2, 4).Draw(t, "clusters") {
			in := newInput(t)
			namespace := rapid.SampledFrom([]string{"team", "other"}).Draw(t, "namespace")
			cluster := newCluster(t, namespace, fmt.Sprintf("c%d", i), rapid.IntRange(0, 2).Draw(t, "age"))
			cluster.Object["status"] = map[string]any{"dnsZones": drawZones(t)}
			clusters = append(clusters, *cluster)
			in.Workload.SetNamespace(namespace)
			in.Workload.SetUID(types.UID(fmt.Sprintf("workload-%d", i)))
			in.Workload.SetLabels(map[string]string{"dockyards.io/cluster-name": cluster.GetName()})
			in.CAPICluster.SetName(cluster.GetName())
			in.Remote.Services = drawServices(t)
			inputs = append(inputs, in)
		}
		owners := map[string]int{}
		for i, in := range inputs {
			in.Clusters = clusters
			in.Config = dockyards.ReadConfig(object(t, `{kind: ConfigMap, apiVersion: v1, data: {externalURL: "https://api.b.example"}}`))
			for _, entry := range entries(in) {
				if entry.Resource.Kind == "Service" {
					continue
				}
				hosts := hostnames(entry.Object)
				if len(hosts) == 0 || len(hosts) > 16 {
					t.Fatalf("%s has %d hostnames", entry, len(hosts))
				}
				for _, host := range hosts {
					if owner, taken := owners[host]; taken && owner != i {
						t.Fatalf("%q is wanted for %s and %s", host, key(&clusters[owner]), key(&clusters[i]))
					}
					owners[host] = i
					zone := strings.TrimPrefix(host, "*.")
					if zone == host || zone == "b.example" || zone == "example" || len(validation.IsWildcardDNS1123Subdomain(host)) > 0 {
						t.Fatalf("%q is no hostname for a tenant", host)
					}
				}
			}
		}
	})
}

// TestAPassComesToRest: X7, X12: after one pass over any state nothing is left to do,
// nothing of others was touched, and the order of lists does not matter.
func TestAPassComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := newInput(t, "old.example")
		in.Workload.SetName(workloadName.Draw(t, "workload"))
		in.Remote.Services = drawServices(t)
		in = settled(t, in)
		for i := range in.Services {
			if rapid.IntRange(0, 4).Draw(t, "foreign") == 0 {
				in.Services[i].SetOwnerReferences(nil)
				specOf(&in.Services[i])["selector"] = map[string]any{"theirs": "yes"}
			}
		}
		in.Remote.Services = drawServices(t)
		in.Clusters[0].Object["status"] = map[string]any{"dnsZones": drawZones(t)}
		in.Remote.Incomplete = rapid.Bool().Draw(t, "incomplete")
		if rapid.Bool().Draw(t, "unreachable") {
			in.Remote.Connection = plan.Connection{Refused: plan.SecretNotFound, Message: "none"}
		}
		for _, entry := range entries(in) {
			if base := entry.Base; base != nil && entry.Cluster == "" && len(base.GetOwnerReferences()) == 0 {
				t.Fatalf("X10: %s", entry)
			}
			if entry.Verb == plan.Delete && in.Remote.Connection.Refused != "" {
				t.Fatalf("WR14: %s", entry)
			}
			if entry.Verb == plan.Delete && in.Remote.Incomplete && !slices.Equal(hostnames(entry.Base), []string{"*.old.example"}) {
				t.Fatalf("WR14: %s", entry)
			}
		}
		again := in
		again.Services, again.HTTPRoutes, again.TLSRoutes = reversed(in.Services), reversed(in.HTTPRoutes), reversed(in.TLSRoutes)
		again.Remote.Services = reversed(in.Remote.Services)
		if diff := cmp.Diff(Decide(time.Time{}, in, nil), Decide(time.Time{}, again, nil)); diff != "" {
			t.Fatalf("the order of lists decides:\n%s", diff)
		}
		fewer := in
		fewer.Services, fewer.HTTPRoutes, fewer.TLSRoutes = mattering(in, in.Services), mattering(in, in.HTTPRoutes), mattering(in, in.TLSRoutes)
		if diff := cmp.Diff(Decide(time.Time{}, in, nil), Decide(time.Time{}, fewer, nil)); diff != "" {
			t.Fatalf("what gather leaves out decides:\n%s", diff)
		}
		in = settled(t, in)
		if left := planned(in); len(left) > 0 {
			t.Fatalf("X7: left to do is %v", left)
		}
		if _, message := concluded(in); len(message) > messageMax || !utf8.ValidString(message) {
			t.Fatalf("the message is %q", message)
		}
	})
}

// mattering are the objects of a list that gather keeps.
func mattering(in Input, objs []unstructured.Unstructured) []unstructured.Unstructured {
	matters := Matters(in.Workload)
	return slices.DeleteFunc(slices.Clone(objs), func(obj unstructured.Unstructured) bool { return !matters(&obj) })
}

func reversed(objs []unstructured.Unstructured) []unstructured.Unstructured {
	list := slices.Clone(objs)
	slices.Reverse(list)
	return list
}

func FuzzKeptIsSmallAndNeverPanics(f *testing.F) {
	f.Add([]byte(`{"kind":"Service","metadata":{"name":"a","namespace":"b"},"spec":{"type":"LoadBalancer","ports":[{"port":80,"nodePort":3}]},"status":{"loadBalancer":{"ingress":[{"ip":"::1"},7]}}}`))
	f.Add([]byte(`{"kind":"Service","spec":{"type":"LoadBalancer","ports":{"a":1}}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		obj := &unstructured.Unstructured{}
		if obj.UnmarshalJSON(content) != nil {
			return
		}
		limits := Limits{Services: 3, Ports: 3, Read: 9}
		kept := Kept(limits)(obj)
		if kept == nil {
			return
		}
		if raw, err := kept.MarshalJSON(); err != nil || len(raw) > 8000 {
			t.Errorf("%d bytes are kept of it: %v", len(raw), err)
		}
		in := newInput(t, "a.example")
		in.Limits = limits
		in.Remote.Services = []unstructured.Unstructured{*kept, *kept}
		if left := planned(settled(t, in)); len(slices.DeleteFunc(left, func(line string) bool { return strings.Contains(line, "status") })) > 0 {
			t.Errorf("it never comes to rest: %v", left)
		}
	})
}
