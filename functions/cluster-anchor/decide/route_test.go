package decide

import (
	"testing"

	"github.com/slipway-dev/slipway/shared/plan"
)

// TestARouteOfEqualMeaningKeepsItsBytes: the API server completes routes, and older
// ones were completed in other ways.
func TestARouteOfEqualMeaningKeepsItsBytes(t *testing.T) {
	const (
		parents  = "parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: gw, name: public}]"
		backends = "rules: [{backendRefs: [{group: '', kind: Service, name: prod-lb, port: 6443, weight: 1}]}]"
	)
	for name, c := range map[string]struct {
		reason, spec string
		same         bool
	}{
		"completed":          {"as the API server stores it", parents + ", hostnames: [" + present + "], " + backends, true},
		"bare":               {"as it is sent", "parentRefs: [{namespace: gw, name: public}], hostnames: [" + present + "], rules: [{backendRefs: [{name: prod-lb, port: 6443}]}]", true},
		"named rule":         {"newer versions name rules", parents + ", hostnames: [" + present + "], rules: [{name: api, backendRefs: [{name: prod-lb, port: 6443}]}]", true},
		"own namespace":      {"the default, written out", parents + ", hostnames: [" + present + "], rules: [{backendRefs: [{name: prod-lb, namespace: team-a, port: 6443}]}]", true},
		"another port":       {"6443 it is", parents + ", hostnames: [" + present + "], rules: [{backendRefs: [{name: prod-lb, port: 443}]}]", false},
		"no port":            {"it has to be there", parents + ", hostnames: [" + present + "], rules: [{backendRefs: [{name: prod-lb}]}]", false},
		"no backend":         {"it leads nowhere", parents + ", hostnames: [" + present + "], rules: [{}]", false},
		"two backends":       {"half of it leads elsewhere", parents + ", hostnames: [" + present + "], rules: [{backendRefs: [{name: prod-lb, port: 6443}, {name: x, port: 6443}]}]", false},
		"weight":             {"nothing would get there", parents + ", hostnames: [" + present + "], rules: [{backendRefs: [{name: prod-lb, port: 6443, weight: 0}]}]", false},
		"another service":    {"it leads elsewhere", parents + ", hostnames: [" + present + "], rules: [{backendRefs: [{name: x, port: 6443}]}]", false},
		"two rules":          {"one is wanted", parents + ", hostnames: [" + present + "], rules: [{backendRefs: [{name: prod-lb, port: 6443}]}, {backendRefs: [{name: x, port: 1}]}]", false},
		"section":            {"every listener is meant", "parentRefs: [{namespace: gw, name: public, sectionName: x}], hostnames: [" + present + "], " + backends, false},
		"parent elsewhere":   {"without a namespace it is the route's", "parentRefs: [{name: public}], hostnames: [" + present + "], " + backends, false},
		"two parents":        {"one is wanted", "parentRefs: [{namespace: gw, name: public}, {namespace: gw, name: x}], hostnames: [" + present + "], " + backends, false},
		"another hostname":   {"the host in force", parents + ", hostnames: [x.example.com], " + backends, false},
		"a hostname besides": {"that one alone", parents + ", hostnames: [" + present + ", x.example.com], " + backends, false},
		"catch-all":          {"upstream could leave it so", parents + ", " + backends, false},
		"nothing":            {"no spec at all", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			in := anInput(t, "", endpointStatus(present))
			in.Route = aRoute(t, "example.com", present)
			spec := parse(t, "{apiVersion: v1, kind: X, spec: {"+c.spec+"}}").Object["spec"]
			in.Route.Object["spec"] = spec
			var entry plan.Entry
			for _, e := range Decide(instant, in, nil).Plan.Stages[0].Entries {
				if e.Resource.Plural == "tlsroutes" {
					entry = e
				}
			}
			if entry.Verb != plan.Patch {
				t.Fatalf("the route is written by %q", entry.Verb)
			}
			if got := sameBytes(t, entry.Base, entry.Object); got != c.same {
				t.Errorf("%s: the route keeps its bytes: %v, want %v; it becomes %v", c.reason, got, c.same, entry.Object.Object["spec"])
			}
			carry(t, &in)
			restsOn(t, in)
			// Nobody's route is taken only if it is what would be made.
			in.Route.Object["spec"] = spec
			in.Route.SetOwnerReferences(nil)
			taken := false
			for _, line := range entries(Decide(instant, in, nil)) {
				taken = taken || line == "objects: patch tlsroutes.gateway.networking.k8s.io team-a/prod"
			}
			if taken != c.same {
				t.Errorf("%s: nobody's route is taken: %v, want %v", c.reason, taken, c.same)
			}
		})
	}
}

func TestANewRouteSpeaksTheServedVersion(t *testing.T) {
	for _, version := range []string{"v1", "v1alpha3", "v1alpha2"} {
		in := anInput(t, "", "")
		in.RouteVersion = version
		carry(t, &in)
		if got := in.Route.GetAPIVersion(); got != "gateway.networking.k8s.io/"+version {
			t.Errorf("where %s is served the route is %s", version, got)
		}
	}
}
