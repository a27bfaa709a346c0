package decide

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/fault"
	"github.com/slipway-dev/slipway/shared/plan"
)

const (
	present = "team-a-prod.example.com"
	former  = "team-a-prod.former.org"
)

func endpointStatus(host string) string {
	if host == "" {
		return ""
	}
	return "apiEndpoint: {host: '" + host + "', port: 6443}"
}

func TestTheHostInForce(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		// stored is in the status, record and leads on the route.
		stored, record, leads string
		held                  bool
		host, recorded, is    string
		// event is what people are told of a rollout.
		event string
	}{
		"new": {
			reason: "a new Cluster gets the present one", host: present, recorded: "example.com", is: "True Reconciled: ",
		},
		"settled": {
			reason: "nothing to do", stored: present, record: "example.com", leads: present,
			host: present, recorded: "example.com", is: "True Reconciled: ",
		},
		"not recorded": {
			reason: "a takeover keeps the host", stored: former, leads: former,
			host: former, recorded: "example.com", is: "True Reconciled: " + kept,
		},
		"kept": {
			reason: "and goes on keeping it", stored: former, record: "example.com", leads: former,
			host: former, recorded: "example.com", is: "True Reconciled: " + kept,
		},
		"moves": {
			reason: "the hostname differs from the record", stored: former, record: "former.org", leads: former,
			host: present, recorded: "example.com", is: "True Reconciled: " + moved, event: moved,
		},
		"held": {
			reason: "a person holds it back", stored: former, record: "former.org", leads: former, held: true,
			host: former, recorded: "former.org", is: "False RolloutHeld: ",
		},
		"held without a move": {
			reason: "nothing is held back that does not move", stored: present, record: "former.org", leads: present, held: true,
			host: present, recorded: "example.com", is: "True Reconciled: ",
		},
		"cut off": {
			reason: "the route has moved already, the status has not", stored: former, record: "example.com", leads: present,
			host: present, recorded: "example.com", is: "True Reconciled: " + moved, event: moved,
		},
		"cut off, then held": {
			reason: "what the route leads to is in force", stored: "team-a-prod.first.org", record: "former.org", leads: former, held: true,
			host: former, recorded: "former.org", is: "False RolloutHeld: ", event: moved,
		},
		"route bent": {
			reason: "the status decides where somebody has bent the route", stored: present, record: "example.com", leads: "evil.example.com",
			host: present, recorded: "example.com", is: "True Reconciled: ",
		},
		"port": {
			reason: "what never worked is corrected, also while rollouts are held", stored: "team-a-prod.example.com:8443", held: true,
			host: present, recorded: "example.com", is: "True Reconciled: " + corrected, event: corrected,
		},
		"address": {
			reason: "no route leads to an address", stored: "192.0.2.1",
			host: present, recorded: "example.com", is: "True Reconciled: " + corrected, event: corrected,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := anInput(t, "", endpointStatus(c.stored))
			if c.leads != "" {
				in.Route = aRoute(t, c.record, c.leads)
			}
			if c.held {
				dockyards.SetAnnotation(in.Cluster, v1alpha3.AnnotationHoldRollouts, "")
			}
			before := in
			decision := Decide(instant, in, nil)
			for _, entry := range decision.Plan.Stages[0].Entries {
				in.store(t, entry)
			}
			conclusion := Conclude(instant, before, nil, nil)
			in.Cluster = in.Cluster.DeepCopy()
			in.Cluster.Object["status"] = conclusion.Status

			if got, _ := stored(in.Cluster); got != c.host {
				t.Errorf("%s: the host is %q, want %q", c.reason, got, c.host)
			}
			hosts, _, _ := unstructured.NestedStringSlice(in.Route.Object, "spec", "hostnames")
			if len(hosts) != 1 || hosts[0] != c.host {
				t.Errorf("%s: the route leads to %v, want %q", c.reason, hosts, c.host)
			}
			if got := in.Route.GetAnnotations()[v1alpha3.AnnotationRolloutInputs]; got != c.recorded {
				t.Errorf("%s: the record is %q, want %q", c.reason, got, c.recorded)
			}
			got := said(conclusion.Status, v1alpha3.ConditionAPIEndpointReconciled)
			if held := strings.HasSuffix(c.is, "RolloutHeld: "); (held && !strings.HasPrefix(got, c.is)) || (!held && got != c.is) {
				t.Errorf("%s: the condition is %q, want %q", c.reason, got, c.is)
			}
			event := ""
			for _, e := range conclusion.Events {
				if e.Reason == v1alpha3.ReasonRolloutStarted {
					event = e.Message
				}
			}
			if event != c.event {
				t.Errorf("%s: people are told %q, want %q", c.reason, event, c.event)
			}
			restsOn(t, in)
		})
	}
}

