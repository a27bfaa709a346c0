package decide

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

const gatewayIP = "192.0.2.1"

// tb is what a test and a property have in common.
type tb interface {
	Fatal(args ...any)
	Helper()
}

func object(t tb, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = obj.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err, text)
	}
	return obj
}

// newInput is a Workload "web" of a Cluster "prod" in namespace "team", with
// everything there that is awaited.
func newInput(t tb, zones ...string) Input {
	t.Helper()
	settings := dockyards.DefaultSettings()
	settings.GatewayNamespace, settings.GatewayName = "gateways", "shared"
	return Input{
		Settings: settings, Limits: DefaultLimits(),
		Workload: object(t, `{apiVersion: dockyards.io/v1alpha3, kind: Workload,
			metadata: {name: web, namespace: team, uid: workload, generation: 3, labels: {dockyards.io/cluster-name: prod}},
			spec: {targetNamespace: target, provenience: User}}`),
		HTTPRouteVersion: "v1", TLSRouteVersion: "v1", Workloads: []string{"web"},
		Clusters: []unstructured.Unstructured{*newCluster(t, "team", "prod", 0, zones...)},
		CAPICluster: object(t, `{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: prod, namespace: team},
			status: {initialization: {infrastructureProvisioned: true}}}`),
		Gateway: object(t, `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: shared, namespace: gateways},
			status: {addresses: [{value: `+gatewayIP+`}]}}`),
	}
}

func newCluster(t tb, namespace, name string, age int, zones ...string) *unstructured.Unstructured {
	t.Helper()
	cluster := object(t, fmt.Sprintf(`{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {name: %s, namespace: %s, uid: %s-%s}}`, name, namespace, namespace, name))
	cluster.SetCreationTimestamp(stamp(-age))
	list := []any{}
	for _, zone := range zones {
		list = append(list, zone)
	}
	cluster.Object["status"] = map[string]any{"dnsZones": list}
	return cluster
}

// remoteService is a load balancer as it is kept.
func remoteService(t tb, namespace, name, ports string) unstructured.Unstructured {
	t.Helper()
	service := object(t, `{apiVersion: v1, kind: Service, metadata: {name: "`+name+`", namespace: "`+namespace+`", resourceVersion: "7"},
		spec: {type: LoadBalancer, ports: `+ports+`}, status: {loadBalancer: {ingress: [{ip: `+gatewayIP+`, ipMode: VIP}]}}}`)
	kept := Kept(DefaultLimits())(service)
	if kept == nil {
		t.Fatal("the Service is not kept: ", name)
	}
	return *kept
}

const web = `[{name: http, port: 80, nodePort: 30080}, {name: https, port: 443, nodePort: 30443}]`

// settled is an input with what the plan for it made: what the API server adds is
// added.
func settled(t tb, in Input) Input {
	t.Helper()
	for _, entry := range entries(in) {
		if entry.Cluster != "" {
			continue
		}
		list := map[string]*[]unstructured.Unstructured{"Service": &in.Services, "HTTPRoute": &in.HTTPRoutes, "TLSRoute": &in.TLSRoutes}[entry.Resource.Kind]
		name := entry.Name()
		*list = slices.DeleteFunc(slices.Clone(*list), func(obj unstructured.Unstructured) bool { return key(&obj) == name })
		if entry.Verb == plan.Delete {
			continue
		}
		obj := entry.Object.DeepCopy()
		if obj.GetUID() == "" {
			obj.SetUID(types.UID("uid-" + name))
		}
		obj.SetResourceVersion(obj.GetResourceVersion() + "1")
		defaulted(obj)
		*list = append(*list, *obj)
	}
	return in
}

// defaulted adds what the API server adds: section 14.
func defaulted(obj *unstructured.Unstructured) {
	spec := specOf(obj)
	set := func(fields map[string]any, field string, value any) {
		if _, there := fields[field]; !there {
			fields[field] = value
		}
	}
	if obj.GetKind() == "Service" {
		for field, value := range map[string]any{
			"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": []any{"10.0.0.1"}, "sessionAffinity": "None", "ipFamilies": []any{"IPv4"},
			"ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
		} {
			set(spec, field, value)
		}
		return
	}
	for _, item := range list(spec["parentRefs"]) {
		set(item, "group", "gateway.networking.k8s.io")
		set(item, "kind", "Gateway")
	}
	for _, rule := range list(spec["rules"]) {
		if obj.GetKind() == "HTTPRoute" {
			set(rule, "matches", []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}})
		}
		for _, backend := range list(rule["backendRefs"]) {
			set(backend, "group", "")
			set(backend, "kind", "Service")
			set(backend, "weight", int64(1))
		}
	}
}

func list(value any) []map[string]any {
	items, _ := value.([]any)
	var out []map[string]any
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			out = append(out, fields)
		}
	}
	return out
}

func entries(in Input) []plan.Entry {
	var all []plan.Entry
	for _, stage := range Decide(time.Time{}, in, nil).Plan.Stages {
		all = append(all, stage.Entries...)
	}
	return all
}

// planned are the writes as people read them.
func planned(in Input) []string {
	var lines []string
	for _, entry := range entries(in) {
		lines = append(lines, entry.String())
	}
	return lines
}

// concluded is "status reason" and message of the condition, if all writes go well.
func concluded(in Input, outcomes ...plan.Outcome) (is, message string) {
	c := Conclude(time.Unix(0, 0), in, nil, outcomes)
	for _, condition := range dockyards.Conditions(c.Status) {
		if condition.Type == "WorkloadIngressReconciled" {
			return string(condition.Status) + " " + condition.Reason, condition.Message
		}
	}
	return string(c.Class), ""
}
