package decide

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/shared/dockyards"
)

// FuzzZone: what passes for a zone can stand in a route, and is read as itself.
func FuzzZone(f *testing.F) {
	for _, seed := range []string{"shop.example.", "SHOP.example", "*.example", "..", "a..b", "example.com\n", "xn--a", "ſ.example"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		zone, ok := Zone(text)
		if !ok {
			return
		}
		if problems := validation.IsWildcardDNS1123Subdomain(hostname(zone)); len(problems) > 0 {
			t.Errorf("%q becomes the host %q: %v", text, hostname(zone), problems)
		}
		if again, ok := Zone(zone); !ok || again != zone {
			t.Errorf("%q becomes %q and then %q", text, zone, again)
		}
	})
}

// FuzzServices: two Services of a tenant, whatever stands in them: all that is made of
// them lies in the Workload's namespace, belongs to it, and comes to rest.
func FuzzServices(f *testing.F) {
	f.Add([]byte(`[{"name":"http","port":80,"nodePort":30080}]`), []byte(`{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}`), "front", "apps")
	f.Add([]byte(`[{"port":80,"nodePort":1},{"port":80,"protocol":"UDP","nodePort":2},{"port":443}]`), []byte(`{"loadBalancer":{"ingress":[{"hostname":"x"},{}]}}`), "A_b", "kube-system")
	f.Add([]byte(`[{"port":-1,"nodePort":70000,"name":"-"}]`), []byte(`{"loadBalancer":[]}`), "0", "")
	f.Fuzz(func(t *testing.T, ports, status []byte, name, namespace string) {
		in := newInput(t, "a.example")
		service := remoteService(t, "apps", "front", "[{name: http, port: 80}]")
		for field, text := range map[string][]byte{"ports": ports, "status": status} {
			var value any
			with := &unstructured.Unstructured{}
			if len(text) > 1<<14 || !json.Valid(text) || with.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"X","x":`+string(text)+`}`)) != nil {
				return
			}
			if value = with.Object["x"]; field == "ports" {
				service.Object["spec"].(map[string]any)["ports"] = value
				continue
			}
			service.Object["status"] = value
		}
		service.SetName(name)
		service.SetNamespace(namespace)
		in.Remote.Services = []unstructured.Unstructured{service, remoteService(t, "apps", "other", "[{name: http, port: 80}]")}
		for _, entry := range entries(in) {
			if entry.Cluster != "" || entry.Object == nil {
				continue
			}
			if got := entry.Object.GetNamespace(); got != in.Workload.GetNamespace() {
				t.Errorf("%s lies in %q", entry, got)
			}
			if entry.Resource.Plural == dockyards.Services.Plural && len(validation.IsDNS1035Label(entry.Object.GetName())) > 0 {
				t.Errorf("%s cannot be a Service's name", entry)
			}
		}
		concluded(in)
	})
}