// restsOn wants a further pass to come to the same, without an Event.
func restsOn(t *testing.T, in Input) {
	t.Helper()
	before := in
	conclusion := carry(t, &in)
	for _, pair := range [][2]*unstructured.Unstructured{{before.Route, in.Route}, {before.Workload, in.Workload}} {
		if pair[0] != nil && pair[1] != nil && !sameBytes(t, pair[0], pair[1]) {
			t.Errorf("a further pass changes %s", pair[0].GetKind())
		}
	}
	if !sameBytes(t, before.Cluster, in.Cluster) {
		t.Errorf("a further pass changes the status from\n%v\nto\n%v", before.Cluster.Object["status"], in.Cluster.Object["status"])
	}
	for _, e := range conclusion.Events {
		if e.Reason == v1alpha3.ReasonRolloutStarted {
			t.Errorf("a further pass announces %q", e.Message)
		}
	}
}

func sameBytes(t *testing.T, a, b *unstructured.Unstructured) bool {
	t.Helper()
	x, err := a.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}

func TestAMoveWaitsForItsRoute(t *testing.T) {
	in := anInput(t, "", endpointStatus(former))
	in.Route = aRoute(t, "former.org", former)
	entry := Decide(instant, in, nil).Plan.Stages[0].Entries[0]
	refused := plan.Outcomes{{Entry: entry, Result: plan.Failed, Fault: &fault.Fault{
		Class: fault.Refused, Code: 422, Call: "patch tlsroutes team-a/prod", Message: "the name team-a-prod.example.com is not liked",
	}}}
	conclusion := Conclude(instant, in, nil, refused)
	in.Cluster.Object["status"] = conclusion.Status
	if got, _ := stored(in.Cluster); got != former {
		t.Errorf("the host has moved to %q although the route has not", got)
	}
	if conclusion.Class != plan.Retry || len(conclusion.Events) > 0 {
		t.Errorf("the class is %s, the Events are %v", conclusion.Class, conclusion.Events)
	}
	got := said(conclusion.Status, v1alpha3.ConditionAPIEndpointReconciled)
	if !strings.HasPrefix(got, "False ErrorReconciling: cannot patch tlsroutes team-a/prod: ") || strings.Contains(got, "example.com") {
		t.Errorf("the condition is %q", got)
	}
	if entry.Resource.String() != dockyards.TLSRoutes.String() {
		t.Errorf("the first write is %s", entry)
	}
}

func TestWhatStandsInTheWayOfAHost(t *testing.T) {
	outage := &fault.Fault{Class: fault.Unavailable, Code: 500, Call: "get it"}
	for name, c := range map[string]struct {
		reason, is string
		change     func(in *Input)
	}{
		"no gateway":      {"nothing works without it", "False WaitingForGateway: Gateway \"gw/public\" does not exist", func(in *Input) { in.Gateway = nil }},
		"none configured": {"the message says how to", "False WaitingForGateway: no Gateway is configured: set GATEWAY_NAME and GATEWAY_NAMESPACE", func(in *Input) { in.Settings.GatewayName, in.Gateway = "", nil }},
		"no config map":   {"the message names it", "False WaitingForListenerHostname: config map \"dockyards-system/dockyards-system\" does not exist", func(in *Input) { in.Config = dockyards.Config{} }},
		"config unread":   {"and is tried again", "False ErrorReconciling: cannot get it: the API server answers 500", func(in *Input) { in.Faults.Config = outage }},
		"gateway unread":  {"and is tried again", "False ErrorReconciling: cannot get it: the API server answers 500", func(in *Input) { in.Faults.Gateway = outage }},
		"route unread":    {"and is tried again", "False ErrorReconciling: cannot get it: the API server answers 500", func(in *Input) { in.Faults.Route = outage }},
		"others unread":   {"no host while others may have it", "False ErrorReconciling: cannot get it: the API server answers 500", func(in *Input) { in.Faults.Clusters = outage }},
		"no route kind":   {"the endpoint is known all the same", "False WaitingForGateway: the API server serves no TLSRoutes: install those of Gateway API", func(in *Input) { in.RouteVersion, in.Route = "", nil }},
		"gateway going": {"it is as good as gone", "False WaitingForGateway: Gateway \"gw/public\" does not exist", func(in *Input) {
			in.Gateway = parse(t, "{apiVersion: v1, kind: Gateway, metadata: {name: public, deletionTimestamp: '2026-01-01T00:00:00Z'}, status: {addresses: [{value: 192.0.2.1}]}}")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := anInput(t, "", endpointStatus(former))
			in.Route = aRoute(t, "example.com", former)
			c.change(&in)
			conclusion := carry(t, &in)
			if got := said(conclusion.Status, v1alpha3.ConditionAPIEndpointReconciled); got != c.is {
				t.Errorf("%s: the condition is %q, want %q", c.reason, got, c.is)
			}
			if got, _ := stored(in.Cluster); got != former {
				t.Errorf("%s: the host is %q", c.reason, got)
			}
		})
	}
}
