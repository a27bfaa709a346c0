package decide

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/plan"
)

func TestMergeInput(t *testing.T) {
	for name, c := range map[string]struct{ reason, input, ip, want string }{
		"set in nothing":        {"the whole input is ours", "null", "192.0.2.1", `{"service":{"loadBalancerIP":"192.0.2.1"}}`},
		"set beside others":     {"the rest is others'", `{"a":1,"service":{"b":2}}`, "192.0.2.1", `{"a":1,"service":{"b":2,"loadBalancerIP":"192.0.2.1"}}`},
		"changed":               {"only the address changes", `{"service":{"b":2,"loadBalancerIP":"x"}}`, "192.0.2.1", `{"service":{"b":2,"loadBalancerIP":"192.0.2.1"}}`},
		"set in a null service": {"null is no service", `{"service":null}`, "192.0.2.1", `{"service":{"loadBalancerIP":"192.0.2.1"}}`},
		"taken out":             {"what was only for it goes too", `{"service":{"loadBalancerIP":"x"}}`, "", "null"},
		"taken out of others":   {"the rest stays", `{"a":1,"service":{"b":2,"loadBalancerIP":"x"}}`, "", `{"a":1,"service":{"b":2}}`},
		"nothing to take out":   {"an empty service of others stays", `{"service":{}}`, "", `{"service":{}}`},
		"nothing at all":        {"no input stays none", "null", "", "null"},
		"text without address":  {"there is nothing to take out", `"text"`, "", `"text"`},
		"text":                  {"it cannot be merged", `"text"`, "192.0.2.1", "error"},
		"list":                  {"it cannot be merged", `[1]`, "192.0.2.1", "error"},
		"service is text":       {"it cannot be merged", `{"service":"x"}`, "192.0.2.1", "error"},
		"service without need":  {"there is nothing to take out", `{"service":"x"}`, "", `{"service":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var input any
			if err := json.Unmarshal([]byte(c.input), &input); err != nil {
				t.Fatal(err)
			}
			merged, err := mergeInput(input, c.ip)
			if (err != nil) != (c.want == "error") {
				t.Fatalf("%s: %v", c.reason, err)
			}
			after, marshalErr := json.Marshal(merged)
			before, _ := json.Marshal(input)
			if marshalErr != nil || (err == nil && string(after) != c.want) {
				t.Errorf("%s: %s becomes %s, want %s", c.reason, c.input, after, c.want)
			}
			if string(before) != c.input {
				t.Errorf("%s: the input itself has become %s", c.reason, before)
			}
		})
	}
}

func TestTheIngressWorkload(t *testing.T) {
	workload := func(metadata, spec string) string {
		return "{apiVersion: dockyards.io/v1alpha3, kind: Workload, metadata: {namespace: team-a, name: prod-ingress-nginx, labels: {dockyards.io/cluster-name: prod}, " + metadata + "}, " +
			"spec: {clusterComponent: true, provenience: Dockyards, targetNamespace: ingress-nginx, workloadTemplateRef: {kind: WorkloadTemplate, name: ingress-nginx, namespace: dockyards-public}" + spec + "}}"
	}
	const own = "ownerReferences: [{apiVersion: dockyards.io/v1alpha3, kind: Cluster, name: prod, uid: team-a/prod}]"
	const marked = own + ", annotations: {slipway.dev/managed-by: cluster-anchor}"
	const full = `, input: {service: {loadBalancerIP: 192.0.2.1}}`
	for name, c := range map[string]struct {
		reason, spec, workload string
		change                 func(in *Input)
		is                     string
		writes                 []string
		class                  plan.Class
	}{
		"new": {
			reason: "there is none", is: "True Ready: ", class: plan.Done,
			writes: []string{"objects: create workloads.dockyards.io team-a/prod-ingress-nginx"},
		},
		"settled": {
			reason: "an equal one is patched with nothing", workload: workload(marked, full), is: "True Ready: ", class: plan.Done,
			writes: []string{"objects: patch workloads.dockyards.io team-a/prod-ingress-nginx"},
		},
		"nobody's and the same": {
			reason: "it is what would be made", workload: workload("annotations: {a: b}", full), is: "True Ready: ", class: plan.Done,
			writes: []string{"objects: patch workloads.dockyards.io team-a/prod-ingress-nginx"},
		},
		"nobody's and another": {
			reason: "it may be a person's", workload: workload("annotations: {a: b}", ", workloadTemplateInput: {}"), is: "True Ready: ", class: plan.Done,
			writes: []string{"objects: patch workloads.dockyards.io team-a/prod-ingress-nginx"},
		},
		"somebody else's": {
			reason: "an owner of another UID", workload: workload(strings.ReplaceAll(own, "uid: team-a/prod", "uid: before"), full),
			is: "False NameConflict: Workload \"prod-ingress-nginx\" is not this Cluster's and stays as it is: remove or rename it", class: plan.Terminal,
		},
		"left alone": {
			reason: "also where the address is missing", workload: workload("annotations: {dockyards.io/skip-remediation: x}", ""), is: "True Ready: ", class: plan.Done,
			change: func(in *Input) { in.Gateway = aGateway(t, "") },
		},
		"no address": {
			reason: "an event of the Gateway follows", is: "False WaitingForGatewayAddress: Gateway \"gw/public\" has no address yet", class: plan.Waiting,
			change: func(in *Input) { in.Gateway = aGateway(t, "{type: NamedAddress, value: x}") },
		},
		"unread": {
			reason: "it is tried again", is: "False ErrorReconciling: cannot get workloads: the API server does not answer", class: plan.Retry,
			change: func(in *Input) { in.Faults.Workload = &faultless },
		},
		"not wanted": {
			reason: "it was made here", spec: "noDefaultIngressProvider: true", workload: workload(marked, full), is: "True NoDefaultIngressProvider: ", class: plan.Done,
			writes: []string{"removal: delete workloads.dockyards.io team-a/prod-ingress-nginx"},
		},
		"not wanted, without a Gateway": {
			reason: "that has nothing to do with it", spec: "noDefaultIngressProvider: true", workload: workload(marked, full), is: "True NoDefaultIngressProvider: ", class: plan.Waiting,
			change: func(in *Input) { in.Gateway = nil }, writes: []string{"removal: delete workloads.dockyards.io team-a/prod-ingress-nginx"},
		},
		"not wanted, and something unread": {
			reason: "nothing is removed on an incomplete view", spec: "noDefaultIngressProvider: true", workload: workload(marked, full), is: "True NoDefaultIngressProvider: ", class: plan.Retry,
			change: func(in *Input) { in.Faults.Infrastructure = &faultless },
		},
		"not wanted and found": {
			reason: "a takeover removes nothing", spec: "noDefaultIngressProvider: true", workload: workload(own, full), class: plan.Done,
			is: "True NoDefaultIngressProvider: Workload \"prod-ingress-nginx\" stays: it was there before and is not marked as made by cluster-anchor; remove it yourself if it is not wanted",
		},
		"not wanted and foreign": {
			reason: "the mark alone is not enough", spec: "noDefaultIngressProvider: true", workload: workload("annotations: {slipway.dev/managed-by: cluster-anchor}", full), class: plan.Done,
			is: "True NoDefaultIngressProvider: Workload \"prod-ingress-nginx\" stays: it is not this Cluster's",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := anInput(t, c.spec, "")
			in.Settings.GatewayName = "public"
			if c.workload != "" {
				in.Workload = parse(t, c.workload)
			}
			if c.change != nil {
				c.change(&in)
			}
			var got []string
			for _, line := range entries(Decide(instant, in, nil)) {
				if strings.Contains(line, "workloads") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(c.writes, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			conclusion := Conclude(instant, in, nil, nil)
			if got := said(conclusion.Status, v1alpha3.ConditionIngressWorkloadReconciled); got != c.is {
				t.Errorf("%s: the condition is %q, want %q", c.reason, got, c.is)
			}
			if conclusion.Class != c.class {
				t.Errorf("%s: the class is %s, want %s", c.reason, conclusion.Class, c.class)
			}
		})
	}
}
