package decide

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// instant is the time of every test.
var instant = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// failer is what tests and properties have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func parse(t failer, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = obj.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return obj
}

// aCluster is a Cluster with a spec and a status in YAML.
func aCluster(t failer, namespace, name, spec, status string) *unstructured.Unstructured {
	t.Helper()
	obj := parse(t, fmt.Sprintf("{apiVersion: dockyards.io/v1alpha3, kind: Cluster, metadata: {generation: 3, creationTimestamp: '2026-01-01T00:00:00Z'}, spec: {%s}, status: {%s}}", spec, status))
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetUID(types.UID(namespace + "/" + name))
	return obj
}

func aGateway(t failer, addresses string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: gw, name: public}, status: {addresses: ["+addresses+"]}}")
}

func aConfig(t failer, data string) dockyards.Config {
	t.Helper()
	return dockyards.ReadConfig(parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: dockyards-system}, data: {"+data+"}}"))
}

// anInput is a Cluster on a platform where everything is in place.
func anInput(t failer, spec, status string) Input {
	t.Helper()
	settings := dockyards.DefaultSettings()
	settings.GatewayNamespace, settings.GatewayName = "gw", "public"
	return Input{
		Settings: settings, Cluster: aCluster(t, "team-a", "prod", spec, status), Config: aConfig(t, "externalURL: https://example.com"),
		Gateway: aGateway(t, "{value: 192.0.2.1}"), RouteVersion: "v1", ClusterAPIServed: true, ProviderServed: true,
	}
}

// carry brings an input to where its plan leads, as an API server that refuses
// nothing would, and returns the conclusion.
func carry(t failer, in *Input) plan.Conclusion {
	t.Helper()
	var outcomes plan.Outcomes
	for _, stage := range Decide(instant, *in, nil).Plan.Stages {
		for _, entry := range stage.Entries {
			outcomes = append(outcomes, plan.Outcome{Entry: entry, Result: plan.Configured, Object: entry.Object})
			in.store(t, entry)
		}
	}
	// The conclusion is drawn from what was read.
	c := Conclude(instant, *in, nil, outcomes)
	if c.Status != nil {
		in.Cluster = in.Cluster.DeepCopy()
		in.Cluster.Object["status"] = c.Status
	}
	return c
}

func (in *Input) store(t failer, entry plan.Entry) {
	t.Helper()
	switch entry.Resource.String() {
	case dockyards.TLSRoutes.String():
		in.Route = entry.Object
	case dockyards.Workloads.String():
		in.Workload = entry.Object
	default:
		obj := entry.Object
		i := slices.IndexFunc(in.Infrastructure, func(i Infrastructure) bool { return i.Cluster.GetName() == obj.GetName() })
		if i < 0 {
			t.Fatalf("%s is written for no Cluster API Cluster", entry)
		}
		in.Infrastructure = slices.Clone(in.Infrastructure)
		if entry.Resource.Group == dockyards.KubevirtClusters.Group {
			in.Infrastructure[i].Kubevirt = obj
		} else {
			in.Infrastructure[i].Cluster = obj
		}
	}
}

// said is "status reason: message" of a condition of a status.
func said(status map[string]any, conditionType string) string {
	c := v1alpha3.FindCondition(dockyards.Conditions(status), conditionType)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// entries are those of a plan in one line each.
func entries(d plan.Decision) []string {
	var all []string
	for _, stage := range d.Plan.Stages {
		for _, entry := range stage.Entries {
			all = append(all, stage.Name+": "+entry.String())
		}
	}
	return all
}

func ownedBy(obj, owner *unstructured.Unstructured) *unstructured.Unstructured {
	obj.SetOwnerReferences([]metav1.OwnerReference{dockyards.Reference(dockyards.Clusters, owner)})
	return obj
}

// aRoute is the route of the Cluster of anInput, with a record and a host.
func aRoute(t *testing.T, record, leads string) *unstructured.Unstructured {
	t.Helper()
	route := parse(t, "{apiVersion: gateway.networking.k8s.io/v1, kind: TLSRoute, metadata: {namespace: team-a, name: prod, labels: {dockyards.io/cluster-name: prod}}, "+
		"spec: {parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: gw, name: public}], hostnames: ["+leads+"], "+
		"rules: [{backendRefs: [{group: '', kind: Service, name: prod-lb, port: 6443, weight: 1}]}]}}")
	if record != "" {
		dockyards.SetAnnotation(route, v1alpha3.AnnotationRolloutInputs, record)
	}
	return ownedBy(route, aCluster(t, "team-a", "prod", "", ""))
}
